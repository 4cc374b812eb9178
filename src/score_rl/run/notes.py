"""What a user should know about a request before it is trained."""

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from score_rl.algorithms.settings import scheduled_for, schedules
from score_rl.data.warnings import find_few_dropped_rows, find_large_observations, find_warnings
from score_rl.engine.runs import Run
from score_rl.run import messages
from score_rl.run.expansion import preset_of
from score_rl.run.messages import Announcer
from score_rl.run.requested import not_for_all
from score_rl.store.request import AlgorithmRequest, ExperimentSpec


def tell_who_gets_settings(
    requests: Sequence[AlgorithmRequest], config: Mapping[str, Any], announcer: Announcer
) -> None:
    """Which of several algorithms have a setting that not all of them have."""
    for name, having in not_for_all(requests, config).items():
        announcer.say(messages.setting_of_some(name, [algorithm.title for algorithm in having]))


def tell_data_warnings(runs: Sequence[Run], announcer: Announcer) -> None:
    """About files only: what is recorded here or fetched by name is known."""
    for dataset in {run.dataset.checksum: run.dataset for run in runs}.values():
        for note in [*dataset.source.get("notes", ()), *find_few_dropped_rows(dataset)]:
            announcer.say(messages.data_note(dataset.name, note))
    for run in _one_for_each(runs, lambda run: run.dataset.checksum):
        if run.dataset.source.get("kind") == "file":
            for what in find_warnings(run.dataset):
                announcer.say(messages.data_warning(run.dataset.name, what))
    for run in _one_for_each(runs, lambda run: (run.dataset.checksum, run.algorithm.name)):
        if run.dataset.source.get("kind") == "file" and not run.config.normalise_states:
            for what in find_large_observations(run.dataset, run.algorithm.title):
                announcer.say(messages.data_warning(run.dataset.name, what))


def tell_presets(runs: Sequence[Run], spec: ExperimentSpec, announcer: Announcer) -> None:
    """What the authors chose for these data, where the user has not given something else."""
    for run in _one_for_each(runs, lambda run: (run.dataset.checksum, run.algorithm.name)):
        request = spec.of(run.algorithm.name)
        given = {*request.settings, *itertools.chain(*request.variants)}
        left = {name: value for name, value in preset_of(run.algorithm, run.dataset).items() if name not in given}
        if left:
            announcer.say(messages.preset_settings(run.algorithm.title, run.dataset.name, left))


def tell_programs(reason: str | None, announcer: Announcer) -> None:
    """Why compiled programs are not kept, where they are not."""
    if reason is not None:
        announcer.say(messages.programs_not_kept(reason))


def tell_schedules(runs: Sequence[Run], steps: int, announcer: Announcer) -> None:
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
    for message in found.values():
        announcer.say(message)


def _one_for_each(runs: Sequence[Run], of: Callable[[Run], Hashable]) -> list[Run]:
    return list({of(run): run for run in runs}.values())
