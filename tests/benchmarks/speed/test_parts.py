"""The parts of the speed benchmark, small: they measure the real thing and store it as they go."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.speed import scale, startup, timing, updates, whole_training
from benchmarks.speed.arguments import Arguments
from score_rl.algorithms.registry import get_algorithm
from score_rl.engine.batches import pack_rows


@pytest.fixture
def measure(tmp_path: Path) -> Callable[..., Any]:
    def call(part: Callable[..., Any], **options: Any) -> dict[str, Any]:
        out = tmp_path / "speed.json"
        asked = Arguments(out=out, rounds=1, seconds=0.2, **options)
        part(asked, timing.Results(out), timing.Clock(options.get("limit", 100.0)))
        return json.loads(out.read_text()) if out.exists() else {}

    return call


@pytest.mark.slow
def test_methods_are_merged_into_one_file(measure: Any) -> None:
    measure(updates.measure_methods, methods=("bc",), sizes=(1, 2))
    stored = measure(updates.measure_methods, methods=("td3-bc",), sizes=(1,))["methods"]
    assert set(stored) == {"bc", "td3-bc"}
    assert set(stored["bc"]["rates"]) == {"1", "2"}
    assert stored["bc"]["rates"]["1"]["run_steps_per_second"] > stored["td3-bc"]["rates"]["1"]["run_steps_per_second"]
    assert stored["bc"]["provenance"]["device"]["platform"] == "cpu"


def test_a_part_begins_nothing_after_its_limit(measure: Callable[..., Any]) -> None:
    assert measure(updates.measure_methods, methods=("bc",), limit=-1.0) == {}


@pytest.mark.parametrize(
    ("method", "on_cpu", "on_gpu"), [("score", 20, 2_000), ("mopo", 1_000, 2_000), ("morel", 1, 2)]
)
def test_a_call_is_of_whole_cycles_and_of_few_updates_where_one_stands_for_many(
    method: str, on_cpu: int, on_gpu: int
) -> None:
    algorithm = get_algorithm(method)
    windows = [timing.window_of(algorithm, algorithm.Config(), platform) for platform in ("cpu", "gpu")]
    assert windows == [on_cpu, on_gpu]


@pytest.mark.slow
def test_a_model_based_method_is_timed_in_whole_cycles() -> None:
    small = {"rollouts": 100, "rollout_every": 10, "hidden": (16, 16), "models": 2, "elites": 1, "batch_size": 16}
    fleet = timing.Engine("mopo", 2, 0.1, small)
    assert fleet.window % 10 == 0
    assert fleet.turn() > 0


def test_rollouts_in_an_untrained_model_are_as_long_as_in_a_trained_one() -> None:
    small = {
        "models": 2, "dynamics_hidden": (8, 8), "reward_hidden": (8, 8), "hidden": (8, 8), "paths": 4, "horizon": 6,
        "fisher_iterations": 2,
    }  # fmt: skip
    fleet = timing.Engine("morel", 1, 0.1, small)
    fleet.turn()
    _, metrics = fleet.program.advance(fleet._state, fleet._step, fleet.window)
    assert metrics["model_steps"].tolist() == [6.0]


@pytest.mark.slow
def test_training_keeps_a_share_of_its_speed(measure: Any) -> None:
    options = {"datasets": ("replica:hopper-medium",), "seeds": 1, "transitions": 2000, "updates": 20, "eval_every": 10}
    stored = measure(whole_training.measure_overlap, **options)["overlap"]["hopper"]
    with_judging, without = stored["rounds"]["with"][0], stored["rounds"]["without"][0]
    assert with_judging["judged"] == 2
    assert without["judged"] == 0
    assert with_judging["updates"] == without["updates"] == 20
    kept = without["training_seconds"] / with_judging["training_seconds"]
    assert stored["share_of_speed_kept"] == pytest.approx(kept)
    assert 0 < with_judging["training_seconds"] < with_judging["seconds"]


@pytest.mark.slow
def test_a_stretch_ends_in_time_and_is_continued(measure: Any) -> None:
    options = {"datasets": ("replica:hopper-medium",), "seeds": 1, "transitions": 2000, "eval_every": 10}
    stored = measure(whole_training.measure_stretch, minutes=2 / 60, steps=100_000, **options)["stretch"]
    fleet = stored["fleets"][0]
    assert stored["complete"]
    assert 0 < fleet["updates"] < 100_000
    assert fleet["judged"] > 0
    assert stored["minutes_for_all"] * 60 == pytest.approx(100_000 * fleet["seconds"] / fleet["updates"])


def test_one_thing_grows_at_a_time() -> None:
    points = scale.scale_points(15, 75)
    base = {"runs": 15, "critics": 5, "batch": 256, "width": 256}
    assert base in points
    assert all(sum(point[name] != base[name] for name in base) <= 1 for point in points)
    assert len({tuple(point.values()) for point in points}) == len(points)


@pytest.mark.slow
def test_starting_is_timed(measure: Any) -> None:
    stored = measure(startup.measure_startup)["startup"]
    assert stored["help_seconds"] < 1.0
    assert stored["first_update_warm_seconds"] < stored["first_update_cold_seconds"]


@pytest.mark.parametrize("name", ["torch-loop", "torch-loop-tuned", "torch-batched"])
def test_the_torch_versions_leave_nothing_out(name: str) -> None:
    """Every parameter and every target moves, and stays finite."""
    pytest.importorskip("torch")
    from benchmarks.speed import torch_batched, torch_loop

    rows, shapes = pack_rows(timing.made_up_data(1000)), (timing.OBSERVATION, timing.ACTION)
    if name == "torch-batched":
        update, parameters = torch_batched.make_update(rows, *shapes, "cpu")
    else:
        update, parameters = torch_loop.make_update(rows, *shapes, "cpu", tuned=name.endswith("tuned"))
    assert sum(p.numel() for p in parameters) == 865_814
    start = [p.detach().clone() for p in parameters]
    for _ in range(4):
        update()
    moved = [float((p.detach() - s).abs().max()) for p, s in zip(parameters, start, strict=True)]
    assert np.isfinite(moved).all()
    assert min(moved) > 0
