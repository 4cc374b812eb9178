"""The folder of an experiment: made once, opened by everyone, refused where it is something else."""

from pathlib import Path

import pytest

from score_rl.errors import InputError
from score_rl.store.folder import Folder
from tests.store.test_records import RECORD


def test_a_folder_that_is_taken_is_refused(tmp_path: Path) -> None:
    Folder.create(tmp_path / "out", RECORD)
    with pytest.raises(InputError, match="holds another experiment; go on with it by `score train --resume"):
        Folder.create(tmp_path / "out", RECORD)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    with pytest.raises(InputError, match="is not an empty folder"):
        Folder.create(tmp_path / "other", RECORD)
    (tmp_path / "empty").mkdir()
    Folder.create(tmp_path / "empty", RECORD)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot create .*Not a directory"):
        Folder.create(tmp_path / "file" / "out", RECORD)


def test_only_an_experiment_is_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no experiment"):
        Folder.open(tmp_path)
    folder = Folder.create(tmp_path / "out", RECORD)
    (folder.path / "experiment.json").write_text("{")
    with pytest.raises(InputError, match=r"experiment.json is not valid JSON"):
        Folder.open(folder.path).experiment()
    (folder.path / "status.json").write_text("{")
    with pytest.raises(InputError, match=r"status.json is not valid JSON .*; remove it, and training writes another"):
        folder.status()
