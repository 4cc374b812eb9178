"""Memory is predicted before a fleet starts; what does not fit is trained in parts, with the same results."""

import jax
import numpy as np
import pytest

import score_rl
from score_rl.algorithms.algorithm import cycle
from score_rl.algorithms.registry import get_algorithm
from score_rl.engine import memory
from score_rl.engine.memory import (
    GIBIBYTE,
    FleetSplit,
    Limit,
    footprint,
    measured_need,
    rows_bytes,
    split_fleet,
    upper_bound,
)
from score_rl.engine.program import FleetProgram
from score_rl.errors import InputError, Stopped
from score_rl.run import launch
from score_rl.run.expansion import expand_runs
from score_rl.store.request import ExperimentSpec
from tests.run.conftest import recording

SMALL = {"hidden": ((32, 32),), "batch_size": (32,)}


def runs_of(algorithm="score", datasets=(), seeds=range(12), **settings):
    spec = ExperimentSpec(
        algorithm=algorithm, datasets=tuple(d.name for d in datasets), seeds=tuple(seeds), settings=SMALL | settings,
        steps=100, eval_every=100, eval_episodes=1, log_every=50,
    )  # fmt: skip
    return expand_runs(spec, get_algorithm(algorithm), datasets)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("score", {}),
        pytest.param("cql", {}, marks=pytest.mark.slow),
        pytest.param("mopo", {"rollouts": (500,), "rollout_every": (50,)}, marks=pytest.mark.slow),
    ],
)
def test_the_prediction_is_the_compilers_figure(algorithm, settings):
    """Continued from two and four runs to twelve, on data that the probe never saw."""
    runs = runs_of(algorithm, [recording(rows=5000), recording("two", rows=3000, seed=1)], range(6), **settings)
    updates = cycle(runs[0].algorithm, runs[0].config)
    program = FleetProgram(runs)
    assert program.rows.nbytes == sum(rows_bytes(d) for d in {r.dataset.checksum: r.dataset for r in runs}.values())
    predicted = measured_need(runs[0], updates).of(runs)
    compiled = program.memory(updates)
    assert compiled * 0.9 < predicted
    if not runs[0].algorithm.stages:  # where there are stages, theirs may be the larger need
        assert predicted < compiled * 1.1
    assert upper_bound(runs[0]) * len(runs) + program.rows.nbytes > compiled


def test_a_fleet_that_fits_is_left_alone_without_compiling(monkeypatch):
    runs = runs_of(datasets=[recording()])
    monkeypatch.setattr(memory, "_compiled_need", lambda *_: pytest.fail("compiled although the bound was enough"))
    assert split_fleet(runs, 50, Limit(64 * GIBIBYTE)) == FleetSplit([runs], allowed=int(memory.SHARE * 64 * GIBIBYTE))
    assert split_fleet(runs, 50, Limit(None)) == FleetSplit([runs])


@pytest.mark.slow
def test_parts_are_few_even_fit_and_keep_their_order():
    runs = runs_of(datasets=[recording(), recording("two", seed=1)], seeds=range(5))
    need = measured_need(runs[0], 50)
    limit = int(need.of(runs[:4]) / memory.SHARE) + 1
    split = split_fleet(runs, 50, Limit(limit))
    assert [len(part) for part in split.parts] == [4, 3, 3]
    assert [run for part in split.parts for run in part] == runs
    assert FleetProgram(split.parts[0]).memory(50) <= limit
    assert split.whole == need.of(runs)
    assert split.alone is None


def test_where_not_even_one_run_fits_there_are_no_parts():
    small, large = recording(rows=300), recording("large", rows=5000, seed=1)
    runs = runs_of(datasets=[small, large], seeds=range(2))
    split = split_fleet(runs, 50, Limit(10_000))
    assert split.parts == []
    assert split.allowed == 9_000
    assert split.alone == measured_need(runs[0], 50).of([run for run in runs if run.dataset is large][:1])
    assert split.whole is not None
    assert split.whole > split.alone


OPTIONS = {
    "seeds": range(5), "transitions": 2000, "steps": 60, "eval_every": 30, "log_every": 10, "eval_episodes": 1,
    "config": {"hidden": (16, 16), "batch_size": 16}, "quiet": True, "tensorboard": False,
}  # fmt: skip


