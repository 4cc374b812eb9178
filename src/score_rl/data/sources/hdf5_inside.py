"""Whether an HDF5 file stays within itself in all its parts: for libraries that read it on their own, such as Minari's.

`hdf5_file` reads what this package asks for by name, and looks at each part when it is asked for. Another library asks
for what it likes and follows whatever it finds. So all of the file is looked at before.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

from score_rl.data.sources.file_trial import refuse_fatal
from score_rl.data.sources.hdf5_file import Hdf5File, open_hdf5
from score_rl.errors import InputError, printable

MOST_PARTS = 5_000_000  # groups and arrays


def refuse_outside(path: Path) -> None:
    """Refuse a file in which anything leads elsewhere, was never written, or is larger than the file can hold."""
    refuse_fatal(path, "HDF5", "score_rl.data.sources.hdf5_inside:read_all")
    with open_hdf5(path, trusted=True) as file:
        for key in _arrays(file):
            file.refuse_unreadable(key)


def read_all(path: Path) -> None:
    """To see whether that ends."""
    import h5py

    with suppress(InputError), open_hdf5(path, trusted=True) as file:
        for key in _arrays(file):
            file.refuse_unreadable(key)
        with suppress(Exception):  # whoever reads it meets it too
            file.visit(lambda found: (dict(found.attrs), found[()] if isinstance(found, h5py.Dataset) else None))


def _arrays(file: Hdf5File) -> list[str]:
    """The paths of all arrays. A link is refused, and so is a group that holds itself."""
    arrays: list[str] = []
    groups, seen, count = [""], set[Any](), 0
    while groups:
        above = groups.pop()
        for name in file.names(above):
            key = f"{above}/{name}" if above else name
            count += 1
            place, is_group = file.own_part(key)
            if count > MOST_PARTS or (is_group and place in seen):
                raise InputError(f"{file.path}: {printable(key)} holds itself, or the file has no end of parts.")
            seen.add(place)
            (groups if is_group else arrays).append(key)
    return arrays
