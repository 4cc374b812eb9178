"""The folder of an experiment: made once, opened by everyone, refused where it is something else."""

import dataclasses
import os
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


@pytest.mark.parametrize("name", ["status.json", "fleet-0", "fleet-0/step-0000000020.safetensors", "data/logs.hdf5"])
def test_a_folder_with_a_link_in_it_is_not_opened(tmp_path: Path, name: str) -> None:
    """A stranger may have packed it, and the link leads to something of its user's."""
    path = Folder.create(tmp_path / "out", RECORD).path
    (tmp_path / "precious").mkdir()
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).symlink_to(tmp_path / "precious")
    with pytest.raises(InputError, match=f"{name} is a link or no ordinary file, and none is followed here"):
        Folder.open(path)
    (path / name).unlink()
    os.mkfifo(path / name)
    with pytest.raises(InputError, match=f"{name} is a link or no ordinary file"):
        Folder.open(path)
    (path / name).unlink()
    (tmp_path / "latest").symlink_to(path)
    assert Folder.open(tmp_path / "latest").experiment().request == RECORD.request, "its user's own link"


@pytest.mark.parametrize(
    "name", ["../../mine/logs.hdf5", "/home/mine/logs.hdf5", "data/../../logs.hdf5", "data/logs.txt"]
)
def test_a_record_names_no_data_outside_of_its_folder_as_its_own(tmp_path: Path, name: str) -> None:
    """What is kept in the folder is copied into other folders, under the name that the record gives."""
    spec = dataclasses.replace(RECORD.request, datasets=(f"folder:{name}",))
    folder = Folder.create(tmp_path / "out", dataclasses.replace(RECORD, request=spec))
    with pytest.raises(InputError, match=r"experiment.json cannot be read: its data .* do not lie in its folder"):
        folder.experiment()
