"""A part of a large file in our format, to be checked as a file of its own: whole trajectories, evenly spread."""

from pathlib import Path

import numpy as np

PIECES = 20


def write_sample(path: Path, out: Path, rows: int) -> int:
    """Copy about so many rows to `out`, in pieces that begin and end with a trajectory; how many they are."""
    import h5py

    with h5py.File(path, "r") as file, h5py.File(out, "w") as sample:
        pieces = _pieces(np.flatnonzero(file["trajectory_ends"][()]) + 1, rows)
        count = sum(stop - start for start, stop in pieces)
        for key in (key for key in file if key != "metadata"):
            copy = sample.create_dataset(key, (count, *file[key].shape[1:]), file[key].dtype)
            written = 0
            for start, stop in pieces:
                copy[written : written + stop - start] = file[key][start:stop]
                written += stop - start
        file.copy("metadata", sample)
    return count


def _pieces(stops: np.ndarray, rows: int) -> list[tuple[int, int]]:
    """Where trajectories begin and stop, in pieces of about a twentieth of so many rows."""
    starts = np.concatenate([[0], stops[:-1]])
    pieces, last = [], 0
    for wanted in np.linspace(0, stops[-1], PIECES, endpoint=False):
        first = int(np.searchsorted(starts, max(wanted, last)))
        if first == len(starts):
            break
        stop = min(int(np.searchsorted(stops, starts[first] + rows // PIECES)), len(stops) - 1)
        pieces.append((int(starts[first]), int(stops[stop])))
        last = int(stops[stop])
    return pieces
