"""What the folder of an experiment keeps of its runs: their newest states, and their best policies where asked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from score_rl.algorithms.algorithm import Algorithm, Shapes
from score_rl.data.treatment import Treatment
from score_rl.errors import InputError
from score_rl.store.checkpoints import (
    Checkpoint,
    DamagedError,
    best_path,
    checkpoint_path,
    checkpoints,
    from_arrays,
    load_checkpoint,
    prefixed,
    row_of,
    step_of,
)
from score_rl.store.folder import Folder
from score_rl.store.records import RunRecord


class KeptPolicy(NamedTuple):
    """A policy, and after how many updates it was taken."""

    step: int
    policy: Any
    treatment: Treatment


class KeptStates:
    """Reads them. A checkpoint holds the whole fleet, so it is read once for all of its runs."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._read: dict[tuple[int, int | None], Checkpoint] = {}

    def load(
        self, run: RunRecord, algorithm: Algorithm, config: Any, at: int | None = None
    ) -> tuple[int, Any, Treatment]:
        """Step, state and treatment of a run: from the newest whole checkpoint, or from the one `at` a step."""
        which = (run.fleet, at)
        if which not in self._read:
            self._read[which] = _checkpoint(self._folder.fleet(run.fleet), at)
        step, arrays, _ = self._read[which]
        stacked = {name: array for name, array in arrays.items() if name.startswith(("state.", "treatment."))}
        shapes = jax.eval_shape(lambda: algorithm.init(config, _shapes(run), jax.random.key(0)))
        try:
            mine = row_of(stacked, run.position)
            return step, from_arrays(prefixed(mine, "state."), shapes), _treatment(mine, run)
        except DamagedError as error:
            where = self._folder.fleet(run.fleet)
            raise InputError(f"the checkpoint in {where} is not of {run.id} ({error}); restore it.") from error

    def load_best(self, run: RunRecord, algorithm: Algorithm, config: Any) -> KeptPolicy:
        """The policy that training's own evaluations liked most."""
        path = best_path(self._folder.fleet(run.fleet), run.position)
        if not path.exists():
            raise InputError(
                f"no best policy of {run.id} is kept; train with `keep_best`, or give a number of updates as `step`."
            )
        try:
            step, stacked, _ = load_checkpoint(path)
            arrays = row_of(stacked, 0)
            wanted = jax.eval_shape(lambda: algorithm.policy(algorithm.init(config, _shapes(run), jax.random.key(0))))
            return KeptPolicy(step, from_arrays(prefixed(arrays, "policy."), wanted), _treatment(arrays, run))
        except DamagedError as error:
            raise InputError(f"{path} is damaged ({error}); restore it, or judge the last policy.") from error


def _shapes(run: RunRecord) -> Shapes:
    return Shapes(run.observation_dim, run.action_dim)


def _treatment(arrays: Mapping[str, Any], run: RunRecord) -> Treatment:
    shapes: dict[str, tuple[int, ...]] = {
        "observation": (run.observation_dim,),
        "reward": (),
        "action": (run.action_dim,),
    }
    for name in Treatment._fields:
        stored, expected = arrays.get(f"treatment.{name}"), shapes[name.partition("_")[0]]
        shape = None if stored is None else () if stored.shape == (1,) and not expected else stored.shape
        if stored is None or shape != expected or stored.dtype != np.float32 or not np.isfinite(stored).all():
            raise DamagedError(f"treatment.{name} is not what a run of {run.dataset} has")
    return Treatment(*(arrays[f"treatment.{name}"] for name in Treatment._fields))


def _checkpoint(folder: Path, at: int | None) -> Checkpoint:
    """The newest whole one, or the one after so many updates."""
    reasons, found = [], checkpoints(folder)
    if at is not None:
        wanted = checkpoint_path(folder, at)
        if wanted not in found:
            kept = ", ".join(f"{step_of(path):,}" for path in found) or "no update"
            raise InputError(f"`step` is {at}, but {folder} keeps the policies of {kept}; give one of these, or best.")
        found = [wanted]
    for path in found:
        try:
            return load_checkpoint(path)
        except DamagedError as error:
            reasons.append(f"{path.name} is damaged: {error}")
    if reasons:
        raise InputError(f"{folder} holds no whole checkpoint ({'; '.join(reasons)}).")
    raise InputError(f"{folder} holds no checkpoint yet; train first, or wait for the first minute to pass.")
