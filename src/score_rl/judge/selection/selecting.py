"""From a data set to one policy: measure, plan, train, judge, narrow, choose."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from score_rl.errors import InputError, Stopped
from score_rl.judge.selection.beginning import Asked, begin
from score_rl.judge.selection.grid import DEFAULT_METHODS
from score_rl.judge.selection.stages import StageWork
from score_rl.run.compiled_programs import keep_compiled_programs
from score_rl.run.experiment import Experiment, TrainedRun
from score_rl.run.machines import Machines
from score_rl.run.messages import Announcer
from score_rl.store.selections import Choice, Plan, read_selection


class Selection:
    """The folder of a selection: what was planned, judged and chosen, and the chosen run."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.record = read_selection(self.path)

    def __repr__(self) -> str:
        choice = self.record.choice
        said = "not finished" if choice is None else choice.run or "no policy is recommended"
        return f"<selection {self.path}: {said}>"

    @property
    def choice(self) -> Choice:
        if self.record.choice is None:
            raise InputError(f"{self.path} is not finished; go on with it by `score select --resume {self.path}`.")
        return self.record.choice

    @property
    def run(self) -> TrainedRun:
        """The run whose policy is recommended; refused where none is."""
        if self.choice.run is None or self.choice.folder is None:
            raise InputError(f"no policy of {self.path} is recommended: {self.choice.why}")
        found: TrainedRun = Experiment(self.path / self.choice.folder)[self.choice.run]
        return found


def select(
    data: Any = None,
    *,
    columns: Mapping[str, Any] | None = None,
    methods: Sequence[str] = DEFAULT_METHODS,
    budget: str | float = "10m",
    seeds: int | Sequence[int] = 3,
    hold_out: float = 0.1,
    out: Path | str | None = None,
    resume: Path | str | None = None,
    transitions: int | None = None,
    action_bounds: tuple[float, ...] | None = None,
    plan: Plan | None = None,
    quiet: bool = False,
    on: Machines | None = None,
) -> Selection:
    """Choose a method and its settings for these data without a simulator, within a budget of time.

    A grid of methods and settings is trained on most trajectories and judged on the others. Where the budget is small
    the best are narrowed down early. docs/selecting.md has the rule of the choice.

    >>> selection = score_rl.select("logs.hdf5", budget="10m")
    >>> selection.choice.why
    >>> action = selection.run.policy(observation)

    Args:
        data: Whatever `score_rl.train` takes as a data set.
        columns: Of a frame, what its columns are: the arguments of `Dataset.from_frame`.
        methods: Algorithms to choose among.
        budget: Time for training and judging, such as "10m" or "2h", or seconds.
        seeds: How many seeds, or which, each candidate is trained with.
        hold_out: Share of the trajectories that judges and takes no part in training.
        out: Folder of the selection; a new one in runs unless given.
        resume: Go on where the folder of an earlier call stands, within the same budget.
        transitions: Rows to use; all unless given.
        action_bounds: LOW, HIGH of all actions, or of each, where the data do not say.
        plan: A plan of your own, which is trained as it is, whatever time it takes.
        quiet: Whether to say nothing.
        on: Train on a cluster (docs/cluster.md). The plan is made by the speed of this machine, which judges too.
    """
    began, announcer = time.monotonic(), Announcer(quiet=quiet)
    keep_compiled_programs()
    if resume is not None:
        folder = Path(resume)
        record = read_selection(folder)
    else:
        asked = Asked(data, columns, methods, budget, seeds, hold_out, transitions, action_bounds)
        folder, record = begin(asked, plan, out, announcer)
    work = StageWork(folder, record, began, announcer, on)
    try:
        work.go_on()
    except (Stopped, KeyboardInterrupt):
        work.store()
        raise Stopped(f"stopped; go on with: score select --resume {folder}") from None
    return Selection(folder)
