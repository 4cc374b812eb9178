"""From a plant's logs to policies: a CSV, a data set, several methods, and on from where they stopped."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import score_rl
from score_rl.run.checkpoint_writer import HISTORY
from score_rl.store.checkpoints import checkpoints, load_checkpoint
from tests.end_to_end.conftest import Score
from tests.plants import heating

TINY = {"config": {"hidden": (8, 8), "batch_size": 8}, "log_every": 10, "checkpoint_minutes": 0, "quiet": True}
TINY_FLAGS = ("--config.hidden", "8,8", "--config.batch-size", "8", "--log-every", "10", "--quiet")
COLUMNS: dict[str, Any] = {
    "observations": ["temp*", "flow"],
    "actions": ["valve", "pump"],
    "reward": "r",
    "episode": "trip",
    "time": "t",
    "action_bounds": [0, 250, 600, 2400],
    "units": {"temp*": "°C"},
}


def final(folder: Path) -> list[dict[str, bytes]]:
    """The newest checkpoint of each fleet, but for its copy of the measurements, which has speeds by the clock."""
    newest = (load_checkpoint(checkpoints(fleet)[0])[1] for fleet in sorted(folder.glob("fleet-*")))
    return [{name: array.tobytes() for name, array in arrays.items() if name != HISTORY} for arrays in newest]


def test_from_logs_to_policies(score: Score, tmp_path: Path) -> None:
    logs = heating.record(6, seed=3)
    heating.write_csv(tmp_path / "logs.csv", logs, np.random.default_rng(0).permutation(len(logs)))
    proposed = score("data", "import", "logs.csv")
    assert proposed.code == 0
    command = proposed.out.partition("score ")[2].partition("\n\n")[0].replace("\\\n", "").split()
    preview = score(*command, "--preview")
    assert "timeout, dropped" in preview.out
    assert not (tmp_path / "logs.hdf5").exists()
    told = score(*command, "--units", "temp*=°C")
    assert told.code == 0, told.err
    assert "The rows were not sorted by trip and t; they are now." in told.out
    check = score("data", "check", "logs.hdf5")
    assert check.code == 0, check.out
    train = ("train", "--dataset", "logs.hdf5", "--algorithm", "score", "iql", "bc", *TINY_FLAGS)
    assert score(*train, "--steps", "20", "--eval-every", "20", "--out", "runs").code == 0
    done = score("train", "--resume", "runs", "--steps", "40", "--quiet")
    assert done.code == 0, done.err
    assert [name for name in ("logs_score_seed=0", "logs_iql_seed=0", "logs_bc_seed=0") if name not in done.out] == []
    experiment = score_rl.load(tmp_path / "runs")
    for run in experiment:
        assert (run.step, run.status.state) == (40, "finished")
        actions = run.policy(logs.observations)
        assert actions.shape == logs.actions.shape
        assert (actions >= heating.ACTION_LOW - 1e-3).all()
        assert (actions <= heating.ACTION_HIGH + 1e-3).all()
    labels = experiment.record.datasets["logs"].labels
    assert labels.observations == heating.OBSERVATIONS
    assert labels.units["temp_room"] == "°C"


def test_data_in_memory_are_kept_for_resuming(tmp_path: Path) -> None:
    made = score_rl.Dataset.from_frame(pl.DataFrame(heating.record(6, seed=3).table()), name="plant", **COLUMNS)
    options: dict[str, Any] = {"algorithm": "iql", "eval_every": 20, **TINY}  # it scales rewards by recorded returns
    whole = score_rl.train(made, steps=40, out=tmp_path / "whole", **options)
    score_rl.train(made, steps=20, out=tmp_path / "begun", **options)
    shutil.move(tmp_path / "begun", tmp_path / "moved")
    resumed = score_rl.resume(tmp_path / "moved", steps=40, quiet=True)
    assert final(resumed.path) == final(whole.path)
    assert resumed.spec.datasets == ("folder:data/plant.hdf5",)
    again = score_rl.load_dataset(resumed.path / "data" / "plant.hdf5")
    assert again.checksum == made.checksum
    np.testing.assert_array_equal(again.returns().values, made.returns().values)
    assert (again.dropped_rows, again.labels) == (6, made.labels)


def test_frames_and_arrays_are_trained_on_directly(tmp_path: Path) -> None:
    logs = heating.record(6, seed=3)
    arrays = {
        "observations": logs.observations,
        "actions": logs.actions,
        "rewards": logs.rewards,
        "timeouts": logs.ends,
    }
    options: dict[str, Any] = {"algorithm": "bc", "steps": 20, "eval_every": 20, **TINY}
    framed = score_rl.train(pl.DataFrame(logs.table()), columns=COLUMNS, out=tmp_path / "frame", **options)
    plain = score_rl.train(arrays, action_bounds=(0, 250, 600, 2400), out=tmp_path / "arrays", **options)
    assert framed.record.datasets["frame"].checksum == plain.record.datasets["arrays"].checksum


def test_kept_data_that_changed_are_refused(tmp_path: Path) -> None:
    frame = pl.DataFrame(heating.record(6, seed=3).table())
    options: dict[str, Any] = {"columns": COLUMNS, "algorithm": "bc", "steps": 20, "eval_every": 20, **TINY}
    experiment = score_rl.train(frame, out=tmp_path / "out", **options)
    other = score_rl.train(frame.head(200), out=tmp_path / "other", **options)
    shutil.copy(other.path / "data" / "frame.hdf5", experiment.path / "data" / "frame.hdf5")
    with pytest.raises(score_rl.InputError, match="frame is not the data this experiment was started with"):
        score_rl.resume(experiment.path, steps=40, quiet=True)
