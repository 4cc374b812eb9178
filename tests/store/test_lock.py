"""Who trains in a folder: known where the operating system has locks, and otherwise nothing is claimed."""

import threading
import time
from pathlib import Path
from typing import Never

import pytest

from score_rl.errors import InputError
from score_rl.store import lock as holding
from score_rl.store.lock import FILE, held, is_held


def test_held_while_it_lasts(tmp_path: Path) -> None:
    assert is_held(tmp_path) is None, "nobody ever trained here"
    with held(tmp_path):
        assert is_held(tmp_path) is True
        with pytest.raises(InputError, match="is being trained by process"), held(tmp_path):
            pass
    assert is_held(tmp_path) is False


def test_a_disk_without_locks_refuses_nothing_and_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: int) -> Never:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(holding.fcntl, "flock", unsupported)
    with held(tmp_path), held(tmp_path):
        assert is_held(tmp_path) is None
    assert is_held(tmp_path) is None


def test_one_that_only_looks_does_not_keep_training_from_starting(tmp_path: Path) -> None:
    with held(tmp_path):
        pass
    with (tmp_path / FILE).open() as file:
        assert holding._lock(file.fileno(), shared=True)
        threading.Thread(target=lambda: (time.sleep(0.2), holding.fcntl.flock(file, holding.fcntl.LOCK_UN))).start()
        with held(tmp_path):
            assert is_held(tmp_path) is True


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[" * 200_000, b"[]", b'{"machine": 5}', b""])
def test_a_lock_with_anything_in_it_says_nothing(tmp_path: Path, content: bytes) -> None:
    """A stranger may have packed the folder; who trains there next writes it anew."""
    (tmp_path / FILE).write_bytes(content)
    assert is_held(tmp_path) is None
    with held(tmp_path):
        assert is_held(tmp_path) is True
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(InputError, match="is being trained; wait for it"), held(tmp_path):
            pass
