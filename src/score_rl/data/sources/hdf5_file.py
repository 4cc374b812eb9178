"""An HDF5 file from a stranger, opened for reading: only what lies in the file itself, and only what it has room for.

HDF5 can point elsewhere: to other files (external links, external storage, virtual data sets), to files of any kind as
raw bytes, and in circles. All of that is refused by name. So are data sets that were never written, which the library
reads as zeros, and sizes that the file cannot hold. Whatever the library itself raises on a damaged file becomes one
sentence.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from score_rl.data.sources.file_trial import refuse_fatal
from score_rl.errors import InputError, printable

MOST_LINKS = 16  # that one name may lead through
MOST_UNPACKED = 100  # times its size may a compressed file grow in memory
ALWAYS_ALLOWED = 64 << 20  # bytes: a column of zeros packs a thousandfold, and small files do no harm
LONGEST_TEXT = 1 << 20  # bytes of one text in the metadata
DAMAGED = "fetch or build the file again"


class Hdf5File:
    """Arrays and texts of an open file, by their paths."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self._file = path, file
        self._size = path.stat().st_size
        self._room = max(ALWAYS_ALLOWED, MOST_UNPACKED * self._size)  # bytes that may still be read

    def __contains__(self, key: str) -> bool:
        """Whether there is something of this name; a link counts, wherever it leads."""
        *above, last = key.split("/")
        with self._sound(key):
            group = self._find("/".join(above))
            return group is not None and _is_group(group) and bool(group.links.exists(last.encode()))

    def names(self, group: str = "") -> list[str]:
        """What a group holds; empty where there is no such group. Names that are no text are shown escaped."""
        with self._sound(group or "the file"):
            found = self._find(group)
            names = list(found) if found is not None and _is_group(found) else []
            return sorted(name.decode(errors="backslashreplace") for name in names)

    def shape(self, key: str) -> tuple[int, ...]:
        """Of an array, without reading it."""
        with self._sound(key):
            return tuple(map(int, self._dataset(key).shape))

    def array(self, key: str) -> np.ndarray:
        """An array of numbers or booleans."""
        import h5py

        with self._sound(key):
            dataset = self._dataset(key)
            kind = dataset.dtype
            if kind.kind not in "biuf":
                self._refuse(key, f"holds {printable(str(kind))}, but numbers are expected: store it so")
            self._take_room(key, dataset, kind.itemsize)
            return np.asarray(h5py.Dataset(dataset)[()])

    def texts(self, key: str) -> tuple[str, ...] | str | None:
        """One text, or a list of texts; None where there is nothing of this name."""
        import h5py

        if key not in self:
            return None
        with self._sound(key):
            dataset = self._dataset(key)
            if h5py.check_string_dtype(dataset.dtype) is None:
                self._refuse(key, f"is {printable(str(dataset.dtype))}, but a text is expected: correct or remove it")
            self._take_room(key, dataset, dataset.get_type().get_size(), most=LONGEST_TEXT)
            found = h5py.Dataset(dataset)[()]
            if isinstance(found, np.ndarray) and found.ndim > 1:
                self._refuse(key, f"has shape {found.shape}, but a list of texts is expected: correct or remove it")
            return _text(found) if not isinstance(found, np.ndarray) else tuple(map(_text, found))

    def own_part(self, key: str) -> tuple[int, bool]:
        """Where a part lies in the file, and whether it is a group. Links of any kind are refused."""
        import h5py

        with self._sound(key):
            above, _, name = key.rpartition("/")
            group = self._find(above)
            if group is None or group.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
                self._refuse(key, "is a link: store the data themselves")
            found = self._find(key)
            return int(h5py.h5o.get_info(found).addr), _is_group(found)

    def refuse_unreadable(self, key: str) -> None:
        """Refuse an array that leads out of the file, was never written, or is larger than the file can hold."""
        with self._sound(key):
            dataset = self._dataset(key)
            self._take_room(key, dataset, dataset.get_type().get_size())

    def visit(self, look: Callable[[Any], object]) -> None:
        """Have all groups and arrays looked at as the library gives them."""
        look(self._file)
        self._file.visititems(lambda name, found: look(found) and None)

    # -- finding ---------------------------------------------------------------------------------------------------

    def _find(self, key: str) -> Any | None:
        """What stands under a path, through links within the file; None where there is nothing."""
        import h5py

        root = h5py.h5g.open(self._file.id, b"/")
        at, parts, links = root, deque(part for part in key.encode().split(b"/") if part), 0
        while parts:
            name = parts.popleft()
            if name == b".":
                continue
            if not _is_group(at) or not at.links.exists(name):
                if links:
                    self._refuse(key, "is a link to something that is not in the file: store the data themselves")
                return None
            kind = at.links.get_info(name).type
            if kind == h5py.h5l.TYPE_HARD:
                at = h5py.h5o.open(at, name)
            elif kind == h5py.h5l.TYPE_SOFT:
                links += 1
                if links > MOST_LINKS:
                    self._refuse(key, "is a link that leads in a circle: store the data themselves")
                target = at.links.get_val(name)
                parts.extendleft(reversed([part for part in target.split(b"/") if part]))
                at = root if target.startswith(b"/") else at
            elif kind == h5py.h5l.TYPE_EXTERNAL:
                other = at.links.get_val(name)[0].decode(errors="backslashreplace")
                self._refuse(
                    key,
                    f"is an external link, to the file {printable(other)}: no other file is read; store the data "
                    "themselves",
                )
            else:
                self._refuse(key, "is a link of an unknown kind: store the data themselves")
        return at

    def _dataset(self, key: str) -> Any:
        """An array that lies in this file and was written."""
        import h5py

        found = self._find(key)
        if found is None:
            self._refuse(key, "is missing")
        if _is_group(found):
            self._refuse(key, "is a group, but an array is expected: store it so")
        if not isinstance(found, h5py.h5d.DatasetID):
            self._refuse(key, "is a type, but an array is expected: store it so")
        layout = found.get_create_plist()
        if layout.get_layout() == h5py.h5d.VIRTUAL:
            self._refuse(key, "is a virtual data set, made of other files: none of them is read; store the data itself")
        if layout.get_external_count():
            other = layout.get_external(0)[0].decode(errors="backslashreplace")
            self._refuse(
                key, f"has external storage, the file {printable(other)}: no other file is read; store the data itself"
            )
        for place in range(layout.get_nfilters()):
            code, _, _, name = layout.get_filter(place)
            if not h5py.h5z.filter_avail(code):
                called = printable(name.decode(errors="backslashreplace")) or code
                self._refuse(key, f"is packed with the filter {called}, which is not installed: store it with gzip")
        if found.get_space().get_simple_extent_type() == h5py.h5s.NULL:
            self._refuse(key, "has no content (a null data set): store the data, or leave it out")
        return found

    def _take_room(self, key: str, dataset: Any, itemsize: int, most: int | None = None) -> None:
        """Refuse what was not written, and sizes that the file cannot hold."""
        import h5py

        count = int(np.prod([int(length) for length in dataset.shape], dtype=object)) if dataset.shape else 1
        layout = dataset.get_create_plist()
        if count and dataset.get_space_status() != h5py.h5d.SPACE_STATUS_ALLOCATED:
            some = dataset.get_space_status() == h5py.h5d.SPACE_STATUS_PART_ALLOCATED
            much = "was written only in part" if some else "was never written"
            self._refuse(key, f"{much}, and what is missing would be read as zeros: write it, or leave it out")
        needed = count * itemsize
        if layout.get_layout() == h5py.h5d.CHUNKED:
            chunk = int(np.prod([int(length) for length in layout.get_chunk()], dtype=object)) * itemsize
            needed = max(needed, chunk) if count else 0
            allowed = self._room
        else:
            allowed = min(self._room, self._size)
        if needed > allowed or (most is not None and needed > most):
            self._refuse(
                key,
                f"declares {needed:,} bytes, more than a file of {self._size:,} bytes is believed: {DAMAGED}"
                + (", or store it without compression" if layout.get_nfilters() else ""),
            )
        self._room -= needed

    # -- refusing --------------------------------------------------------------------------------------------------

    @contextmanager
    def _sound(self, key: str) -> Iterator[None]:
        """Whatever the library raises on a damaged file becomes one sentence."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:  # h5py raises OSError, RuntimeError, ValueError, KeyError, TypeError and more
            reason = printable(str(error)) or type(error).__name__
            raise InputError(f"{self.path}: {printable(key)} is damaged ({reason}): {DAMAGED}.") from error

    def _refuse(self, key: str, problem: str) -> NoReturn:
        raise InputError(f"{self.path}: {printable(key)} {problem}.")


@contextmanager
def open_hdf5(path: Path, *, trusted: bool = False) -> Iterator[Hdf5File]:
    """The file opened for reading, or one sentence on why that cannot be.

    A `trusted` file has a checksum that somebody vouches for. Others are read by another process first.
    """
    import h5py

    if not path.exists():
        raise InputError(f"{path} does not exist: give the path of a D4RL-format HDF5 file.")
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the path of a D4RL-format HDF5 file.")
    if not path.is_file():
        raise InputError(f"{path} is no ordinary file: give the path of a D4RL-format HDF5 file.")
    if not trusted:
        refuse_fatal(path, "HDF5", "score_rl.data.sources.hdf5:read_everything")
    try:
        readable = h5py.is_hdf5(path)
        file = h5py.File(path, "r", locking="best-effort") if readable else None  # some disks have no locks
    except OSError as error:
        if "truncated" in str(error):
            raise InputError(
                f"{path} is truncated: it ends before its contents do; fetch or build it again."
            ) from error
        raise InputError(
            f"{path} cannot be opened as HDF5 ({printable(str(error))}): fetch or build it again."
        ) from error
    except Exception as error:  # a damaged file
        raise InputError(f"{path} is damaged ({printable(str(error))}): fetch or build it again.") from error
    if file is None:
        size = path.stat().st_size
        found = "empty" if size == 0 else f"{size} bytes of something else"
        raise InputError(
            f"{path} is not an HDF5 file ({found}), and training reads no other format: score data import makes one "
            "of a table (CSV, Parquet or npz)."
        )
    try:
        yield Hdf5File(path, file)
    finally:
        with suppress(Exception):  # a damaged file was refused already, and nothing was written
            file.close()


def _is_group(found: Any) -> bool:
    import h5py

    return isinstance(found, h5py.h5g.GroupID)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
