"""A recording of many oracle episodes, by processes that share the cores.

The rows depend on the recipe alone, never on the number of processes. Episodes are written in parts. A recording that
was broken off goes on with the parts that are missing.
"""

import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np

import score_rl
from score_rl.data.collection.oracle_episodes import OracleTask, import_ogbench
from score_rl.data.collection.writing import library_versions
from score_rl.data.progress_bar import row_progress
from score_rl.data.sources.npz_file import read_npz
from score_rl.disk import replacing
from score_rl.envs.interface import available_cores
from score_rl.versions import version_of

RECIPE_FORMAT = 1  # raise it when the same recipe would give other rows
EPISODES_IN_A_PART = 2  # a process writes them after some seconds
# One core to a process, and no screen: whatever would start threads or open windows is told not to.
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MUJOCO_GL": "disable"}


def oracle_recipe(task: OracleTask, episodes: int, seed: int) -> dict[str, Any]:
    """Everything that decides the rows. Equal recipes give equal rows, but for other versions of the libraries."""
    return {"format": RECIPE_FORMAT, "task": asdict(task), "episodes": episodes, "seed": seed}


def record_oracles(
    path: Path,
    task: OracleTask,
    episodes: int,
    seed: int,
    folder: Path | None = None,
    *,
    label: str,
    progress: bool,
    processes: int | None = None,
) -> None:
    """Record so many episodes and write them to an npz file with the published columns, and the recipe.

    `folder` holds the parts that are done meanwhile.
    """
    import_ogbench()  # refused here, in one sentence, where it is not installed
    recipe = oracle_recipe(task, episodes, seed)
    folder = path.with_name(f"{path.name}.parts") if folder is None else folder
    parts = _parts(folder, episodes)
    _keep_parts_of(folder, {**recipe, "versions": oracle_versions()})
    with row_progress(label, episodes * task.steps, progress) as advance:
        missing = [part for part in parts if not part[0].exists()]
        advance((episodes - sum(len(numbers) for _, numbers in missing)) * task.steps)
        number = max(1, min(processes or available_cores(), len(missing)))
        if missing:
            _record_parts(missing, {"task": asdict(task), "seed": seed}, number, advance)
    _join([file for file, _ in parts], path, {**recipe, "versions": oracle_versions()})
    shutil.rmtree(folder)


def oracle_versions() -> dict[str, str]:
    """The libraries that move the robots. Contacts differ between versions of MuJoCo in the last digits and grow."""
    return {**library_versions(), "ogbench": version_of("ogbench"), "dm_control": version_of("dm_control")}


def read_oracle_recipe(path: Path) -> dict[str, Any] | None:
    """How this library recorded the file; None for any other file."""
    found = read_npz(path, ["recipe"])
    if "recipe" not in found:
        return None
    try:
        recipe = json.loads(str(found["recipe"]))
    except (ValueError, RecursionError):
        return None
    return recipe if isinstance(recipe, dict) else None


def holds_oracle_recipe(path: Path, recipe: Mapping[str, Any]) -> bool:
    """Whether the file exists and was made by this recipe. Versions of libraries may differ."""
    if not path.exists():
        return False
    stored = read_oracle_recipe(path)
    return stored is not None and {key: value for key, value in stored.items() if key != "versions"} == recipe


def _parts(folder: Path, episodes: int) -> list[tuple[Path, list[int]]]:
    """Every part's file and the numbers of its episodes."""
    starts = range(0, episodes, EPISODES_IN_A_PART)
    return [
        (folder / f"{start:06d}.npz", list(range(start, min(start + EPISODES_IN_A_PART, episodes)))) for start in starts
    ]


def _keep_parts_of(folder: Path, recipe: Mapping[str, Any]) -> None:
    """Make the folder for parts. Parts of another recipe, or of other versions, are removed."""
    note = folder / "recipe.json"
    told = json.dumps(recipe, sort_keys=True)
    if folder.exists() and not (note.exists() and note.read_text() == told):
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(note) as temporary:
        temporary.write_text(told)


def _record_parts(
    parts: Sequence[tuple[Path, list[int]]], about: Mapping[str, Any], number: int, advance: Callable[[int], None]
) -> None:
    free: queue.SimpleQueue[_Process] = queue.SimpleQueue()
    with _processes(about, number) as started, ThreadPoolExecutor(number) as threads:
        for process in started:
            free.put(process)

        def record(part: tuple[Path, list[int]]) -> int:
            process = free.get()
            try:
                return process.record(*part)
            finally:
                free.put(process)

        pending = {threads.submit(record, part) for part in parts}
        try:
            while pending:
                done, pending = wait(pending, timeout=0.2, return_when=FIRST_EXCEPTION)
                for future in done:
                    advance(future.result())
        except BaseException:
            for process in started:
                process.end()
            threads.shutdown(wait=False, cancel_futures=True)
            raise


@contextlib.contextmanager
def _processes(about: Mapping[str, Any], number: int) -> "Iterator[list[_Process]]":
    started = [_Process(about) for _ in range(number)]
    try:
        yield started
    finally:
        for process in started:
            process.end()
            process.close()


class _Process:
    """A process that records one part after the other."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self._printed: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # for when it fails
        here = str(Path(score_rl.__file__).parents[1])
        path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "score_rl.data.collection.oracle_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            text=True,
            env=os.environ | ALONE | {"PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for who started it
        )
        self._tell(about)

    def record(self, file: Path, episodes: list[int]) -> int:
        """Record a part; how many rows it has."""
        self._tell({"file": str(file), "episodes": episodes})
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise self._failure()
        return int(answer)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the pipes, when nobody reads them any more."""
        for stream in (self._process.stdin, self._process.stdout, self._printed):
            with contextlib.suppress(BrokenPipeError):  # what was still to be written
                assert stream is not None
                stream.close()

    def _tell(self, facts: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(facts) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise self._failure() from error

    def _failure(self) -> RuntimeError:
        status = self._process.wait()
        self._printed.seek(0)
        said = self._printed.read()[-2000:].decode(errors="replace").strip()
        return RuntimeError(f"a recording process ended with status {status}" + (f":\n{said}" if said else "."))


def _join(files: Sequence[Path], path: Path, recipe: Mapping[str, Any]) -> None:
    """All parts in the order of their episodes, in one file."""
    loaded = []
    for file in files:
        with np.load(file, allow_pickle=False) as part:
            loaded.append({name: part[name] for name in part.files})
    rows = {name: np.concatenate([part[name] for part in loaded]) for name in loaded[0]}
    with replacing(path, sum(column.nbytes for column in rows.values())) as temporary, temporary.open("wb") as target:
        np.savez(target, allow_pickle=False, recipe=np.array(json.dumps(recipe)), **rows)
