"""Which runs train together: those of one shape, as many as fit into the device's memory."""

from collections.abc import Iterable, Sequence

import jax

from score_rl.engine.memory import as_size, device_limit, split_fleet
from score_rl.engine.runs import Run, group_fleets
from score_rl.errors import InputError
from score_rl.run import messages
from score_rl.run.messages import Announcer
from score_rl.store.records import RunRecord
from score_rl.store.request import ExperimentSpec


def form_fleets(
    runs: Sequence[Run], spec: ExperimentSpec, gibibytes: float | None, announcer: Announcer
) -> list[list[Run]]:
    """Runs of one shape together where they fit, else in parts. `gibibytes` limits what they may take."""
    device = jax.local_devices()[0]
    limit = device_limit(device, gibibytes)
    where = f"{device.device_kind}, limited by `memory_limit`" if limit.asked else device.device_kind
    fleets: list[list[Run]] = []
    for fleet in group_fleets(runs):
        split = split_fleet(fleet, spec.log_every, limit, precision=spec.of(fleet[0].algorithm.name).precision)
        if split.alone is not None:
            raise InputError(
                f"one run needs {as_size(split.alone)} on {where}, where {as_size(split.allowed or 0)} may be used; "
                "give less data, a smaller batch or smaller networks, or raise `memory_limit`."
            )
        if len(split.parts) > 1:
            announcer.say(messages.trained_in_parts(split, where, limit.bytes or 0))
        fleets += split.parts
    return fleets


def stored_fleets(runs: Iterable[Run], records: Iterable[RunRecord]) -> list[list[Run]]:
    """The fleets as they were formed: their checkpoints are, whatever memory this machine has."""
    where = {record.id: (record.fleet, record.position) for record in records}
    fleets: dict[int, list[Run]] = {}
    for run in sorted(runs, key=lambda run: where[run.id]):
        fleets.setdefault(where[run.id][0], []).append(run)
    return list(fleets.values())
