"""A reader is one module and one line in the registry."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.sources import registry
from score_rl.data.sources.reader import Reader, Recording, Request
from score_rl.data.sources.registry import MODULES, get_reader, is_named
from tests.data.recordings import recording


@pytest.mark.parametrize("key", MODULES)
def test_every_line_leads_to_a_reader(key: str, tmp_path: Path) -> None:
    names = get_reader(key).names(tmp_path)
    assert bool(names) == (not key.startswith(".")) or key == "minari", "Minari's are those on this machine"
    assert all(is_named(entry.name) and entry.name.startswith(f"{key}:") for entry in names)


@pytest.mark.parametrize("path", ["logs.hdf5", "C:/logs.hdf5", "other:name", "replica", "d4rl/logs"])
def test_anything_else_is_a_path(path: str) -> None:
    assert not is_named(path)


def test_a_new_format_needs_a_module_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Request] = []

    def read(path: str, request: Request) -> Recording:
        asked.append(request)
        columns: dict[str, Any] = dict(np.load(path))
        return Recording(columns, {"kind": "file", "path": path}, label="", action_bounds=(-2.0, 2.0))

    module = ModuleType("npz_reader")
    module.READER = Reader(read)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "npz_reader", module)
    monkeypatch.setitem(registry.MODULES, ".npz", "npz_reader")
    path = tmp_path / "mine.NPZ"
    with path.open("wb") as file:
        np.savez(file, **recording((50,) * 4, "tctc"))
    dataset = load_dataset(path, transitions=100, seed=3, cache=tmp_path)
    assert (dataset.name, len(dataset), dataset.source["path"]) == ("mine", 100, str(path))
    np.testing.assert_array_equal(dataset.action_high, [2.0, 2.0])
    assert asked == [Request(transitions=100, seed=3, cache=tmp_path, progress=True)]
