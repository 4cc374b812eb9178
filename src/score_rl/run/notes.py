"""What a user should know about a request before it is trained."""

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from score_rl.algorithms.settings import scheduled_for, schedules
from score_rl.data.ownership import BENCHMARKS, recorded_source
from score_rl.data.warnings import find_few_dropped_rows, find_large_observations, find_warnings
from score_rl.engine.runs import Run
from score_rl.run import messages
from score_rl.run.expansion import preset_of, scaling_of_own
from score_rl.run.requested import not_for_all
from score_rl.store.records import StatusRecord
from score_rl.store.request import AlgorithmRequest, ExperimentSpec


def all_notes(runs: Sequence[Run], spec: ExperimentSpec) -> list[str]:
    """Everything, in the order in which it is told; warnings first."""
    return [
        *data_notes(runs),
        *preset_notes(runs, spec),
        *scaling_notes(runs, spec),
        *schedule_notes(runs, spec.steps),
    ]


def setting_notes(requests: Sequence[AlgorithmRequest], config: Mapping[str, Any]) -> Iterator[str]:
    """Which of several algorithms have a setting that not all of them have."""
    for name, having in not_for_all(requests, config).items():
        yield messages.setting_of_some(name, [algorithm.title for algorithm in having])


def data_notes(runs: Sequence[Run]) -> Iterator[str]:
    """Warnings are about files and tables only: what is recorded here or fetched by name is known."""
    for run in _one_for_each(runs, lambda run: run.dataset.checksum):
        if _is_unknown(run):
            for what in find_warnings(run.dataset):
                yield messages.data_warning(run.dataset.name, what)
    for run in _one_for_each(runs, lambda run: (run.dataset.checksum, run.algorithm.name)):
        if _is_unknown(run) and not run.config.normalise_states:
            for what in find_large_observations(run.dataset, run.algorithm.title):
                yield messages.data_warning(run.dataset.name, what)
    for dataset in {run.dataset.checksum: run.dataset for run in runs}.values():
        for note in [*dataset.source.get("notes", ()), *find_few_dropped_rows(dataset)]:
            yield messages.data_note(dataset.name, note)


def _is_unknown(run: Run) -> bool:
    return recorded_source(run.dataset.source).get("kind") not in BENCHMARKS


def preset_notes(runs: Sequence[Run], spec: ExperimentSpec) -> Iterator[str]:
    """What the authors chose for these data, where the user has not given something else."""
    for run in _one_for_each(runs, lambda run: (run.dataset.checksum, run.algorithm.name)):
        left = {name: v for name, v in preset_of(run.algorithm, run.dataset).items() if name not in _given(run, spec)}
        if left:
            yield messages.preset_settings(run.algorithm.title, run.dataset.name, left)


def warnings_again(notes: Sequence[str]) -> Iterator[str]:
    """At the end, the warnings among them."""
    warnings = StatusRecord(notes=tuple(notes)).warnings
    if warnings:
        yield messages.said_before_training(warnings)


def program_notes(reason: str | None) -> Iterator[str]:
    """Why compiled programs are not kept, where they are not."""
    if reason is not None:
        yield messages.programs_not_kept(reason)


def scaling_notes(runs: Sequence[Run], spec: ExperimentSpec) -> Iterator[str]:
    """Which methods standardise observations although their authors do not."""
    for run in _one_for_each(runs, lambda run: (run.dataset.checksum, run.algorithm.name)):
        chosen = {"task": getattr(run.config, "task", "none")}
        if (
            spec.scales_own_data
            and scaling_of_own(run.algorithm, run.dataset, chosen)
            and "normalise_states" not in _given(run, spec)
        ):
            yield messages.standardised(run.algorithm.title, run.dataset.name)


def schedule_notes(runs: Sequence[Run], steps: int) -> Iterator[str]:
    """Where a setting counts on more updates than training has, or on fewer: each setting once."""
    found = {}
    for run in runs:
        for name, schedule in schedules(run.config).items():
            updates = getattr(run.config, name)
            effect = schedule.shorter if updates > steps else schedule.longer if 0 < updates < steps else ""
            if effect:
                usual = scheduled_for(getattr(run.algorithm.Config(), name), steps)
                found[run.algorithm.name, name] = messages.schedule_of_another_length(
                    run.algorithm.title, name, updates, steps, effect, usual
                )
    yield from found.values()


def _given(run: Run, spec: ExperimentSpec) -> set[str]:
    request = spec.of(run.algorithm.name)
    return {*request.settings, *itertools.chain(*request.variants)}


def _one_for_each(runs: Sequence[Run], of: Callable[[Run], Hashable]) -> list[Run]:
    return list({of(run): run for run in runs}.values())
