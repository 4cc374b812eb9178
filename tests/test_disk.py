"""Where files live, and that they are there whole or not at all."""

import errno
import os
import shutil
import stat
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from score_rl import disk
from score_rl.disk import cache_folder, private_folder, replacing, write_file
from score_rl.errors import InputError


def test_the_cache_is_given_or_named_or_the_platform_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder(tmp_path) == tmp_path
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "named"))
    assert cache_folder() == tmp_path / "named"
    monkeypatch.delenv("SCORE_RL_CACHE")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert cache_folder() == tmp_path / "xdg" / "score-rl"
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert cache_folder() == Path.home() / ".cache" / "score-rl"


@pytest.mark.parametrize(
    ("platform", "expected"), [("macos", "Library/Caches/score-rl"), ("windows", "local/score-rl")]
)
def test_the_cache_is_where_version_0_1_0_had_it(platform: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache elsewhere would record and download everything again."""
    for name in ("SCORE_RL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    module = import_module(f"platformdirs.{platform}")
    made = module.MacOS if platform == "macos" else module.Windows
    monkeypatch.setattr(disk, "user_cache_path", lambda *names, **options: made(*names, **options).user_cache_path)
    monkeypatch.setattr(
        "platformdirs.windows.get_win_folder", lambda name: f"/home/{name == 'CSIDL_LOCAL_APPDATA' and 'local'}"
    )
    assert str(cache_folder()).replace("\\", "/").endswith(f"/{expected}")


def test_a_folder_of_the_cache_is_its_user_s_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies there is run: compiled programs are machine code."""
    folder = private_folder(tmp_path / "cache" / "compiled")
    assert [stat.S_IMODE(place.stat().st_mode) for place in (folder.parent, folder)] == [0o700, 0o700]
    folder.chmod(0o777)
    assert stat.S_IMODE(private_folder(folder).stat().st_mode) == 0o700, "one of earlier versions is closed"
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(InputError, match=r"belongs to user .*: set SCORE_RL_CACHE to a folder of your own\."):
        private_folder(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is no folder"):
        private_folder(tmp_path / "file")


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with replacing(path, 10) as temporary:
        temporary.write_text("contents")
        assert not path.exists()
    assert path.read_text() == "contents"
    assert list(path.parent.iterdir()) == [path]


def write_and_raise(path: Path, error: BaseException) -> None:
    with replacing(path, 10) as temporary:
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
        replacing(tmp_path / "f", 10**7),
    ):
        pytest.fail("nothing should be written")


def test_a_disk_that_fills_up_while_writing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no space was left on the disk while writing"):
        write_and_raise(tmp_path / "f", OSError(errno.ENOSPC, "No space left on device"))
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be written"), replacing(tmp_path / "file" / "f", 1):
        pytest.fail("nothing should be written")


def test_a_file_replaces_the_one_before(tmp_path: Path) -> None:
    write_file(tmp_path / "new" / "file", "å")
    assert (tmp_path / "new" / "file").read_bytes() == "å".encode()
    write_file(tmp_path / "new" / "file", b"other")
    assert [(path.name, path.read_bytes()) for path in (tmp_path / "new").iterdir()] == [("file", b"other")]


def test_content_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut between the two would otherwise leave an empty file in place of the old one."""
    happened: list[str] = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: (happened.append("flushed"), fsync(number))[1])
    monkeypatch.setattr(Path, "replace", lambda self, other: (happened.append("named"), replace(self, other))[1])
    write_file(tmp_path / "file", b"content")
    assert happened[:2] == ["flushed", "named"]


def test_a_full_disk_leaves_the_old_file_whole_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_file(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"no space was left on the disk while writing .*file: then go on"):
        write_file(path, b"new", if_full="then go on")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
