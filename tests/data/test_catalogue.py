"""Names of data sets, and what happens to those that do not exist."""

import re
from pathlib import Path
from typing import Any

import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.errors import InputError


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("hopper-medium", "replica:hopper-medium"),
        ("replica:hoper-medium", "replica:hopper-medium"),
        ("replica:hopper-full-replay", "replica:hopper-medium-replay"),
        ("d4rl:hopper-medium-v0", "d4rl:hopper-medium-v2"),
    ],
)
def test_unknown_names_get_the_nearest_ones(name: str, near: str) -> None:
    with pytest.raises(InputError, match="unknown data set") as caught:
        load_dataset(name)
    assert repr(near) in str(caught.value)


@pytest.mark.parametrize("name", ["logs.csv", "logs.parquet", "logs.npz", "logs/mine", "../logs"])
def test_what_looks_like_a_file_and_is_none_does_not_exist(tmp_path: Path, monkeypatch: Any, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"^{re.escape(name)} does not exist: give the path of a D4RL-format HDF5"):
        load_dataset(name)
