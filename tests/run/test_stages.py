"""Refreshes and stages: what happens between updates and before them, resumed and reused like updates."""

import os
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import score_rl
from score_rl.algorithms.algorithm import Algorithm, Batch, Data, cycle
from score_rl.algorithms.model_fitting import Fit, hold_out, not_held_out, scrambled
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import config, setting
from score_rl.data.dataset import Dataset
from score_rl.engine import effort
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.engine.stage_program import StageProgram
from score_rl.errors import InputError, Stopped
from score_rl.run import stage_cache
from score_rl.run.progress import TrainingProgress
from score_rl.run.stages import StageTrainer
from score_rl.store.checkpoints import checkpoints, load_checkpoint
from tests.run.conftest import recording

# -- refreshes ---------------------------------------------------------------------------------------------------------


@config
class CountingConfig:
    every: int = setting(4, "updates between refreshes")
    batch_size: int = setting(2, "read by nobody")
    normalise_states: bool = setting(False, "no")
    reward_scaling: Literal["none"] = setting("none", "no")


class Counts(NamedTuple):
    step: Array
    refreshed: Array
    latest: Array
    seen: Array


def count_refresh(
    config: CountingConfig, state: Counts, data: Data, key: jax.Array
) -> tuple[Counts, dict[str, jax.Array]]:
    seen = data.sample_starts(key, 3).sum() + data.sample(key, 2).rewards.sum()
    return state._replace(refreshed=state.refreshed + 1, latest=state.step, seen=seen), {"seen": seen}


def count_update(
    config: CountingConfig, state: Counts, batch: Batch, key: jax.Array, turn: int
) -> tuple[Counts, dict[str, jax.Array]]:
    age = (state.step - state.latest).astype(jnp.float32)
    return state._replace(step=state.step + 1), {"age": age, "turn": jnp.float32(turn)}


COUNTING = Algorithm(
    name="counting",
    title="Counting",
    summary="counts",
    Config=CountingConfig,
    init=lambda config, shapes, key: Counts(*(jnp.zeros((), jnp.int32),) * 3, jnp.zeros(())),
    update=count_update,
    policy=lambda state: state.step,
    act=lambda config, policy, observations, key=None: observations,
    turns=lambda config: 2,
    refresh=count_refresh,
    refresh_every=lambda config: config.every,
)


def count(windows: list[int], every: int = 4) -> tuple[Counts, dict[str, float]]:
    program = FleetProgram([Run("one", COUNTING, recording(), 0, CountingConfig(every=every))])
    state, start = program.init(), 0
    for window in windows:
        state, metrics = program.advance(state, start, window)
        start += window
    return jax.tree.map(lambda leaf: np.asarray(leaf)[0], (state, metrics))


def test_refreshes_come_before_every_so_many_updates() -> None:
    state, metrics = count([12])
    assert [int(count) for count in (state.step, state.refreshed, state.latest)] == [12, 3, 8]
    assert metrics["age"] == 1.5
    assert metrics["turn"] == 0.5


