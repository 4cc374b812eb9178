"""What a user should know about a request before it is trained."""

from collections.abc import Collection, Sequence

from score_rl.algorithms.settings import scheduled_for, schedules
from score_rl.data.warnings import find_large_observations, find_warnings
from score_rl.engine.runs import Run
from score_rl.run import messages
from score_rl.run.expansion import preset_of
from score_rl.run.messages import Announcer


def tell_data_warnings(runs: Sequence[Run], announcer: Announcer) -> None:
    """About files only: what is recorded here or fetched by name is known."""
    for run in _one_for_each_dataset(runs):
        if run.dataset.source.get("kind") != "file":
            continue
        found = find_warnings(run.dataset)
        if not run.config.normalise_states:
            found += find_large_observations(run.dataset)
        for what in found:
            announcer.say(messages.data_warning(run.dataset.name, what))


def tell_presets(runs: Sequence[Run], given: Collection[str], announcer: Announcer) -> None:
    """What the authors chose for these data, where the user has not `given` something else."""
    for run in _one_for_each_dataset(runs):
        preset = preset_of(run.algorithm, run.dataset)
        left = {name: value for name, value in preset.items() if name not in given}
        if left:
            announcer.say(messages.preset_settings(run.algorithm.title, run.dataset.name, left))


def tell_schedules(runs: Sequence[Run], steps: int, announcer: Announcer) -> None:
    """Where a setting counts on more updates than training has, or on fewer: each setting once."""
    found = {}
    for run in runs:
        for name, schedule in schedules(run.config).items():
            updates = getattr(run.config, name)
            effect = schedule.shorter if updates > steps else schedule.longer if 0 < updates < steps else ""
            if effect:
                usual = scheduled_for(getattr(run.algorithm.Config(), name), steps)
                found[name] = messages.schedule_of_another_length(
                    run.algorithm.title, name, updates, steps, effect, usual
                )
    for message in found.values():
        announcer.say(message)


def _one_for_each_dataset(runs: Sequence[Run]) -> list[Run]:
    return list({run.dataset.checksum: run for run in runs}.values())
