"""The stages of a selection: train, judge, narrow. What is done is stored, and is not done again after a kill."""

import dataclasses
import time
from pathlib import Path

from score_rl.judge.judging import judge
from score_rl.judge.selection.beginning import load_named
from score_rl.judge.selection.choosing import choose, in_order, ranked
from score_rl.judge.selection.grid import requests_for
from score_rl.judge.selection.plan import affordable, check_stages, final_effort, seconds_of
from score_rl.live_line import as_duration
from score_rl.run.branching import branch
from score_rl.run.experiment import Experiment
from score_rl.run.launch import resume, train
from score_rl.run.machines import Machines
from score_rl.run.messages import Announcer
from score_rl.store.folder import EXPERIMENT
from score_rl.store.judgements import DataJudgement, read_judgement
from score_rl.store.request import AlgorithmRequest
from score_rl.store.selections import Ranked, SelectionRecord, StageDone, Variant, write_selection

WINDOWS = 10  # rows of metrics in the first stage


class StageWork:
    """A selection on its way, from where its record stands to its choice."""

    def __init__(
        self, folder: Path, record: SelectionRecord, began: float, announcer: Announcer, on: Machines | None = None
    ) -> None:
        self.folder, self.record, self.announcer, self.on = folder, record, announcer, on
        self._before = max(0.0, record.spent - (time.monotonic() - began))  # spent by earlier calls
        self._began = began
        self.table: list[Ranked] = []  # of the newest stage
        self.left_behind: list[Ranked] = []  # of earlier ones
        self.data: DataJudgement | None = None

    @property
    def spent(self) -> float:
        """Seconds of the budget."""
        return self._before + time.monotonic() - self._began

    def store(self) -> None:
        self.record = dataclasses.replace(self.record, spent=self.spent)
        write_selection(self.folder, self.record)

    def go_on(self) -> None:
        """To the choice; nothing is left to do where it is made."""
        if self.record.choice is not None:
            return
        check_stages(self.record.plan)
        kept = list(self.record.plan.variants)
        for number in range(len(self.record.plan.stages)):
            kept = self._stage(number, kept)
        assert self.data is not None
        choice = choose(self.table, self.left_behind, self.data, self._path(len(self.record.plan.stages) - 1).name)
        self.record = dataclasses.replace(self.record, choice=choice)
        self.store()

    def _path(self, number: int) -> Path:
        return self.folder / f"stage-{number + 1}"

    def _stage(self, number: int, variants: list[Variant]) -> list[Variant]:
        """Train and judge these; the variants that are left for the next stage."""
        done = self.record.stages[number] if number < len(self.record.stages) else None
        began = time.monotonic()
        if done is None:
            self._say_where(number, variants)
            self._train(number, variants)
        trained = time.monotonic()
        self.data = self._judged(number)
        steps = self.record.plan.stages[number].steps
        experiment = Experiment(self._path(number))
        self.table = ranked(variants, [run.record for run in experiment], self.data.runs, steps)
        if done is None:
            kept = self._kept(number, trained - began, time.monotonic() - trained)
            done = StageDone(
                folder=self._path(number).name,
                training_seconds=trained - began,
                judging_seconds=time.monotonic() - trained,
                kept=tuple(variant.label for variant in kept),
            )
            self.record = dataclasses.replace(self.record, stages=(*self.record.stages, done))
            self.store()
        if number + 1 < len(self.record.plan.stages):
            gone = [one for one in self.table if one.variant.label not in done.kept]
            self.left_behind = in_order([*gone, *self.left_behind])
        return [variant for variant in variants if variant.label in done.kept]

    def _train(self, number: int, variants: list[Variant]) -> None:
        """A new experiment, one that was begun before, or a part of the stage before that goes on."""
        path, steps, quiet = self._path(number), self.record.plan.stages[number].steps, self.announcer.quiet
        if number == 0 and not (path / EXPERIMENT).exists():
            self._train_first(path, variants, steps)
            return
        if not (path / EXPERIMENT).exists():
            before = Experiment(self._path(number - 1))
            branch(before, _narrowed(before, variants), path, quiet=quiet)
        if Experiment(path).spec.steps < steps:
            resume(path, steps=steps, tensorboard=False, quiet=quiet, on=self.on)
        elif Experiment(path).folder.status().state != "finished":
            resume(path, tensorboard=False, quiet=quiet, on=self.on)

    def _train_first(self, path: Path, variants: list[Variant], steps: int) -> None:
        request, plan = self.record.request, self.record.plan
        kept = load_named(request, quiet=True, folder=self.folder) if request.kept else None
        train(
            request.data if kept is None else kept,
            algorithm=requests_for(variants, plan.size, plan.steps),
            seeds=request.seeds,
            hold_out=request.hold_out,
            steps=steps,
            eval_every=steps,
            log_every=_window(steps),
            out=path,
            transitions=request.transitions,
            environment="none",
            action_bounds=request.action_bounds,
            tensorboard=False,
            quiet=self.announcer.quiet,
            on=self.on,
        )

    def _judged(self, number: int) -> DataJudgement:
        """The judgement of a stage; made unless it is there."""
        path, stage = self._path(number), self.record.plan.stages[number]
        found = read_judgement(path)
        if found is None or any(run.step not in (None, stage.steps) for run in found.runs.values()):
            found = judge(path, effort=final_effort(stage.judged_by), quiet=self.announcer.quiet)
        (data,) = found.data
        return data

    def _kept(self, number: int, training: float, judging: float) -> list[Variant]:
        """Who goes on to the next stage, in the order of the table."""
        order, plan = [one.variant for one in self.table], self.record.plan
        if number + 1 == len(plan.stages):
            return order
        seeds, left = len(self.record.request.seeds), self.record.request.budget - self.spent
        slower = 1.0
        if plan.speeds is not None:
            expected = seconds_of(plan.variants, seeds, plan.stages[: number + 1], plan.speeds)
            slower = (training + judging) / max(expected, 1e-9)
        kept = affordable(order, plan, number + 1, seeds, left, slower)
        wanted = min(plan.stages[number + 1].variants, len(order))
        if len(kept) < wanted:
            self.announcer.say(
                f"This machine became slower than it was measured: {len(kept)} of {wanted} variants go on."
            )
        return kept

    def _say_where(self, number: int, variants: list[Variant]) -> None:
        left = max(0.0, self.record.request.budget - self.spent)
        stages = len(self.record.plan.stages)
        shown = f" ({as_duration(left)} of the budget left)" if self.record.plan.seconds is not None else ""
        self.announcer.say(f"Stage {number + 1} of {stages}: {len(variants)} variants{shown}")


def _narrowed(experiment: Experiment, variants: list[Variant]) -> list[AlgorithmRequest]:
    """What the experiment was asked for, with these variants alone."""
    labels = {variant.label for variant in variants}
    found = []
    for request in experiment.spec.algorithms:
        mine = tuple(each for each in request.variants if Variant(request.name, each).label in labels)
        if mine:
            found.append(dataclasses.replace(request, variants=mine))
    return found


def _window(steps: int) -> int:
    """Updates between two rows of metrics: an even part of a stage."""
    wanted = max(2, steps // WINDOWS)
    return next(length for length in range(wanted, 0, -1) if steps % length == 0 and length % 2 == 0)
