"""From logs to a policy in one file that acts where nothing of this package is."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import score_rl
from score_rl.data.labels import Labels
from score_rl.data.sources.hdf5 import write_labels
from score_rl.store.folder import Folder
from tests.deploy import clean_process
from tests.end_to_end.conftest import Score
from tests.plants import heating

LABELS = Labels(heating.OBSERVATIONS, heating.ACTIONS, heating.UNITS)


def write_logs(path: Path) -> heating.Logs:
    """The heating control's logs in the package's own format."""
    logs = heating.record(episodes=40)
    with h5py.File(path, "w") as file:
        file["observations"], file["actions"], file["rewards"] = logs.observations, logs.actions, logs.rewards
        file["terminals"], file["timeouts"] = np.zeros(len(logs), bool), logs.ends
        metadata = file.create_group("metadata")
        metadata["action_low"], metadata["action_high"] = heating.ACTION_LOW, heating.ACTION_HIGH
        write_labels(metadata, LABELS)
    return logs


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of two methods on the logs."""
    folder = tmp_path_factory.mktemp("heating")
    write_logs(folder / "logs.hdf5")
    score_rl.train(
        folder / "logs.hdf5",
        algorithm=["score", "iql"],
        config={"hidden": (32, 32), "batch_size": 32, "normalise_states": True, "critics": 3},
        steps=40,
        out=folder / "run",
        quiet=True,
        tensorboard=False,
    )
    return folder / "run"


@cache
def observations() -> np.ndarray:
    return heating.record(episodes=2, seed=5).observations.astype(np.float32)


def in_a_clean_process(file: Path, reader: Path) -> dict[str, Any]:
    command = [sys.executable, "-I", clean_process.__file__, str(file), str(reader)]
    done = subprocess.run(
        command, input=json.dumps(observations().tolist()), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_file_acts_in_a_process_without_jax_and_this_package(trained: Path, score: Score, tmp_path: Path) -> None:
    run = score_rl.load(trained)["logs_score_seed=0"]
    expected = run.policy(observations(), check=True)
    printed = score("export", "--reader")
    Path("policy_reader.py").write_text(printed.out)
    for name in ("policy.onnx", "policy.npz"):
        outcome = score("export", trained, "--run", run.id, "--out", name)
        assert outcome.code == 0, outcome.err
        found = in_a_clean_process(tmp_path / name, tmp_path / "policy_reader.py")
        assert found["loaded"] == []
        assert found["seconds"] < 0.2
        answer = {key: np.asarray(value) for key, value in found["answer"].items()}
        ranges = heating.ACTION_HIGH - heating.ACTION_LOW
        assert (np.abs(answer["actions"] - expected.actions) / ranges).max() < 1e-5
        np.testing.assert_array_equal(answer["far"], expected.far)
        np.testing.assert_array_equal(answer["unknown"], expected.unknown)
        np.testing.assert_allclose(answer["uncertainty"], expected.uncertainty, rtol=1e-3)
        about = found["about"]
        assert [column["name"] for column in about["observations"]] == list(heating.OBSERVATIONS)
        assert [column["unit"] for column in about["actions"]] == ["steps", "rpm"]
        assert [(column["low"], column["high"]) for column in about["actions"]] == [(0, 250), (600, 2400)]
        assert about["run"] == run.id
        assert about["data"]["checksum"] == run.record.checksum
        assert about["code"] == run.experiment.record.provenance["code"]


def test_a_run_that_diverged_is_refused(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = score_rl.load(trained)
    status = Folder.open(trained).status()
    status.runs["logs_iql_seed=0"].state = "diverged"
    status.runs["logs_iql_seed=0"].diverged_at = 20
    monkeypatch.setattr(experiment.folder, "status", lambda: status)
    with pytest.raises(score_rl.InputError, match="diverged by update 20"):
        experiment["logs_iql_seed=0"].export(tmp_path / "policy.onnx")
    assert not (tmp_path / "policy.onnx").exists()


def test_which_run_must_be_said_where_there_are_several(trained: Path, score: Score) -> None:
    outcome = score("export", trained)
    assert outcome.code == 2
    assert "give --run as one of logs_score_seed=0, logs_iql_seed=0" in outcome.err
    assert "evaluated in a simulator" in score("export", trained, "--run", "best").err
    assert (
        "policy.png names no format" in score("export", trained, "--run", "logs_iql_seed=0", "--out", "policy.png").err
    )


def test_without_the_data_a_file_can_do_without_flags(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = score_rl.load(trained)["logs_iql_seed=0"]
    hidden = trained.parent / "logs.hdf5"
    moved = hidden.rename(hidden.with_name("elsewhere.hdf5"))
    try:
        with pytest.raises(score_rl.InputError, match=r"logs\.hdf5"):
            run.export(tmp_path / "policy.npz")
        run.export(tmp_path / "policy.npz", flags=False)
    finally:
        moved.rename(hidden)
    from score_rl.deploy.reader import Policy

    answer = Policy(tmp_path / "policy.npz")(observations()[0])
    assert list(answer) == ["actions"]
    np.testing.assert_allclose(answer["actions"], run.policy(observations()[0]), rtol=1e-5)
