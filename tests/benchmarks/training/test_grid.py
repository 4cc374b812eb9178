"""What a grid of settings chooses."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.training import grid
from score_rl.paper.experiments.choice import USUAL, Setting, setting_means
from score_rl.report.results import RunResult
from score_rl.report.stored_results import read_stored
from tests.paper.evidence.made_up import curve_of


def run(dataset: str, setting: Setting, seed: int, scores: list[float], **options: Any) -> RunResult:
    return curve_of("score", dataset, scores, seed=seed, beta=setting.beta, bc_decay=setting.bc_decay, **options)


def test_the_last_evaluations_of_all_seeds_decide_and_nothing_else() -> None:
    early, luck = Setting(0.1, 0.96), Setting(0.2, 0.98)
    falling = [run("hopper", early, seed, [100.0] * 15 + [10.0] * 5) for seed in (5, 6)]
    uneven = [run("hopper", luck, 5, [30.0] * 20), run("hopper", luck, 6, [0.0] * 20)]
    assert setting_means(falling + uneven) == {early: 10.0, luck: 15.0}
    assert grid.choices(falling + uneven) == {"hopper": luck}


def test_each_data_set_has_its_own_choice_and_equals_go_by_the_grids_order() -> None:
    rows = [("a", (0.5, 1.0), 7.0), ("a", (0.1, 0.98), 7.0), ("b", (0.5, 1.0), 2.0), ("b", (0.2, 1.0), 1.0)]
    made = [run(dataset, Setting(*setting), 5, [score]) for dataset, setting, score in rows]
    assert grid.choices(made) == {"a": Setting(0.1, 0.98), "b": Setting(0.5, 1.0)}


def test_a_setting_that_diverged_is_not_chosen() -> None:
    high, low = Setting(0.5, 1.0), Setting(0.1, 1.0)
    made = [run("a", high, 5, [99.0], status="diverged"), run("a", high, 6, [99.0, 99.0])]
    made += [run("a", low, seed, [1.0, 1.0]) for seed in (5, 6)]
    assert grid.choices(made) == {"a": low}
    assert grid.choices(made[:2]) == {}


@pytest.mark.slow
def test_a_grid_is_trained_chosen_from_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def asked(stage: Any) -> Any:
        return grid.Arguments(
            stage=stage, sources=tmp_path, out=tmp_path, data="hopper-random", updates=8, choosing=(5,),
            reported=(0, 1), evaluations=2, transitions=2_000, episodes=2,
        )  # fmt: skip

    grid.choose(asked("choose"))
    stored = read_stored(tmp_path / "results" / "grid-hopper-random")
    assert len(stored) == 9
    assert all(run.chooses_settings for run in stored)
    chosen = grid.choices(stored)["replica:hopper-random"]
    grid.report(asked("report"))
    folders = [path.parent for path in (tmp_path / "results").glob("chosen-*/summary.json")]
    if chosen == USUAL:
        assert folders == []
        assert "already reported" in capsys.readouterr().out
        return
    (folder,) = folders
    assert folder.name == f"chosen-beta-{chosen.beta:g}-decay-{chosen.bc_decay:g}-hopper-random"
    for run in read_stored(folder):
        assert run.request["chosen_by_seeds"] == [5]
        assert set(run.fresh_scores) == {2}
