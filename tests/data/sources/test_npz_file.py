"""Npz files of strangers: numbers and texts as they are stored, or one sentence."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from score_rl.data.sources.npz_file import read_npz
from score_rl.errors import InputError


def with_header(path: Path, shape: tuple[int, ...], content: bytes) -> None:
    """An array of which the header says so."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", header.getvalue() + content)


def twice(path: Path) -> None:
    stored = io.BytesIO()
    np.lib.format.write_array(stored, np.arange(3))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", stored.getvalue())
        archive.writestr("y.npy", stored.getvalue())
    path.write_bytes(path.read_bytes().replace(b"y.npy", b"x.npy"))


def flipped(path: Path) -> None:
    np.savez(path, x=np.arange(100))
    content = bytearray(path.read_bytes())
    content[300] ^= 1
    path.write_bytes(content)


def test_arrays_are_read_as_numpy_reads_them(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "a": np.arange(6).reshape(2, 3), "b": np.asfortranarray(np.ones((3, 2), np.float32)),
        "c": np.array(["x", "yz"]), "d": np.zeros((0, 4)), "e": np.array(True), "f": np.array(["2024-01-01"], "M8[s]"),
    }  # fmt: skip
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "file.npz", **arrays)
        found = read_npz(tmp_path / "file.npz")
        assert found.keys() == arrays.keys()
        for name, values in arrays.items():
            np.testing.assert_array_equal(found[name], values)
            assert found[name].dtype == values.dtype
    assert read_npz(tmp_path / "file.npz", ["a"]).keys() == {"a"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: np.savez(path, x=np.array([{}, 1])), "holds object, but numbers or texts"),
        (lambda path: np.savez(path, x=np.zeros(2, [("a", "f4")])), "but numbers or texts"),
        (lambda path: with_header(path, (10**13,), b""), "declares 80,000,000,000,000 bytes"),
        (lambda path: with_header(path, (2**24,), bytes(2**27)), "declares 134,217,728 bytes"),
        (lambda path: with_header(path, (4,), bytes(16)), "declares 32 bytes|16 of 32 bytes are stored"),
        (lambda path: with_header(path, (4,), bytes(48)), "more than the 32 bytes of its shape"),
        (lambda path: with_header(path, (-4,), bytes(48)), "its shape is"),
        (twice, "two arrays have this name"),
        (flipped, "Bad CRC-32|cannot be read"),
        (lambda path: path.write_bytes(b"PK\x03\x04"), "the archive: File is not a zip file"),
        (lambda path: path.mkdir(), "is no ordinary file"),
        (lambda path: None, "does not exist"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(tmp_path: Path, make: Callable[[Path], None], words: str) -> None:
    make(tmp_path / "file.npz")
    with pytest.raises(InputError, match=words) as caught:
        read_npz(tmp_path / "file.npz")
    assert str(caught.value).isprintable()