def test_the_length_of_a_window_changes_no_refresh() -> None:
    for found, expected in zip(count([4, 8])[0], count([12])[0], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_windows_are_whole_cycles() -> None:
    assert cycle(COUNTING, CountingConfig(every=3)) == 6
    with pytest.raises(ValueError, match="multiple of 4"):
        count([6])
    with pytest.raises(InputError, match=r"`log_every` is 15.*multiple of.*10"):
        score_rl.train("replica:hopper-medium", algorithm="mopo", steps=30, log_every=15, config={"rollout_every": 10})


# -- rows that are held out -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "rows"), [(500, 20), (501, 100), (37, 20), (1_000_000, 1_000)])
def test_held_out_rows_are_never_trained_on(length: int, rows: int) -> None:
    held = np.asarray(hold_out(jax.random.key(0), jnp.int32(length), rows))
    inside = held[held < length]
    assert len(inside) == min(rows, int(0.2 * length))
    assert (np.diff(held) > 0).all()
    assert not np.array_equal(held, hold_out(jax.random.key(1), jnp.int32(length), rows))
    numbers = jnp.arange(length - len(inside))
    trained = np.asarray(not_held_out(jnp.asarray(held), numbers))
    np.testing.assert_array_equal(np.sort(np.concatenate([trained, inside])), np.arange(length))


def test_a_bootstrap_sample_is_like_one_drawn_with_replacement() -> None:
    """Each of two networks misses about 1/e of the rows, and not the same ones."""
    rows, words = 20_000, np.array([123, 456_789], np.uint32)
    picked = np.asarray(scrambled(jnp.arange(rows, dtype=np.uint32)[None] ^ words[:, None])) % rows
    for sample in picked:
        assert abs(len(np.unique(sample)) / rows - (1 - 1 / np.e)) < 0.01
        assert np.histogram(sample, 20, (0, rows))[0].std() < 60  # 31 expected
    both = len(np.union1d(*picked)) / rows
    assert abs(both - (1 - 1 / np.e**2)) < 0.01


# -- stages in a fleet ------------------------------------------------------------------------------------------------

TINY: dict[str, Any] = {
    "hidden": (8, 8), "batch_size": 16, "rollouts": 16, "rollout_every": 10, "dynamics_hidden": (6, 6),
    "dynamics_decay": (1e-5, 1e-5, 1e-5), "models": 3, "elites": 2, "dynamics_epochs": 5, "held_out": 50,
}  # fmt: skip


def mopo_run(dataset: Dataset, seed: int, **settings: Any) -> Run:
    mopo = get_algorithm("mopo")
    return Run(f"{dataset.name}-{seed}", mopo, dataset, seed, mopo.Config(**(TINY | settings)))


def fit_all(program: Any, epochs: int, active: bool | np.ndarray = True) -> Any:
    state, told = program.init(), []
    for epoch in range(epochs):
        state, metrics = program.epoch(state, np.broadcast_to(active, len(program.program.runs)), epoch)
        told.append(jax.device_get(metrics))
    return jax.device_get(state), told


@pytest.mark.slow
def test_runs_are_fitted_alone_as_among_others_and_stop_one_by_one() -> None:
    """Data of different lengths: so are the epochs."""
    data = [recording("one"), recording("two", rows=300, seed=1)]
    runs = [mopo_run(dataset, seed, patience=1, dynamics_learning_rate=0.1) for dataset in data for seed in (0, 1)]
    program = StageProgram(FleetProgram(runs), 0)
    state, told = fit_all(program, 20)
    lasted = np.sum([epoch["working"] for epoch in told], axis=0)
    assert len(set(lasted)) > 1, "all stopped at once: nothing shows that they do so one by one"
    assert (lasted < 20).all()
    assert told[-1]["done"].all()
    place = 3
    alone, alone_told = fit_all(StageProgram(FleetProgram([runs[place]]), 0), 20)
    assert sum(bool(epoch["working"][0]) for epoch in alone_told) == lasted[place]
    for mine, single in zip(jax.tree.leaves(state), jax.tree.leaves(alone), strict=True):
        # Adam's steps of 0.1 magnify rounding, so whole arrays are compared, not their smallest numbers.
        mine, single = np.asarray(mine[place], np.float64), np.asarray(single[0], np.float64)
        assert np.linalg.norm(mine - single) <= 1e-2 * np.linalg.norm(single)
    # A run that is not active stays as it is.
    before, _ = fit_all(program, 0)
    after, told = fit_all(program, 1, np.array([True, False, True, True]))
    for old, new in zip(jax.tree.leaves(before.networks), jax.tree.leaves(after.networks), strict=True):
        assert (old[0] != new[0]).any()
        np.testing.assert_array_equal(old[1], new[1])
    assert told[0]["done"].tolist() == [False, True, False, False]


def test_a_stage_knows_its_data() -> None:
    """Statistics of all rows in treated units, and the rows with which episodes begin; padded to the longest list."""
    data = [recording("one"), recording("two", rows=300, seed=1)]
    overview = FleetProgram([mopo_run(dataset, 0) for dataset in data]).inputs.overview
    np.testing.assert_array_equal(overview.trajectories, [10, 6])
    np.testing.assert_array_equal(overview.starts[0], np.arange(0, 500, 50))
    np.testing.assert_array_equal(overview.starts[1], [*range(0, 300, 50), 0, 0, 0, 0])
    for place, dataset in enumerate(data):
        x = np.concatenate([dataset.observations, dataset.actions], axis=1).astype(np.float64)
        y = np.concatenate([dataset.rewards[:, None], dataset.next_observations - dataset.observations], axis=1)
        for spread, table in zip(overview.statistics, (x, y.astype(np.float64)), strict=True):
            np.testing.assert_allclose(spread.mean[place], table.mean(0), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(spread.std[place], table.std(0), rtol=1e-5)
            np.testing.assert_allclose(spread.deviation[place], np.abs(table - table.mean(0)).mean(0), rtol=1e-5)


@pytest.mark.slow
def test_stages_and_refreshes_are_sharded_over_devices() -> None:
    """Three runs on two forced CPU devices: equal to the same runs on one."""
    code = textwrap.dedent(
        """
        import jax, numpy as np
        from score_rl.engine.program import FleetProgram
        from score_rl.engine.stage_program import StageProgram
        from tests.run.conftest import recording
        from tests.run.test_stages import epoch_in_pieces, mopo_run
        assert len(jax.devices()) == 2
        runs, states = [mopo_run(recording(), seed) for seed in range(3)], []
        for devices in (jax.devices(), jax.devices()[:1]):
            program = FleetProgram(runs, devices)
            stage = StageProgram(program, 0)
            active = np.ones(program.devices.width, bool)
            fit, _ = stage.epoch(stage.init(), active, 0)
            pieces, _ = epoch_in_pieces(stage, stage.init(), active, 0, 10)
            for a, b in zip(*map(jax.tree.leaves, jax.device_get((fit, pieces)))):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
            state = stage.absorb(program.init(), stage.result(fit))
            state, _ = program.advance(state, 0, 10)
            assert len(state.step.sharding.device_set) == len(devices)
            states.append(jax.device_get(jax.tree.map(lambda leaf: leaf[:3], state)))
        for a, b in zip(*map(jax.tree.leaves, states)):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
        print("equal")
        """
    )
    path = os.pathsep.join([".", os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=500)
    assert done.stdout.strip() == "equal", done.stderr


# -- epochs in pieces --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mopo", "morel"])
def test_a_stage_is_compiled_once(name: str) -> None:
    """An update leaves every array with the type it has at first."""
    algorithm = get_algorithm(name)
    fleet = FleetProgram([Run("one", algorithm, recording(), 0, algorithm.Config())])
    for number in range(len(algorithm.stages)):
        stage = StageProgram(fleet, number)
        count = jax.ShapeDtypeStruct((), jnp.int32)
        before = stage.state_shapes()
        for after in (
            jax.eval_shape(stage._part, fleet.inputs, before, stage.progress_shapes(), *(count,) * 3, fleet.rows)[0],
            jax.eval_shape(stage._epoch, fleet.inputs, before, jnp.ones(1, bool), count, fleet.rows)[0],
        ):
            for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
                assert (old.shape, old.dtype, old.weak_type) == (new.shape, new.dtype, new.weak_type)


def epoch_in_pieces(
    program: StageProgram, state: Fit, active: np.ndarray, epoch: int, piece: int
) -> tuple[Fit, dict[str, jax.Array]]:
    begun = program.begin(state, active)
    updates = np.asarray(begun.updates).max()
    for first in range(0, updates, piece):
        state, begun = program.part(state, begun, epoch, first, min(first + piece, updates))
    return program.end(state, begun, active)


def test_pieces_of_an_epoch_change_nothing() -> None:
    """Data of two lengths, a run that is not active and one that is done."""
    data = [recording("one"), recording("two", rows=300, seed=1)]
    program = StageProgram(FleetProgram([mopo_run(dataset, seed) for dataset in data for seed in (0, 1)]), 0)
    active, found = np.array([True, False, True, True]), {}
    for piece in (1, 7, 16, 100, None):  # epochs of 29 and 16 updates
        state, told = program.init(), []
        state = state._replace(stale=program.program.put(np.array([0, 0, 0, 5], np.int32)))
        for epoch in range(3):
            if piece is None:
                state, metrics = program.epoch(state, active, epoch)
            else:
                state, metrics = epoch_in_pieces(program, state, active, epoch, piece)
            told.append(jax.device_get(metrics))
        found[piece] = jax.device_get(state), told
    for piece in (1, 7, 16):
        jax.tree.map(np.testing.assert_array_equal, found[piece], found[100])
    # But for roundings: the program of a whole epoch is another.
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), found[None], found[100])
    state, told = found[7]
    assert [epoch["working"].tolist() for epoch in told] == [[True, False, True, False]] * 3
    first = jax.device_get(program.init())
    for old, new in zip(jax.tree.leaves(first.networks), jax.tree.leaves(state.networks), strict=True):
        np.testing.assert_array_equal(old[[1, 3]], new[[1, 3]])
        assert (old[[0, 2]] != new[[0, 2]]).any(axis=tuple(range(1, old.ndim))).all()
    assert program._part._cache_size() == 1


def test_more_work_smaller_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    def piece(**settings: Any) -> int:
        stage = StageProgram(FleetProgram([mopo_run(recording(), seed, **settings) for seed in (0, 1)]), 0)
        assert stage.updates_per_call is not None
        return stage.updates_per_call

    monkeypatch.setattr(effort, "OPERATIONS_PER_CALL", 1e8)
    few, more = piece(batch_size=64), piece(batch_size=16)
    assert 1 < 2 * few < more < 8 * few
    monkeypatch.setattr(effort, "OPERATIONS_PER_CALL", 1)
    assert piece() == 1
    on_a_gpu = FleetProgram([mopo_run(recording(), 0)])
    on_a_gpu.platform = "gpu"
    assert StageProgram(on_a_gpu, 0).updates_per_call is None


# -- stages in an experiment ------------------------------------------------------------------------------------------


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A small experiment with two runs; stages are kept in a folder of this test's own."""
    monkeypatch.setattr(stage_cache, "cache_folder", lambda: tmp_path / "cache")

    def call(name: str, seeds: tuple[int, ...] = (0, 1), **settings: Any) -> Any:
        return score_rl.train(
            "replica:hopper-medium", algorithm="mopo", transitions=3_000, seeds=list(seeds), config=TINY | settings,
            steps=20, eval_every=20, eval_episodes=1, log_every=10, checkpoint_minutes=0, out=tmp_path / name,
            tensorboard=False,
        )  # fmt: skip

    return call


def states(experiment: Any) -> Any:
    return [np.asarray(leaf) for run in experiment for leaf in jax.tree.leaves(run.state)]


def same(one: Any, other: Any) -> None:
    for a, b in zip(states(one), states(other), strict=True):
        np.testing.assert_array_equal(a, b)


def measured(experiment: Any) -> Any:
    return sorted(row for row in experiment.metrics if not row.name.startswith("speed/"))


@pytest.mark.slow
def test_a_stage_is_measured_and_reused(train: Any, capsys: pytest.CaptureFixture[str]) -> None:
    first = train("first")
    epochs, errors = first.runs[1].metrics.curve("dynamics/held_out_error")
    np.testing.assert_array_equal(epochs, np.arange(1, 6))
    assert np.isfinite(errors).all()
    assert not list(first.path.glob("fleet-0/stage-*")), "what a stage stored is of no use once training has begun"
    assert "reused" not in capsys.readouterr().err
    second = train("second")
    assert "reused" in capsys.readouterr().err
    assert "dynamics/held_out_error" not in second.metrics.names
    same(first, second)
    train("another", dynamics_learning_rate=2e-3)
    assert "reused" not in capsys.readouterr().err
    # One of three is new; what another run brings along changes nothing for those from the cache.
    mixed = train("mixed", seeds=(1, 2))
    assert "1 of 2 runs" in " ".join(capsys.readouterr().err.split())
    assert mixed.runs[0].metrics.last("dynamics/held_out_error") is None
    assert mixed.runs[1].metrics.last("dynamics/held_out_error") is not None
    for a, b in zip(
        jax.tree.leaves(mixed.runs[0].state.learned), jax.tree.leaves(first.runs[1].state.learned), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    for path in (first.path.parent / "cache").rglob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-8] + b"\xff" * 8)
    again = train("damaged")
    assert "damaged" in capsys.readouterr().err
    same(first, again)


