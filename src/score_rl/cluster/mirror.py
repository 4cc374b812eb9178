"""An attempt on a machine that shares no storage with the driver: its files come from there and go back."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from score_rl.cluster.orders import Order
from score_rl.disk import cache_folder, private_folder, write_file
from score_rl.errors import InputError
from score_rl.store import metrics
from score_rl.store.checkpoints import FREE_AND_RESUME, KEEP, checkpoints
from score_rl.store.folder import STATUS
from score_rl.store.lock import held, is_held
from score_rl.store.parts import LOG, OUTCOME, PROGRESS

TEMPORARY = "cluster-work"  # below the cache of a machine
IN_USE = "in-use.lock"  # in each folder there, held until everything was sent

Change = dict[str, Any]  # path: below the attempt; content: bytes as an array


def files_of(attempt: Path) -> dict[str, np.ndarray]:
    """What training needs to go on: checkpoints, measurements, status."""
    return {str(file.relative_to(attempt)): np.fromfile(file, np.uint8) for file in _needed(attempt)}


def apply(change: Mapping[str, Any], attempt: Path) -> None:
    """Write what a machine sent. It may write below the attempt alone."""
    path = PurePosixPath(change["path"])
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise InputError(f"a machine sent a file called {str(path)[:60]!r}; nothing is written outside {attempt}.")
    target = attempt / path
    write_file(target, np.asarray(change["content"], np.uint8).tobytes(), if_full=FREE_AND_RESUME)
    if target.suffix == ".safetensors":
        for old in checkpoints(target.parent)[KEEP:]:
            old.unlink()


class Mirror:
    """The folder in which a machine trains. Use it as a context."""

    def __init__(self, order: Order, files: Mapping[str, np.ndarray] | None) -> None:
        """Without files, the attempt itself: the machine sees it."""
        self.folder, self._own = order.path, files is not None
        self._kept = contextlib.ExitStack()
        if files is None:
            return
        place = private_folder(cache_folder() / TEMPORARY)
        _remove_forsaken(place)
        self.folder = Path(tempfile.mkdtemp(prefix=f"fleet-{order.number}-", dir=place))
        self._kept.enter_context(held(self.folder, IN_USE))
        try:
            for name, content in files.items():
                apply({"path": name, "content": content}, self.folder)
        except BaseException:
            self.__exit__()
            raise
        self._sent = {file: _mark(file) for file in _needed(self.folder)}

    def __enter__(self) -> "Mirror":
        return self

    def __exit__(self, *of_the_error: object) -> None:
        if self._own:
            shutil.rmtree(self.folder, ignore_errors=True)
        self._kept.close()

    def changes(self, *, last: bool = False) -> Iterator[Change]:
        """The files to send since the last call. Measurements go with a checkpoint, before it."""
        fresh = [file for file in _needed(self.folder) if self._sent.get(file) != _mark(file)]
        due = last or any(file.suffix == ".safetensors" for file in fresh)
        files = fresh if due else []
        files += [self.folder / name for name in (PROGRESS, *((LOG, OUTCOME) if last else ()))]
        files += sorted(self.folder.glob("tensorboard/*/events*")) if last else []
        for file in files:
            mark = _mark(file)
            if mark is None or self._sent.get(file) == mark:
                continue
            try:
                content = np.fromfile(file, np.uint8)
            except FileNotFoundError:  # a newer checkpoint took its place
                continue
            self._sent[file] = mark
            yield {"path": file.relative_to(self.folder).as_posix(), "content": content}


def _remove_forsaken(place: Path) -> None:
    """What tasks left that were killed on this machine: checkpoints would fill its disk, one kill after the other."""
    for folder in place.glob("fleet-*"):
        if is_held(folder, IN_USE) is False:
            shutil.rmtree(folder, ignore_errors=True)


def _needed(attempt: Path) -> list[Path]:
    """Measurements come first: a checkpoint that is there has those before it."""
    folders = [*attempt.glob("fleet-*"), *attempt.glob("fleet-*/stage-*")]
    files = [attempt / metrics.FILE, attempt / STATUS]
    files += [path for folder in folders for path in reversed(checkpoints(folder)[:KEEP])]
    return [file for file in files if file.is_file()]


def _mark(file: Path) -> tuple[int, int] | None:
    """What tells one content of a file from the next."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        return None
    return stat.st_mtime_ns, stat.st_size
