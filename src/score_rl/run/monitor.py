"""Whether runs are sound, by what they measure: finite at all, and within what their rewards can add up to."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from score_rl.engine.runs import Run
from score_rl.run import messages
from score_rl.run.context import TrainingContext
from score_rl.run.plausibility import value_range
from score_rl.store.metrics import Row


class RunMonitor:
    """Reads the metrics of every window. It marks runs that diverged and those with impossible values."""

    def __init__(self, runs: Sequence[Run], treatments: Any, context: TrainingContext) -> None:
        """`treatments` are those of the runs, stacked."""
        self._runs = list(runs)
        self._status, self._announcer = context.status, context.announcer
        self._ranges = [
            value_range(run, jax.tree.map(lambda leaf, row=row: leaf[row], treatments))
            for row, run in enumerate(self._runs)
        ]
        self._warned: set[str] = set()  # runs whose values were impossible at some time

    @property
    def ids(self) -> list[str]:
        return [run.id for run in self._runs]

    @property
    def sound(self) -> list[str]:
        """The runs that have not diverged."""
        return self._status.sound(self.ids)

    def inspect(self, step: int, means: Mapping[str, np.ndarray]) -> list[Row]:
        """The rows to store of a window that ends after `step` updates; none of a run that has diverged."""
        rows = []
        for row, run in enumerate(self._runs):
            if self._status.has_diverged(run.id):
                continue
            values = {name: float(column[row]) for name, column in means.items()}
            broken = [name for name, value in values.items() if not np.isfinite(value)]
            if broken:
                self._status.set_diverged(run.id, step)
                self._announcer.say(messages.diverged(run.id, step, broken[0]))
                continue
            self._status.set_step([run.id], step)
            self._compare_with_range(row, step, values)
            rows += [Row(run.id, step, f"train/{name}", value) for name, value in values.items()]
        return rows

    def _compare_with_range(self, row: int, step: int, values: Mapping[str, float]) -> None:
        """The status says that values are impossible for as long as they are; the console says it the first time."""
        run, possible = self._runs[row].id, self._ranges[row]
        warning = None
        if possible is not None and "q" in values:
            warning = possible.warning(values["q"], values.get("temperature", 0.0))
        self._status.set_warning(run, warning)
        if warning is not None and run not in self._warned:
            self._warned.add(run)
            if len(self._warned) <= messages.RUNS_NAMED:
                self._announcer.say(messages.impossible_values(run, step, warning))

    def conclude(self) -> None:
        """At the end, say which runs have impossible values."""
        warned = self._status.warned(self.sound)
        if warned:
            self._announcer.say(messages.ended_with_impossible_values(warned, len(self._runs)))