def limit_for(runs):
    """GiB into which so many runs of OPTIONS fit."""
    data = score_rl.load_dataset("replica:hopper-medium", transitions=2000)
    made = runs_of(datasets=[data], hidden=((16, 16),), batch_size=(16,))
    return (measured_need(made[0], 10).of(made[:runs]) / memory.SHARE + 1) / GIBIBYTE


def states(experiment):
    return {run.id: [np.asarray(leaf) for leaf in jax.tree.leaves(run.state.critics)] for run in experiment}


@pytest.mark.slow
def test_results_do_not_depend_on_the_split_and_resume_keeps_it(tmp_path, monkeypatch):
    whole = score_rl.train("replica:hopper-medium", out=tmp_path / "whole", **OPTIONS)
    assert {run.record.fleet for run in whole} == {0}
    limit = limit_for(2)

    class Impatient(launch.StopRequest):
        """Stops in the second fleet."""

        asked = property(lambda self: len(list((tmp_path / "parts").glob("fleet-1/*"))) > 0, lambda self, value: None)

    with monkeypatch.context() as patch:
        patch.setattr(launch, "StopRequest", Impatient)
        with pytest.raises(Stopped):
            score_rl.train(
                "replica:hopper-medium", out=tmp_path / "parts", memory_limit=limit, checkpoint_minutes=0, **OPTIONS
            )
    resumed = score_rl.resume(tmp_path / "parts", quiet=True, tensorboard=False)
    assert [(run.record.fleet, run.record.position) for run in resumed] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    assert {run.status.state for run in resumed} == {"finished"}
    expected, found = states(whole), states(resumed)
    for name, leaves in expected.items():
        for mine, other in zip(leaves, found[name], strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-5)
    for run in whole:
        np.testing.assert_allclose(
            run.metrics.curve("train/q")[1], resumed[run.id].metrics.curve("train/q")[1], rtol=1e-3
        )


def test_a_fleet_leaves_no_memory_behind(tmp_path):
    """Parts are trained one after the other: what the first held must be gone before the second."""
    before = sum(array.nbytes for array in jax.live_arrays())
    score_rl.train("replica:hopper-medium", out=tmp_path / "run", **OPTIONS)
    after = sum(array.nbytes for array in jax.live_arrays())
    assert after - before < 10_000


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf")])
def test_a_limit_must_be_positive(tmp_path, limit):
    with pytest.raises(InputError, match="`memory_limit`"):
        score_rl.train(out=tmp_path / "run", memory_limit=limit)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (98_304, "96.00 KiB"), (3 * 2**19, "1.50 MiB"), (GIBIBYTE, "1.00 GiB")],
)
def test_sizes_are_said_in_a_unit_that_shows_them(count, text):
    assert memory.as_size(count) == text


def test_a_run_alone_is_only_held_against_a_limit_that_was_asked_for():
    runs = runs_of(datasets=[recording()], seeds=[0])
    assert split_fleet(runs, 50, Limit(10_000)) == FleetSplit([runs]), "compiling will say"
    split = split_fleet(runs, 50, Limit(10_000, asked=True))
    assert split.parts == []
    assert split.alone is not None
    need = FleetProgram(runs).memory(50)
    assert split_fleet(runs, 50, Limit(int(need / memory.SHARE * 1.05), asked=True)).parts == [runs]


def test_a_footprint_is_the_compilers_figure_and_the_checkpoints(monkeypatch):
    runs = runs_of(datasets=[recording()], seeds=[0, 1])
    program = FleetProgram(runs)
    takes = footprint(program, 50)
    assert takes.program == program.memory(50)
    assert takes.fits
    arrays = jax.tree.leaves(jax.tree.map(memory._stored, program.init()))
    assert takes.checkpoint == sum(np.asarray(leaf).nbytes for leaf in arrays)
    monkeypatch.setattr(memory, "total_memory", lambda device: takes.program - 1)
    assert not footprint(program, 50).fits
    monkeypatch.setattr(memory, "total_memory", lambda device: None)
    assert footprint(program, 50).fits
