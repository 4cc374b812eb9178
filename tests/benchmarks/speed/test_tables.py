"""Tables of speeds in the documents are what is machines."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.speed import figures, floors, machines, summary, tables, update_tables
from benchmarks.speed.machines import Machine
from benchmarks.speed.scale_figure import draw_scale
from score_rl.algorithms.registry import algorithm_names
from score_rl.paper.evidence.figures import numbers_in
from score_rl.report.results import SPEED, Curve, RunResult
from score_rl.report.stored_results import store_results


@pytest.mark.parametrize("document", tables.DOCUMENTS)
def test_documents_show_the_stored_figures(document: str) -> None:
    text = (tables.ROOT / document).read_text()
    assert "<!-- speed:" in text
    assert tables.rewritten(text, machines.machines()) == text, "run: make tables"


def test_every_table_stands_in_a_document() -> None:
    text = "".join((tables.ROOT / document).read_text() for document in tables.DOCUMENTS)
    for name in tables.TABLES:
        assert f"<!-- speed:{name} -->" in text


def machine(cores: int = 2, rate: float = 123.0) -> dict[str, dict[str, dict[str, Any]]]:
    stamp = {"device": {"platform": "cpu", "kind": "cpu"}, "cores": cores, "code": "0123456789abcdef"}
    entry = {"rates": {"1": {"run_steps_per_second": rate}}, "provenance": stamp, "measured": "2026-01-01T00:00:00"}
    return {"methods": {"cql": entry}}


def test_another_figure_is_another_table(tmp_path: Path) -> None:
    document = "before <!-- speed:methods -->\nold\n<!-- /speed:methods --> after"
    texts = []
    for value in (123.0, 456.0):
        (tmp_path / "cpu.json").write_text(json.dumps(machine(rate=value)))
        texts.append(tables.rewritten(document, machines.machines(tmp_path)))
    assert "| 123 |" in texts[0]
    assert "| 456 |" in texts[1]
    for text in texts:
        assert text.startswith("before ")
        assert text.endswith(" after")
        assert "old" not in text
        assert all(f"| `{name}` |" in text for name in algorithm_names())
        assert "691,216" in text
        assert "012345678" in text


def test_an_unknown_table_and_a_mixed_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no table is called 'nonsense'"):
        tables.rewritten("<!-- speed:nonsense --> <!-- /speed:nonsense -->", [])
    mixed = machine()
    mixed["methods"]["bc"] = machine(cores=16)["methods"]["cql"]
    (tmp_path / "mixed.json").write_text(json.dumps(mixed))
    with pytest.raises(ValueError, match="mixes machines"):
        machines.machines(tmp_path)


def test_the_floors_are_counted_right() -> None:
    """Against the planning's figure of 1.03 GFLOP for everything, and by hand for a network of one unit."""
    assert floors.products(floors.Sizes()) == pytest.approx(1.03e9, rel=0.05)
    one = floors.Sizes(observation=1, action=1, width=1, critics=1, batch=1, actor_delay=1)
    actor, critic = 3, 4  # weights
    expected = 2 * (actor + 3 * critic + 2) + 2 * (actor + critic + critic + actor + 2)
    assert floors.products(one) == expected
    assert sum(floors.traffic(one).values()) == 4 * (6 * 7 + (7 + 6) + 6 * 6 + (7 + 6) + 6)


def test_plots_are_drawn_from_the_stored_points(tmp_path: Path) -> None:
    points = [
        {"runs": n, "critics": 5, "batch": 256, "width": 256, "run_steps_per_second": 100.0, "bytes": n << 20,
         "data_bytes": 0} for n in (1, 5)
    ]  # fmt: skip
    path = Path(tmp_path) / "scale.svg"
    draw_scale(machines.Machine("2 CPU cores", {"scale": {"base_runs": 1, "points": points}}), path)
    first = path.read_bytes()
    draw_scale(machines.Machine("2 CPU cores", {"scale": {"base_runs": 1, "points": points}}), path)
    assert path.read_bytes() == first
    assert b"<svg" in first


@pytest.mark.parametrize("name", ["comparison.svg", "fleet.svg"])
def test_figures_are_drawn_from_what_is_stored(name: str) -> None:
    _, numbers = figures.drawn(machines.machines())[name]
    stored = numbers_in(tables.ROOT / "docs" / figures.FOLDER / name)
    assert stored == json.loads(figures.as_stored(numbers)), "run: make tables"


def test_a_fleet_is_compared_with_as_many_runs_one_after_the_other(tmp_path: Path) -> None:
    about = {"critics": 5, "batch": 256, "width": 256}
    points = [
        {"runs": 1, "run_steps_per_second": 1000.0, **about},
        {"runs": 15, "run_steps_per_second": 3000.0, **about},
    ]
    numbers = figures.fleet_minutes(Machine("A GPU", {"scale": {"points": points}}))
    assert numbers["alone"] == pytest.approx(1_000_000 / 1000 / 60)
    assert numbers["fleet"] == pytest.approx(15_000_000 / 3000 / 60)
    figures.fleet_figure(numbers).savefig(tmp_path / "a.svg")


