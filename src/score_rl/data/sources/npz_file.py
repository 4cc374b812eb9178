"""An npz file from a stranger: arrays of numbers and texts in a zip archive, and only as many as the file has room for.

Nothing is unpickled. An array whose stated shape is larger than what is stored, or than a file of this size is believed
to hold, is refused before it is unpacked. Whatever the libraries raise on a damaged file becomes one sentence.
"""

import math
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np

from score_rl.data.sources.hdf5_file import ALWAYS_ALLOWED, MOST_UNPACKED
from score_rl.errors import InputError, printable

KINDS = "biufmMUS"  # of NumPy's types: numbers, dates and texts
MOST_ARRAYS = 10_000
BLOCK = 16 << 20  # bytes


def read_npz(path: Path, wanted: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of a file by their names, or those of them that are wanted."""
    if not path.exists():
        raise InputError(f"{path} does not exist: give the path of an npz file.")
    if not path.is_file():
        raise InputError(f"{path} is no ordinary file: give the path of an npz file.")
    room = max(ALWAYS_ALLOWED, MOST_UNPACKED * path.stat().st_size)
    arrays: dict[str, np.ndarray] = {}
    name = "the archive"
    try:
        with zipfile.ZipFile(path) as archive:
            if len(archive.infolist()) > MOST_ARRAYS:
                raise ValueError(f"{len(archive.infolist())} files are in it")
            for entry in archive.infolist():
                name = entry.filename.removesuffix(".npy")
                if name in arrays:
                    raise ValueError("two arrays have this name")
                if wanted is not None and name not in wanted:
                    continue
                with archive.open(entry) as file:
                    arrays[name] = _array(file, min(entry.file_size, room))
                room -= arrays[name].nbytes
    except (
        *(zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError),  # zip's own
        *(ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError, OverflowError),
    ) as error:
        reason = printable(str(error).partition("\n")[0]) or type(error).__name__
        raise InputError(
            f"{path} cannot be read as npz ({printable(name)}: {reason}); write it again with numpy.savez."
        ) from error
    return arrays


def _array(file: IO[bytes], most: int) -> np.ndarray:
    """One array in NumPy's format, of at most so many bytes."""
    version = np.lib.format.read_magic(file)
    read: Any = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"NumPy's format {version} is not read")
    shape, columns_first, kind = read(file)
    if kind.kind not in KINDS or kind.hasobject:
        raise ValueError(f"it holds {kind}, but numbers or texts are expected")
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"its shape is {shape}")
    size = math.prod(shape) * kind.itemsize
    if size > most:
        raise ValueError(f"it declares {size:,} bytes, more than a file of this size is believed to hold")
    content = bytearray()
    while block := file.read(BLOCK):  # to the end, where the checksum is compared
        content += block
        if len(content) > size:
            raise ValueError(f"more than the {size:,} bytes of its shape are stored")
    if len(content) < size:
        raise ValueError(f"{len(content):,} of {size:,} bytes are stored")
    flat = np.frombuffer(bytes(content), kind) if kind.itemsize else np.zeros(math.prod(shape), kind)
    return flat.reshape(shape, order="F" if columns_first else "C")
