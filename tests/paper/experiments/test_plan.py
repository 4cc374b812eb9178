"""What declarations ask for: which runs, which of them are the same, which train together."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.errors import InputError
from score_rl.paper.experiments.plan import Request, Variant, Wanted, matching, product
from score_rl.paper.experiments.pool import blocks
from score_rl.paper.experiments.registry import EXPERIMENTS, get_experiment
from score_rl.paper.experiments.scales import SCALES, get_scale, scheduled
from score_rl.report.results import RunResult

DAY = Request(SCALES["day"])
NAMES = (
    "main-table", "aggregates", "profiles", "grid", "runtime", "uncertainty-map", "ablation-bc", "ablation-constraint",
    "ablation-pessimism", "ablation-uncertainty", "ablation-penalty", "sweep-beta", "sweep-decay", "sweep-critics",
    "sweep-alpha", "false-correlation",
)  # fmt: skip


def unique(*names: str, request: Request = DAY) -> list[Wanted]:
    runs = [asked.run for name in names for asked in get_experiment(name).plan(request)]
    return list({run.key(): run for run in runs}.values())


def test_every_table_and_figure_has_its_name() -> None:
    assert set(EXPERIMENTS) == set(NAMES)
    for experiment in EXPERIMENTS.values():
        assert experiment.paper.startswith(("table", "figure"))
        assert experiment.finding


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "false-correlation"])
def test_every_run_can_be_trained(name: str, scale: Any) -> None:
    """Settings are accepted, windows fit, and the annealing is as long as the run."""
    request = Request(SCALES[scale])
    for asked in get_experiment(name).plan(request):
        run = asked.run
        assert run.steps % run.log_every == 0
        assert run.eval_every % run.log_every == 0
        if run.algorithm == "score":
            assert run.config.bc_decay_every * 100 == pytest.approx(run.steps, abs=100)


def test_a_default_that_is_said_is_the_same_run() -> None:
    silent = Variant("a").wanted(DAY, "replica:hopper-medium", 0)
    said = Variant("b", {"beta": 0.2, "critics": 5}).wanted(DAY, "replica:hopper-medium", 0)
    other = Variant("c", {"beta": 0.3}).wanted(DAY, "replica:hopper-medium", 0)
    assert silent.key() == said.key() != other.key()
    assert silent.key() != dataclasses.replace(silent, seed=1).key()
    assert silent.key() != dataclasses.replace(silent, steps=600_000).key()
    assert silent.key() != dataclasses.replace(silent, transitions=1_000).key()


def test_what_shares_its_static_settings_trains_as_one_fleet() -> None:
    request = dataclasses.replace(DAY, datasets=("hopper-medium", "hopper-medium-replay"))
    names = ("ablation-bc", "ablation-pessimism", "sweep-beta", "sweep-decay", "sweep-alpha")
    (block,) = blocks(unique(*names, request=request))
    assert len(block.variants) == 12  # the default, no BC, no penalty, 3 of β, 2 of γ_bc, 4 of α
    assert len(block.runs) == 12 * 2 * 5
    assert len(list(blocks(unique("ablation-penalty", request=request)))) == 2
    assert len(list(blocks(unique("sweep-critics", request=request)))) == 4


def test_what_is_no_product_is_split_and_nothing_is_lost() -> None:
    runs = unique("sweep-beta")[:-1]  # one of forty is there already
    found = list(blocks(runs))
    assert sorted(run.key() for block in found for run in block.runs) == sorted(run.key() for run in runs)
    for block in found:
        assert len(block.runs) == len(block.datasets) * len(block.variants) * len(block.seeds)


def test_the_comparison_is_the_papers() -> None:
    runs = unique("main-table")
    assert {run.algorithm for run in runs} == {
        "score", "mopo", "morel", "bcq", "bear", "uwac", "cql", "td3-bc", "pbrl-prior", "pbrl"
    }  # fmt: skip
    assert len({run.dataset for run in runs}) == 15
    assert len(runs) == 10 * 15 * 5
    assert unique("main-table", "aggregates", "profiles") == runs


def test_sources() -> None:
    assert DAY.data(["hopper-medium"]) == ["replica:hopper-medium"]
    assert Request(SCALES["day"], ("d4rl",)).data(["hopper-medium"]) == ["d4rl:hopper-medium-v2"]
    picked = dataclasses.replace(DAY, datasets=("walker2d-medium",), seeds=(7,), steps=1_000)
    (first, *rest) = get_experiment("ablation-bc").plan(picked)
    assert (first.run.dataset, first.run.seed, first.run.steps) == ("replica:walker2d-medium", 7, 1_000)
    assert len(rest) == 1


def test_files_as_source(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither replica nor d4rl"):
        Request(SCALES["day"], (str(tmp_path / "missing.hdf5"),)).data(["hopper-medium"])
    file = tmp_path / "hopper_medium_replay-v2.hdf5"
    file.touch()
    request = Request(SCALES["day"], (str(file),))
    assert request.data(["anything"]) == [str(file)]
    with pytest.raises(InputError, match="give the files you want"):
        dataclasses.replace(request, datasets=("hopper-medium",)).data(["anything"])
    with pytest.raises(InputError, match="no file of hopper-expert"):
        request.counterpart("hopper-expert", ["hopper-medium-replay"])
    assert next(asked.run.dataset for asked in get_experiment("uncertainty-map").plan(request)) == str(file)


def test_scales_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="trial, day or paper"):
        get_scale("month")
    for algorithm in ("score", "bear", "uwac", "iql", "pbrl", "pbrl-prior"):
        usual = get_algorithm(algorithm).Config()
        mine = scheduled(usual, 1_000_000)
        assert mine
        assert mine == {name: getattr(usual, name) for name in mine}, "a run as long as the paper's has the defaults"
    assert scheduled(get_algorithm("iql").Config(), 4_000) == {"schedule_steps": 4_000}
    assert "proves nothing" in SCALES["trial"].proves


def test_a_picture_says_what_was_really_run() -> None:
    day, trial = Request(SCALES["day"]), Request(SCALES["trial"])
    assert day.proves == SCALES["day"].proves
    assert dataclasses.replace(day, seeds=(5, 6, 7, 8, 9)).proves == SCALES["day"].proves
    assert "100,000 updates and 1 seed," in dataclasses.replace(day, steps=100_000, seeds=(0,)).proves
    assert "300,000 updates and 3 seeds," in dataclasses.replace(day, seeds=(0, 1, 2)).proves
    assert dataclasses.replace(trial, steps=10).proves == SCALES["trial"].proves


def test_stored_runs_find_their_line() -> None:
    def result(**settings: Any) -> RunResult:
        config = dataclasses.asdict(make_config(get_algorithm("score"), settings))
        return RunResult(Path(), "r", "score", "d", None, None, 0, config, "finished", 1, 1, {})

    variants = [Variant("SCORE"), Variant("without", {"bc_weight": 0.0})]
    found = matching(variants, [result(bc_weight=0.0), result(), result(bc_weight=0.5)])
    assert [done.label for done in found] == ["without", "SCORE"]
    among_others = [result(bc_weight=0.0), result(), result(beta=0.7), result(bc_weight=0.0, beta=0.5)]
    assert [done.result for done in matching(variants, among_others)] == among_others[:2], "another experiment's runs"
    assert matching(variants, [result(), result(beta=0.7)]) == [], "one line compares nothing"
    with pytest.raises(InputError, match=r"differ in beta \(0.5, 0.7\)"):
        matching(variants, [result(beta=0.5), result(beta=0.7, bc_weight=0.0)])
    with pytest.raises(InputError, match=r"differ in updates \(1, 2\)"):
        matching(variants, [result(), dataclasses.replace(result(bc_weight=0.0), steps=2)])


def test_a_product_is_a_product() -> None:
    request = Request(SCALES["smoke"])
    asked = product(request, [Variant("a"), Variant("b", {"beta": 0.1})], ["replica:hopper-medium"])
    assert [(run.label, run.run.seed) for run in asked] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert asked[0].run.config.hidden == (16, 16)


def test_of_several_lengths_the_fullest_is_shown() -> None:
    def result(steps: int, **settings: Any) -> RunResult:
        config = dataclasses.asdict(make_config(get_algorithm("score"), settings))
        return RunResult(Path(), "r", "score", "d", None, None, 0, config, "finished", steps, steps, {})

    lines = [Variant("low", settings={"beta": 0.1}), Variant("high", settings={"beta": 0.2})]
    kept = [result(1, beta=0.1), result(1, beta=0.2), result(2, beta=0.2), result(3, beta=0.2)]
    assert {(done.label, done.result.steps) for done in matching(lines, kept)} == {("low", 1), ("high", 1)}