@pytest.mark.parametrize("how", ["asked", pytest.param("killed", marks=pytest.mark.slow)])
def test_an_interrupted_stage_goes_on_to_the_same_bits(
    train: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    undisturbed = train("undisturbed")
    for path in (tmp_path / "cache").rglob("*.safetensors"):
        path.unlink()
    store = StageTrainer._store_metrics

    def interrupt(self: Any, epoch: Any, *rest: Any) -> None:
        store(self, epoch, *rest)
        if epoch == 3:
            self.context.stop.asked = True
            if how == "killed":  # after the rows of epoch 3 were written, before its checkpoint
                raise KeyboardInterrupt

    monkeypatch.setattr(StageTrainer, "_store_metrics", interrupt)
    with pytest.raises(Stopped if how == "asked" else KeyboardInterrupt):
        train("interrupted")
    kept = checkpoints(tmp_path / "interrupted" / "fleet-0" / "stage-dynamics")
    assert kept[0].stem == f"step-{3 if how == 'asked' else 2:010d}"
    monkeypatch.setattr(StageTrainer, "_store_metrics", store)
    resumed = score_rl.resume(tmp_path / "interrupted", tensorboard=False)
    same(undisturbed, resumed)
    assert measured(undisturbed) == measured(resumed)
    # Resumed once more after its first training checkpoint: the stage's measurements are still there.
    for path in checkpoints(tmp_path / "interrupted" / "fleet-0")[:1]:
        path.unlink()
    same(undisturbed, score_rl.resume(tmp_path / "interrupted", tensorboard=False))
    assert measured(undisturbed) == measured(resumed)


@pytest.mark.parametrize(
    ("how", "afterwards"),
    [
        ("asked", 50),
        pytest.param("killed", 50, marks=pytest.mark.slow),
        pytest.param("asked", 70, marks=pytest.mark.slow),
        pytest.param("asked", None, marks=pytest.mark.slow),  # gone on with where epochs are not cut
    ],
)
def test_a_stop_within_an_epoch_loses_nothing(
    train: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, afterwards: int | None
) -> None:
    """One of two runs comes from the cache; epochs have 185 updates."""
    train("other", seeds=(1,))
    kept = set((tmp_path / "cache").rglob("*.safetensors"))
    undisturbed = train("undisturbed")
    for path in set((tmp_path / "cache").rglob("*.safetensors")) - kept:
        path.unlink()
    shown, within, advance = [], StageTrainer._advance_within_epoch, TrainingProgress.advance

    def interrupt(self: Any, position: Any) -> Any:
        metrics = within(self, position)
        if position.open_epoch is not None and (position.epoch, position.open_epoch.done) == (2, 100):
            self.context.stop.asked = True
            if how == "killed":
                raise KeyboardInterrupt
        return metrics

    with monkeypatch.context() as patched:
        patched.setattr(StageProgram, "updates_per_call", 50)
        patched.setattr(TrainingProgress, "advance", lambda self, done: (shown.append(done), advance(self, done)))
        patched.setattr(StageTrainer, "_advance_within_epoch", interrupt)
        message = "stopped at update 100 of 185 in epoch 3 of the stage 'dynamics' with a checkpoint"
        with pytest.raises(Stopped if how == "asked" else KeyboardInterrupt) as raised:
            train("interrupted")
        assert how == "killed" or message in str(raised.value)
    ends = [epoch + done / 185 for epoch in range(3) for done in (50, 100, 150, 185)]
    np.testing.assert_allclose(shown, ends[: 10 if how == "asked" else 9])
    newest = checkpoints(tmp_path / "interrupted" / "fleet-0" / "stage-dynamics")[0]
    assert load_checkpoint(newest)[1]["done"] == (100 if how == "asked" else 50)
    assert {row.step for row in score_rl.load(tmp_path / "interrupted").metrics} == {1, 2}
    monkeypatch.setattr(StageProgram, "updates_per_call", afterwards)
    resumed = score_rl.resume(tmp_path / "interrupted", tensorboard=False)
    if afterwards is not None:
        same(undisturbed, resumed)
        assert measured(undisturbed) == measured(resumed)
    else:
        for a, b in zip(states(undisturbed), states(resumed), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
