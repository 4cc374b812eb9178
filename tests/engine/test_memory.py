"""Memory is predicted before a fleet starts; a fleet that does not fit is split."""

from typing import Any

import jax
import numpy as np
import pytest

from score_rl.algorithms.algorithm import cycle
from score_rl.engine import memory
from score_rl.engine.batches import rows_bytes
from score_rl.engine.memory import (
    GIBIBYTE,
    FleetSplit,
    Limit,
    footprint,
    measured_need,
    split_fleet,
    upper_bound,
)
from score_rl.engine.program import FleetProgram
from tests.engine.made_up import make_runs, recording


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("score", {}),
        pytest.param("cql", {}, marks=pytest.mark.slow),
        pytest.param("mopo", {"rollouts": (500,), "rollout_every": (50,)}, marks=pytest.mark.slow),
    ],
)
def test_the_prediction_is_the_compilers_figure(algorithm: str, settings: dict[str, Any]) -> None:
    """Continued from two and four runs to twelve, on data that the probe never saw."""
    data = [recording(rows=5000), recording("two", rows=3000, seed=1)]
    runs = make_runs(data, range(6), algorithm, **settings)
    updates = cycle(runs[0].algorithm, runs[0].config)
    program = FleetProgram(runs)
    assert program.rows.nbytes == sum(rows_bytes(d) for d in {r.dataset.checksum: r.dataset for r in runs}.values())
    predicted = measured_need(runs[0], updates).of(runs)
    compiled = program.memory(updates)
    assert compiled * 0.9 < predicted
    if not runs[0].algorithm.stages:  # where there are stages, theirs may be the larger need
        assert predicted < compiled * 1.1
    assert upper_bound(runs[0]) * len(runs) + program.rows.nbytes > compiled


def test_a_fleet_that_fits_is_left_alone_without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = make_runs([recording()], range(12))
    monkeypatch.setattr(memory, "_compiled_need", lambda *_: pytest.fail("compiled although the bound was enough"))
    assert split_fleet(runs, 50, Limit(64 * GIBIBYTE)) == FleetSplit([runs], allowed=int(memory.SHARE * 64 * GIBIBYTE))
    assert split_fleet(runs, 50, Limit(None)) == FleetSplit([runs])


@pytest.mark.slow
def test_parts_are_few_even_fit_and_keep_their_order() -> None:
    runs = make_runs([recording(), recording("two", seed=1)], range(5))
    need = measured_need(runs[0], 50)
    limit = int(need.of(runs[:4]) / memory.SHARE) + 1
    split = split_fleet(runs, 50, Limit(limit))
    assert [len(part) for part in split.parts] == [4, 3, 3]
    assert [run for part in split.parts for run in part] == runs
    assert FleetProgram(split.parts[0]).memory(50) <= limit
    assert split.whole == need.of(runs)
    assert split.alone is None


def test_where_not_even_one_run_fits_there_are_no_parts() -> None:
    small, large = recording(rows=300), recording("large", rows=5000, seed=1)
    runs = make_runs([small, large], range(2))
    split = split_fleet(runs, 50, Limit(10_000))
    assert split.parts == []
    assert split.allowed == 9_000
    assert split.alone == measured_need(runs[0], 50).of([run for run in runs if run.dataset is large][:1])
    assert split.whole is not None
    assert split.whole > split.alone


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (98_304, "96.00 KiB"), (3 * 2**19, "1.50 MiB"), (GIBIBYTE, "1.00 GiB")],
)
def test_sizes_are_said_in_a_unit_that_shows_them(count: Any, text: str) -> None:
    assert memory.as_size(count) == text


def test_a_run_alone_is_only_held_against_a_limit_that_was_asked_for() -> None:
    runs = make_runs([recording()], seeds=[0])
    assert split_fleet(runs, 50, Limit(10_000)) == FleetSplit([runs]), "compiling will say"
    split = split_fleet(runs, 50, Limit(10_000, asked=True))
    assert split.parts == []
    assert split.alone is not None
    need = FleetProgram(runs).memory(50)
    assert split_fleet(runs, 50, Limit(int(need / memory.SHARE * 1.05), asked=True)).parts == [runs]


def test_a_footprint_is_the_compilers_figure_and_the_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = make_runs([recording()], seeds=[0, 1])
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
