"""Fleets that train apart: attempts, and how each is taken into the experiment once."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from score_rl.errors import InputError
from score_rl.store import parts
from score_rl.store.checkpoints import checkpoints, load_checkpoint, save_checkpoint
from score_rl.store.folder import Folder
from score_rl.store.metrics import MetricsWriter, Row, read_metrics
from score_rl.store.parts import JOURNAL, PARTS, Part, gather, settle
from score_rl.store.records import RunStatus, StatusRecord

RUNS = (("a", "b"), ("c",))


def train_in(folder: Path, fleet: int, step: int, value: float, state: str = "training") -> None:
    """What a training leaves: a checkpoint, a measurement of each run, the status."""
    save_checkpoint(folder / f"fleet-{fleet}", step, {"state.x": np.array([value])}, {"runs": list(RUNS[fleet])})
    metrics = MetricsWriter(folder, tensorboard=False)
    metrics.write([Row(run, step, "train/q", value) for run in RUNS[fleet]])
    metrics.close()
    status = Folder(folder).status()
    status.runs |= {run: RunStatus(state, step) for run in RUNS[fleet]}
    Folder(folder).write_status(status)


def value_in(folder: Path) -> float:
    return float(load_checkpoint(checkpoints(folder)[0]).arrays["state.x"][0])


@pytest.fixture
def experiment(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "out")
    folder.path.mkdir()
    folder.write_status(StatusRecord("running"))
    return folder


def test_an_attempt_goes_on_where_the_newest_one_stands_and_leaves_that_alone(experiment: Folder) -> None:
    part = Part(experiment, 0, RUNS[0])
    first = part.begin()
    train_in(first, 0, 10, 1.0)
    second = part.begin()
    assert [path.name for path in part.attempts()] == ["attempt-1", "attempt-2"]
    train_in(second, 0, 20, 2.0)
    train_in(first, 0, 30, 666.0)  # a machine that was thought to be lost
    third = part.begin()
    assert (value_in(third / "fleet-0"), value_in(first / "fleet-0")) == (2.0, 666.0)
    train_in(third, 0, 40, 3.0, "finished")
    gather(part)
    assert value_in(experiment.fleet(0)) == 3.0
    assert [(row.run, row.step) for row in read_metrics(experiment.path)] == [
        (run, step) for step in (10, 20, 40) for run in RUNS[0]
    ]
    assert experiment.status().runs == {run: RunStatus("finished", 40) for run in RUNS[0]}
    assert not part.path.exists()


def test_what_one_machine_began_is_taken_apart_and_comes_back_once(experiment: Folder) -> None:
    train_in(experiment.path, 0, 10, 1.0)
    train_in(experiment.path, 1, 10, 5.0, "finished")
    part = Part(experiment, 0, RUNS[0])
    attempt = part.begin()
    assert {row.run for row in read_metrics(attempt)} == set(RUNS[0])
    train_in(attempt, 0, 20, 2.0, "finished")
    gather(part)
    rows = [(row.run, row.step) for row in read_metrics(experiment.path)]
    assert sorted(rows) == [("a", 10), ("a", 20), ("b", 10), ("b", 20), ("c", 10)]
    assert [path.name for path in checkpoints(experiment.fleet(0))] == [
        "step-0000000020.safetensors",
        "step-0000000010.safetensors",
    ]
    assert experiment.status().of("c") == RunStatus("finished", 10)


@pytest.mark.parametrize("where", ["_append_measurements", "_replace_fleet", "_move_boards", "_merge_status"])
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_while_a_fleet_is_gathered_neither_loses_nor_doubles(
    experiment: Folder, monkeypatch: pytest.MonkeyPatch, where: str, after: bool
) -> None:
    train_in(experiment.path, 1, 10, 5.0, "finished")
    part = Part(experiment, 0, RUNS[0])
    train_in(part.begin(), 0, 10, 1.0, "finished")
    step: Callable[..., None] = getattr(parts, where)

    def killed(*arguments: object) -> None:
        if after:
            step(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(parts, where, killed)
        with pytest.raises(KeyboardInterrupt):
            gather(part)
    gather(part)
    assert sorted((row.run, row.step) for row in read_metrics(experiment.path)) == [("a", 10), ("b", 10), ("c", 10)]
    assert value_in(experiment.fleet(0)) == 1.0
    assert experiment.status().of("a") == RunStatus("finished", 10)


def test_a_kill_after_a_fleet_was_taken_changes_nothing(experiment: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    part = Part(experiment, 0, RUNS[0])
    train_in(part.begin(), 0, 10, 1.0, "finished")
    journal = experiment.path / PARTS / JOURNAL
    unlink = Path.unlink

    def killed(path: Path, missing_ok: bool = False) -> None:
        if path == journal:
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            gather(part)
    settle(experiment)
    assert sorted((row.run, row.step) for row in read_metrics(experiment.path)) == [("a", 10), ("b", 10)]
    assert not journal.exists()


def test_a_torn_attempt_is_no_attempt(experiment: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill while an attempt is being made leaves nothing that a later one would start from."""
    part = Part(experiment, 0, RUNS[0])
    train_in(part.begin(), 0, 10, 1.0)

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(parts, "_copy_fleet", killed)
        patch.setattr(shutil, "rmtree", lambda *arguments, **options: None)
        with pytest.raises(KeyboardInterrupt):
            part.begin()
    assert len(part.attempts()) == 1
    assert value_in(part.begin() / "fleet-0") == 1.0


