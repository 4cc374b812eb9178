"""What is refused, in one sentence that says what to do."""

import os
import stat

import pytest

from score_rl.errors import InputError, refuse_unwritable


def test_a_folder_that_can_be_written_is_left_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / "new", tmp_path / "new" / "below", tmp_path.relative_to(tmp_path) / "here"):
        refuse_unwritable(folder)
    assert list(tmp_path.iterdir()) == []


def test_below_a_file_there_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "file" / "far" / "below"):
        with pytest.raises(InputError, match=r"Not a directory\); give another --out"):
            refuse_unwritable(folder)


def test_nor_where_it_is_forbidden(tmp_path, monkeypatch):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        if os.access(tmp_path, os.W_OK):  # root may do everything
            monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(InputError, match=r"cannot write to .*new/below \(Permission denied\)"):
            refuse_unwritable(tmp_path / "new" / "below")
    finally:
        tmp_path.chmod(stat.S_IRWXU)
