"""The status of an experiment while it trains: what status.json says after everything that can happen."""

import json
from pathlib import Path
from typing import Any, Never

import pytest

from score_rl.errors import InputError, Stopped
from score_rl.run.status import StatusKeeper
from score_rl.store.folder import Folder
from score_rl.store.records import RunStatus, StatusRecord


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def stored(folder: Folder) -> StatusRecord:
    return folder.status()


def test_runs_begin_where_their_checkpoint_stands(folder: Folder) -> None:
    folder.write_status(
        StatusRecord(
            runs={
                "broke later": RunStatus("diverged", 80, diverged_at=90),
                "broke before": RunStatus("diverged", 40, diverged_at=50),
                "done": RunStatus("finished", 100),
                "going": RunStatus("training", 70),
            }
        )
    )
    status = StatusKeeper(folder)
    status.begin(["broke later", "broke before", "done", "going", "new"], step=60, steps=200)
    runs = stored(folder).runs
    assert runs["broke later"] == RunStatus("training", 60), "it is trained again from before"
    assert runs["broke before"] == RunStatus("diverged", 60, diverged_at=50)
    assert {name: runs[name] for name in ("done", "going", "new")} == dict.fromkeys(
        ("done", "going", "new"), RunStatus("training", 60)
    )
    assert status.sound(runs) == ["broke later", "done", "going", "new"]
    assert [status.has_diverged(name) for name in ("broke before", "done", "unknown")] == [True, False, False]


def test_a_finished_run_stays_finished_where_no_updates_are_left(folder: Folder) -> None:
    folder.write_status(StatusRecord(runs={"done": RunStatus("finished", 100)}))
    StatusKeeper(folder).begin(["done"], step=100, steps=100)
    assert stored(folder).runs["done"].state == "finished"


def test_what_diverged_does_not_finish(folder: Folder) -> None:
    status = StatusKeeper(folder)
    status.begin(["a", "b"], 0, 10)
    status.set_diverged("a", 5)
    assert stored(folder).runs["a"] == RunStatus("diverged", 0, diverged_at=5), "said at once"
    status.set_step(status.sound(["a", "b"]), 10)
    status.finish(["a", "b"])
    assert stored(folder).runs == {"a": RunStatus("diverged", 0, diverged_at=5), "b": RunStatus("finished", 10)}


def test_a_warning_lasts_as_long_as_it_is_true(folder: Folder) -> None:
    status = StatusKeeper(folder)
    status.begin(["a", "b"], 0, 10)
    status.set_warning("a", "Q is 1e9")
    assert status.warned(["a", "b"]) == ["a"]
    status.save()
    assert json.loads((folder.path / "status.json").read_text())["runs"]["a"]["warning"] == "Q is 1e9"
    status.set_warning("a", None)
    assert status.warned(["a", "b"]) == []


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (None, "finished"),
        (Stopped("on request"), "interrupted"),
        (KeyboardInterrupt(), "interrupted"),
        (InputError("no space"), "failed"),
    ],
)
def test_the_status_says_how_training_ended(folder: Folder, error: Any, state: str) -> None:
    folder.write_status(StatusRecord(state="failed", error="of another time"))
    status = StatusKeeper(folder)

    def train() -> None:
        with status.training():
            assert status.record.state == "running"
            if error is not None:
                raise error

    if error is None:
        train()
    else:
        with pytest.raises(type(error)):
            train()
    assert (stored(folder).state, stored(folder).error) == (state, "no space" if state == "failed" else None)


def test_a_disk_that_is_full_at_the_end_hides_no_other_error(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    status = StatusKeeper(folder)

    def full(record: StatusRecord) -> Never:
        raise InputError("no space for the status either")

    monkeypatch.setattr(folder, "write_status", full)
    with pytest.raises(InputError, match="measurements"), status.training():
        raise InputError("no space for measurements")


def test_made_longer_nothing_is_finished(folder: Folder) -> None:
    runs = {"done": RunStatus("finished", 10), "broken": RunStatus("diverged", 4, diverged_at=5)}
    folder.write_status(StatusRecord(state="finished", runs=runs))
    StatusKeeper(folder).make_longer()
    assert stored(folder).state == "interrupted"
    assert [run.state for run in stored(folder).runs.values()] == ["training", "diverged"]