def test_a_machine_that_wakes_up_after_its_fleet_was_gathered_takes_nothing_back(experiment: Folder) -> None:
    """It was taken for lost. What it writes then makes its folder anew, and the next driver finds that."""
    part = Part(experiment, 0, RUNS[0])
    train_in(part.begin(), 0, 10, 1.0)
    train_in(part.begin(), 0, 20, 2.0, "finished")
    gather(part)
    train_in(part.path / "attempt-1", 0, 10, 666.0)
    assert part.newest is None
    gather(part)
    assert value_in(experiment.fleet(0)) == 2.0
    assert experiment.status().of("a") == RunStatus("finished", 20)
    assert {row.value for row in read_metrics(experiment.path)} == {1.0, 2.0}
    assert not part.path.exists()


def test_a_full_disk_while_a_fleet_is_gathered_is_said_and_loses_nothing(
    experiment: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_in(experiment.path, 1, 10, 5.0, "finished")
    part = Part(experiment, 0, RUNS[0])
    train_in(part.begin(), 0, 10, 1.0, "finished")

    def half(attempt: Path, table: Path) -> None:
        with table.open("ab") as file:
            file.write(b"a,10,tra")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(parts, "_append_measurements", half)
        with pytest.raises(InputError, match=r"no space was left on the disk while writing .*out"):
            gather(part)
    gather(part)
    assert sorted((row.run, row.step) for row in read_metrics(experiment.path)) == [("a", 10), ("b", 10), ("c", 10)]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gathering.json", '{"fleet": 0, "metrics": -5}', "gathering.json is damaged"),
        ("gathering.json", '{"fleet": 0, "metrics": 1000000000000}', "gathering.json is damaged"),
        ("gathering.json", '{"fleet": "../../x", "metrics": 0}', "gathering.json is damaged"),
        ("gathering.json", "[", "gathering.json is damaged"),
        ("fleet-0/attempt-1/metrics.csv", "a,b\n1,2\n", "metrics.csv is damaged"),
        ("fleet-0/attempt-1/begun.json", "{", "begun.json is damaged"),
        ("fleet-0/attempt-1/status.json", "[", "status.json is not valid JSON"),
    ],
)
def test_what_is_damaged_is_refused_before_anything_is_taken(
    experiment: Folder, name: str, content: str, said: str
) -> None:
    train_in(experiment.path, 1, 10, 5.0, "finished")
    part = Part(experiment, 0, RUNS[0])
    train_in(part.begin(), 0, 10, 1.0, "finished")
    before = experiment.metrics_path.read_bytes()
    (experiment.path / PARTS / name).write_text(content)
    with pytest.raises(InputError, match=said):
        gather(part)
    assert experiment.metrics_path.read_bytes() == before
    assert part.path.exists()


def test_what_is_no_attempt_is_left_alone(experiment: Folder) -> None:
    part = Part(experiment, 0, RUNS[0])
    train_in(part.begin(), 0, 10, 1.0)
    for name in ("attempt-", "attempt-x", "attempt--5", "attempt-\u0663"):
        (part.path / name).mkdir()
        (part.path / name / "begun.json").write_text("{}")
    (part.path / "attempt-7").touch()
    assert [path.name for path in part.attempts()] == ["attempt-1"]
