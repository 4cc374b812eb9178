"""Results of stages, kept for the next experiment on the same data with the same settings.

CACHE/stages/KEY.safetensors   what a stage came to, for one run

The key is made of everything that decides a result: the algorithm, the stage and its settings, the data's checksum and
the seed.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import jax

from score_rl.algorithms.algorithm import Stage
from score_rl.disk import ANOTHER_CACHE, cache_folder, private_folder
from score_rl.engine.runs import Run
from score_rl.errors import InputError
from score_rl.run import messages
from score_rl.run.messages import Announcer
from score_rl.store.checkpoints import DamagedError, from_arrays, load_checkpoint, to_arrays, write_arrays

FORMAT = 2  # to be raised whenever a stage would come to something else from the same settings, or is stored otherwise


def stage_cache() -> Path:
    return cache_folder() / "stages"


def cache_key(run: Run, stage: Stage) -> str:
    """What decides the result of a stage, as a file name."""
    settings = {name: getattr(run.config, name) for name in sorted(stage.settings)}
    about = [FORMAT, run.algorithm.name, stage.name, settings, run.dataset.checksum, run.seed]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]


def cache_path(run: Run, stage: Stage) -> Path:
    return stage_cache() / f"{run.algorithm.name}-{stage.name}-{cache_key(run, stage)}.safetensors"


def find_result(run: Run, stage: Stage, shapes: Any, announcer: Announcer) -> Any | None:
    """What the stage came to for this run; `shapes` are those of a whole fleet's results."""
    path = cache_path(run, stage)
    try:
        private_folder(path.parent)
    except InputError as error:
        announcer.say(messages.stage_not_trusted(stage.name, error))
        return None
    if not path.exists():
        return None
    alone = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), shapes)
    try:
        _, arrays, about = load_checkpoint(path)
        if about.get("key") != cache_key(run, stage):
            raise DamagedError("it was made of other data, with other settings or another seed")
        return from_arrays(arrays, alone)
    except DamagedError as error:
        announcer.say(messages.damaged_stage(path, error))
        return None


def keep_result(run: Run, stage: Stage, result: Any, announcer: Announcer) -> None:
    """Training needs no cache: where there is no space for it, that is said and nothing more."""
    path, arrays = cache_path(run, stage), to_arrays(result)
    about = {"run": run.id, "dataset": run.dataset.name, "key": cache_key(run, stage)}
    try:
        private_folder(path.parent)
        write_arrays(path, 0, arrays, about, if_full=ANOTHER_CACHE)
    except InputError as error:
        announcer.say(messages.stage_not_kept(stage.name, error))
