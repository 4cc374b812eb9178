"""A disk that is away for a while: waited for, and nothing is lost, torn or put elsewhere."""

import errno
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from score_rl.disk import write_file
from score_rl.errors import InputError
from score_rl.store import presence as waiting
from score_rl.store.metrics import MetricsWriter, Row, read_metrics
from score_rl.store.presence import MARK, Presence


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(waiting, "PAUSE", 0.0)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MARK).write_text("{}")
    return tmp_path / "out"


def fails(number: int, times: int, then: Callable[[], Any] = lambda: None) -> Callable[[], Any]:
    """What fails so often with an error of the system."""
    tries = itertools.count(1)

    def action() -> Any:
        if next(tries) <= times:
            raise OSError(number, os.strerror(number))
        return then()

    return action


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EROFS])
def test_it_is_tried_again_and_said_once(folder: Path, number: int) -> None:
    said: list[str] = []
    present = Presence(folder)
    present.wait(said.append)
    assert present.write(fails(number, 5, lambda: "done")) == "done"
    assert [words.split(" is ")[1].split(" (")[0] for words in said] == ["away", "back."]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EMFILE])
def test_other_errors_are_raised_at_once(folder: Path, number: int) -> None:
    present = Presence(folder)
    present.wait(lambda said: pytest.fail(said))
    with pytest.raises(OSError, match=os.strerror(number)):
        present.write(fails(number, 1))


def test_nobody_waits_for_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 0.01)
    present = Presence(folder)
    present.wait(lambda said: None)
    with pytest.raises(InputError, match=r"has been away for .*; bring its disk back, then go on with `resume`"):
        present.write(fails(errno.EIO, 10**9))
    with pytest.raises(OSError, match="Input/output"):
        present.write(fails(errno.EIO, 1))  # whoever ends now does not wait again


def test_nothing_is_made_in_the_place_of_a_folder_that_is_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is unmounted leaves its path to another one, which would take everything."""
    away = folder.rename(folder.with_name("away"))
    looks: list[bool] = []

    def pause(seconds: float) -> None:
        looks.append(folder.exists())
        if len(looks) == 3:
            away.rename(folder)

    monkeypatch.setattr(waiting.time, "sleep", pause)
    present = Presence(folder)
    present.wait(lambda said: None)
    present.write(lambda: write_file(folder / "status.json", "{}"))
    assert looks == [False] * 3
    assert sorted(path.name for path in folder.iterdir()) == [MARK, "status.json"]


def test_a_row_that_was_torn_is_written_whole(folder: Path) -> None:
    present = Presence(folder)
    present.wait(lambda said: None)
    writer = MetricsWriter(folder, tensorboard=False, presence=present)
    rows = [Row("a", step, "train/x", step / 3) for step in range(6)]
    writer.write(rows[:2])

    class Torn:
        """Takes a part of a row, then its disk is gone."""

        def __init__(self, file: Any) -> None:
            self.file, self.calls = file, 0

        def write(self, content: bytes) -> int:
            self.calls += 1
            if self.calls == 2:
                raise OSError(errno.EIO, "Input/output error")
            return int(self.file.write(content[:7]))

        def close(self) -> None:
            self.file.close()

    writer._file = Torn(writer._file)  # type: ignore[assignment]
    writer.write(rows[2:4])
    writer.write(rows[4:])
    writer.close()
    assert list(read_metrics(folder)) == rows
