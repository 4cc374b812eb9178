"""Where files live, and that they are there whole or not at all."""

import errno
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from score_rl.disk import cache_folder, whole_file
from score_rl.errors import InputError


def test_the_cache_is_given_or_named_or_the_platform_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder(tmp_path) == tmp_path
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "named"))
    assert cache_folder() == tmp_path / "named"
    monkeypatch.delenv("SCORE_RL_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "score-rl"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "score-rl"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder().parts[-3:] == ("Library", "Caches", "score-rl")


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with whole_file(path, 10) as temporary:
        temporary.write_text("contents")
        assert not path.exists()
    assert path.read_text() == "contents"
    assert list(path.parent.iterdir()) == [path]


def write_and_raise(path: Path, error: BaseException) -> None:
    with whole_file(path, 10) as temporary:
        temporary.write_text("half")
        raise error


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_and_raise(path, KeyboardInterrupt())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_too_small_is_noticed_before_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=5_000_000))
    with (
        pytest.raises(InputError, match="needs 10 MB and the disk has 5 MB left"),
        whole_file(tmp_path / "f", 10**7),
    ):
        pytest.fail("nothing should be written")


def test_a_disk_that_fills_up_while_writing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no space was left on the disk while writing"):
        write_and_raise(tmp_path / "f", OSError(errno.ENOSPC, "No space left on device"))
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be written"), whole_file(tmp_path / "file" / "f", 1):
        pytest.fail("nothing should be written")
