"""The policies that training's own evaluations liked most, kept beside the last ones where that was asked for.

The last policy is the result. A policy that was chosen by its evaluations is flattered by them, so it is judged in
fresh episodes only (`score evaluate --step best`).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jax

from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.errors import InputError
from score_rl.store.checkpoints import DamagedError, best_path, load_checkpoint, to_arrays, write_arrays
from score_rl.store.metrics import Row
from score_rl.store.request import ExperimentSpec

MEASURES = ("evaluation/score", "evaluation/return")  # the first that is measured counts


def refuse_best_of_nothing(spec: ExperimentSpec, runs: Iterable[Run]) -> None:
    """Without evaluations no policy is the best."""
    environments = {spec.environment or run.dataset.environment for run in runs}
    if spec.keep_best and environments & {None, "none"}:
        raise InputError(
            "`keep_best` needs evaluations in a simulator, and the data name none: name one as `environment`, or leave "
            "`keep_best` out and use score judge."
        )


class BestPolicies:
    """Keeps the best policy of each run of a fleet."""

    def __init__(self, folder: Path, program: FleetProgram) -> None:
        self._folder = folder
        self._places = {run.id: place for place, run in enumerate(program.runs)}
        self._treatments = jax.device_get(program.inputs.treatment)
        self._best = {run: value for run, place in self._places.items() if (value := self._kept(place)) is not None}

    def consider(self, step: int, policies: Any, rows: Sequence[Row]) -> None:
        """Keep those that did better than all before; `policies` are the fleet's, stacked, as evaluated in `rows`."""
        measured = {(row.run, row.name): row.value for row in rows}
        for run, place in self._places.items():
            value = next((measured[run, name] for name in MEASURES if (run, name) in measured), None)
            if value is None or value <= self._best.get(run, -float("inf")):
                continue
            self._best[run] = value
            # One row of each stack, as a checkpoint has it: a single number would lose its shape in a file.
            mine = jax.tree.map(lambda leaf, place=place: leaf[place : place + 1], (policies, self._treatments))
            arrays = to_arrays({"policy": mine[0], "treatment": mine[1]})
            path = best_path(self._folder, place)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_arrays(path, step, arrays, {"run": run, "value": value})

    def _kept(self, place: int) -> float | None:
        path = best_path(self._folder, place)
        if not path.exists():
            return None
        try:
            return float(load_checkpoint(path).about["value"])
        except (DamagedError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path} is damaged ({error}); restore it from a copy, or remove it: the best of what is still to be "
                "evaluated is then kept."
            ) from error