def test_the_first_screen_names_the_slowest_and_the_fastest_way_in_pytorch() -> None:
    fleets = [
        {"runs": 1, "run_steps_per_second": 100.0, "times": {"torch-loop": 4.0, "torch-batched": 2.0}},
        {"runs": 5, "run_steps_per_second": 300.0, "times": {"torch-loop": 12.0, "torch-batched": 6.0}},
    ]
    assert summary._speeds(Machine("M", {"score": {"fleets": fleets}})) == [
        "M", "100", "300 (5 runs)", "2.0 to 4.0×", "6.0 to 12.0×",
    ]  # fmt: skip


def test_readers_of_the_readme_see_ranges_and_the_best_peer_first() -> None:
    def timed(name: str, rate: float, times: float) -> Machine:
        fleet = {"runs": 1, "run_steps_per_second": rate, "times": {"torch-loop": times}}
        return machines.Machine(name, {"score": {"fleets": [fleet]}})

    found = [timed("2 CPU cores (A)", 20.0, 2.0), timed("2 CPU cores (B)", 30.0, 3.0), timed("A GPU", 4_000.0, 50.0)]
    peers = {
        "device": "A GPU", "torch": {"times": [40, 60]},
        "jax": {"rates": {"score-rl": {"1": 20, "75": 200}, "Unifloral": {"1": 10, "75": 80}}},
    }  # fmt: skip
    said = " ".join(update_tables.readme(found, peers).split())
    assert "2.5 times Unifloral" in said, "of equal fleets"
    assert "20 times Unifloral as it ships" in said, "ours of 75 runs, its own of one"
    assert "SCORE, same GPU: 4,000 (one run), 40 to 60 times a loop over the critics in PyTorch" in said
    assert "SCORE, 2 CPU cores: 20 to 30 (one run), 2.0 to 3.0 times such a loop" in said
    assert said.index("Unifloral") < said.index("PyTorch") < said.index("CPU")


def test_a_processor_that_is_known_is_named() -> None:
    stamp = {"device": {"platform": "cpu", "kind": "cpu"}, "cores": 2}
    assert machines.device_name(stamp) == "2 CPU cores"
    assert machines.device_name(stamp | {"processor": "X, amx_bf16"}) == "2 CPU cores (X, amx_bf16)"
    assert (
        machines.device_name(stamp | {"processor": "X", "device": {"platform": "gpu", "kind": "NVIDIA Y"}})
        == "NVIDIA Y"
    )


def write_training(
    folder: Path, name: str, paces: list[float | None], *, method: str = "score", **request: Any
) -> None:
    """Stored results of two data sets and two seeds; a pace for each data set."""
    provenance = {"device": {"platform": "gpu", "kind": "NVIDIA Y"}, "cores": 4, "code": "0123456789abcdef"}
    runs = [
        RunResult(
            folder=Path(name), name=f"{dataset}_seed={seed}", algorithm=method, dataset=dataset, environment="hopper",
            task="hopper", seed=seed, config={}, status="finished", step=120_000, steps=120_000,
            curves={} if pace is None else {SPEED: Curve(np.array([120_000]), np.array([pace]))},
            request={"steps": 120_000, "eval_every": 60_000, **request}, provenance=provenance,
        )
        for dataset, pace in zip("ab", paces, strict=True) for seed in (0, 1)
    ]  # fmt: skip
    store_results(runs, folder / name, (SPEED,))


def test_trainings_that_ended_say_how_long_they_took(tmp_path: Path) -> None:
    write_training(tmp_path, "one", [1_000.0, 1_000.0])
    write_training(tmp_path, "older", [None, None])
    write_training(tmp_path, "other", [1_000.0, 1_000.0], method="cql")
    write_training(tmp_path, "stopped", [1_000.0, 1_000.0], steps_asked_for=240_000)
    write_training(tmp_path, "trial", [1_000.0, 1_000.0], settings={"bc_decay": [1.0]})
    (found,) = machines.trainings("score", tmp_path)
    assert (found.folder, found.machine, found.runs, found.evaluations, found.minutes) == ("one", "NVIDIA Y", 4, 2, 2.0)
    assert found.datasets == ["a", "b"]
    write_training(tmp_path, "one", [1_000.0, 900.0])
    with pytest.raises(ValueError, match="one pace was expected"):
        machines.trainings("score", tmp_path)


def test_what_was_timed_is_spelled_out() -> None:
    assert update_tables._spelled_out("2/500/256 value") == "values, 2 runs, 500 critics, 256 rows"
    assert update_tables._spelled_out("cql:9 update") == "an update of CQL, 9 runs"
    assert update_tables._spelled_out("sac-n,critics=500:2 update") == "an update of SAC-N, critics=500, 2 runs"
