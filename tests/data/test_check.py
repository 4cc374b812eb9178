"""`check_file` reports everything, and finds nothing wrong with what is right."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import score_rl
from score_rl.data.check import Finding, check_file
from score_rl.data.collection.policies import UniformActions
from score_rl.data.collection.recorder import collect
from score_rl.data.sources.replica import build_replica
from score_rl.errors import InputError

from .recordings import recording, write


def messages(findings: list[Finding], level: str) -> list[str]:
    return [finding.message for finding in findings if finding.level == level]


def test_a_replica_has_nothing_wrong(tmp_path: Path) -> None:
    path = tmp_path / "any.hdf5"
    build_replica("hopper-random", path, transitions=500, progress=False)
    findings = check_file(path)
    assert messages(findings, "error") == messages(findings, "warning") == []
    assert [m for m in messages(findings, "note") if "cut" not in m] == []


def test_a_good_file_of_an_unknown_environment(tmp_path: Path) -> None:
    findings = check_file(write(tmp_path / "mine.hdf5", recording((5, 4), "tc")))
    assert [finding.level for finding in findings] == ["note"]
    assert "environment is not known" in findings[0].message


@pytest.mark.parametrize("kind", ["missing", "folder", "text", "truncated"])
def test_what_is_no_file_of_this_format(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bad.hdf5"
    if kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("text")
    elif kind == "truncated":
        write(path, recording((100,) * 5, "t" * 5))
        path.write_bytes(path.read_bytes()[:5000])
    findings = check_file(path)
    assert [finding.level for finding in findings] == ["error"]


def test_everything_that_is_wrong_is_reported_at_once(tmp_path: Path) -> None:
    arrays = recording((5, 4, 3), "tct")
    arrays["observations"][[2, 7]] = np.nan
    arrays["rewards"][3] = np.inf
    arrays["actions"][:, 1] = 0.25
    arrays["actions"][4, 0] = 1.5
    arrays["timeouts"][11] = True
    path = write(tmp_path / "bad.hdf5", {**arrays, "infos/qpos": np.zeros((4, 2))})
    findings = check_file(path)
    errors, warnings = messages(findings, "error"), messages(findings, "warning")
    assert any("observations has NaN or infinite values in 2 of 12 rows (2, 7)" in m for m in errors)
    assert any("rewards has NaN or infinite values in 1 of 12 rows (3)" in m for m in errors)
    assert any("actions never changes in column 1" in m for m in warnings)
    assert any("both set in 1 of 12 rows (11)" in m for m in warnings)
    assert any("infos/qpos has shape (4, 2)" in m for m in warnings)
    assert any("not the following row's observation" in m for m in warnings)
    assert [finding.level for finding in findings] == sorted(
        (finding.level for finding in findings), key=["error", "warning", "note"].index
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rewards": None, "timeouts": None}, ["lacks rewards, timeouts (it has actions, "]),
        ({"rewards": np.zeros((12, 2))}, ["rewards is float64 of shape (12, 2); one value per step is expected."]),
        ({"actions": np.zeros((10, 2))}, ["the arrays differ in rows"]),
        ({"next_observations": np.zeros((12, 5))}, ["next_observations is (12, 5), observations (12, 3)"]),
        ({"terminals": np.full(12, 3)}, ["terminals holds values other than true and false in 12 of 12 rows"]),
        (
            {"terminals": np.zeros(12, bool), "timeouts": np.zeros(12, bool)},
            ["there is no terminal and no timeout, so trajectories cannot be told apart."],
        ),
        (
            {"metadata/action_low": -np.full(2, 0.1), "metadata/action_high": np.full(2, 0.1)},
            ["action 0 reaches from", "action 1 reaches from", "beyond its bounds -0.1 to 0.1"],
        ),
        (
            {"metadata/action_low": -np.ones(3), "metadata/action_high": np.ones(3)},
            ["action bounds of shapes [(3,), (3,)] were given, but the actions have 2 dimensions"],
        ),
        ({key: values[:0] for key, values in recording().items()}, ["the file is empty"]),
    ],
)
def test_errors(tmp_path: Path, changes: dict[str, Any], words: list[str]) -> None:
    errors = messages(check_file(write(tmp_path / "bad.hdf5", recording(**changes))), "error")
    for word in words:
        assert any(word in message for message in errors), errors


def hopper_file(path: Path, rows: int = 2500) -> Path:
    recorded = collect("hopper", [(UniformActions(3), rows)], seed=0)
    return write(path, recorded.stored())


def test_terminals_that_contradict_the_task(tmp_path: Path) -> None:
    path = hopper_file(tmp_path / "hopper_mine.hdf5")
    with h5py.File(path, "a") as file:
        terminals = file["terminals"][()]
        ends = np.flatnonzero(terminals)
        terminals[ends[3]] = False
        terminals[ends[5] - 2] = True
        file["terminals"][...] = terminals
    warnings = messages(check_file(path), "warning")
    assert any(
        f"not terminal although their next observation ends a hopper episode: in 1 of 2500 rows ({ends[3]})" in m
        for m in warnings
    )
    assert any(f"does not end a hopper episode: in 1 of 2500 rows ({ends[5] - 2})" in m for m in warnings)
    assert any(
        f"not the following row's observation inside a trajectory in 1 of 2499 rows ({ends[3]})" in m for m in warnings
    )


def test_episodes_longer_than_the_limit(tmp_path: Path) -> None:
    path = hopper_file(tmp_path / "hopper_mine.hdf5", rows=1200)
    with h5py.File(path, "a") as file:
        file["terminals"][:-1] = False
    warnings = messages(check_file(path), "warning")
    assert any(
        "1 trajectories are longer than hopper's 1000 steps (the longest 1200), starting in row 0" in m
        for m in warnings
    )


def test_a_file_under_a_published_name(tmp_path: Path) -> None:
    warnings = messages(check_file(hopper_file(tmp_path / "hopper_medium-v2.hdf5", rows=60)), "warning")
    assert warnings == [
        "hopper_medium-v2.hdf5 has the name of d4rl:hopper-medium-v2's published file but not its contents."
    ]


def solved_on_the_way(**changes: Any) -> dict[str, Any]:
    arrays = recording((8, 7), "cc", next_observations=None)
    arrays["terminals"] = np.isin(np.arange(15), (2, 3, 9))
    arrays["trajectory_ends"] = np.isin(np.arange(15), (7, 14))
    arrays.update(changes)
    return {key: values for key, values in arrays.items() if values is not None}


def test_a_file_that_marks_the_ends_of_its_trajectories(tmp_path: Path) -> None:
    findings = check_file(write(tmp_path / "good.hdf5", solved_on_the_way(timeouts=None)))
    assert messages(findings, "error") == []
    notes = messages(findings, "note")
    assert "the recording goes on after 3 of 3 terminals." in notes
    assert any("do not end in a terminal, 2 of 2" in note for note in notes)


def test_ends_that_contradict_each_other(tmp_path: Path) -> None:
    timeouts = np.isin(np.arange(15), (5, 14))
    findings = check_file(write(tmp_path / "bad.hdf5", solved_on_the_way(timeouts=timeouts)))
    assert any(
        "timeouts has ends that trajectory_ends has not, in 1 of 15 rows (5)" in m
        for m in messages(findings, "warning")
    )
    none = check_file(write(tmp_path / "none.hdf5", solved_on_the_way(timeouts=None, trajectory_ends=np.zeros(15))))
    assert messages(none, "error") == ["no end of a trajectory is marked, so trajectories cannot be told apart."]


def test_trajectories_that_vanish_are_counted(tmp_path: Path) -> None:
    findings = check_file(write(tmp_path / "short.hdf5", recording((8, 1, 5), "cct", next_observations=None)))
    assert any("2 of 3. 1 of them are one row long and vanish." in m for m in messages(findings, "note"))


def test_rows_of_an_unsorted_table_are_an_error(tmp_path: Path) -> None:
    arrays = recording((1, 2, 1, 3, 2, 1, 2), "ccccccc", next_observations=None)
    (error,) = messages(check_file(write(tmp_path / "bad.hdf5", arrays)), "error")
    assert "only 5 of 12 rows can be learned from" in error
    assert "`least_usable=0.416`" in error
    assert "Are the rows sorted?" in error


def test_times_that_do_not_ascend_are_an_error(tmp_path: Path) -> None:
    times = np.array([0, 1, 2, 3, 4, 0, 2, 1, 3, 0, 1, 2])
    (error,) = messages(check_file(write(tmp_path / "bad.hdf5", recording(times=times))), "error")
    assert error.startswith("times do not ascend within a trajectory in 1 of 12 rows (7): sort the rows")
    good = check_file(write(tmp_path / "good.hdf5", recording(times=np.sort(times))))
    assert len(messages(good, "error")) == 1  # equal times are not sorted either
    assert messages(check_file(write(tmp_path / "time.hdf5", recording(times=np.arange(12)))), "error") == []


@pytest.mark.parametrize(
    ("environment", "rewards", "words"),
    [
        (None, np.ones(12), "every reward is the same"),
        (None, np.arange(12) * 1e-41, "rewards differ by"),
        ("Pendulum-v1", np.arange(12.0), "but Pendulum-v1 has 3 and 1"),
        ("hopper", np.arange(12.0), "but hopper has 11 and 3"),
        ("Nowhere-v0", np.arange(12.0), "unknown environment 'Nowhere-v0'"),
    ],
)
def test_what_training_would_refuse_before_it_begins_is_an_error(
    tmp_path: Path, environment: str | None, rewards: np.ndarray, words: str
) -> None:
    """The rows are in order: it is the training that could not begin."""
    path = write(tmp_path / "mine.hdf5", {**recording((5, 4, 3), "tct"), "rewards": rewards.astype(np.float32)})
    errors = messages(check_file(path, environment=environment), "error")
    assert any(words in message for message in errors), errors
    with pytest.raises(InputError, match=words):
        score_rl.train(path, environment=environment or "none", steps=10, out=tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()
