"""Which runs train together: those of one shape, as many as fit into the device's memory."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import jax

from score_rl.engine.memory import alone, as_size, device_limit, split_fleet, state_bytes, total_memory
from score_rl.engine.program import FleetProgram
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
        precision = spec.of(fleet[0].algorithm.name).precision
        refuse_too_large(alone(fleet[0], precision))
        split = split_fleet(fleet, spec.log_every, limit, precision=precision)
        if split.alone is not None:
            raise InputError(
                f"one run needs {as_size(split.alone)} on {where}, where {as_size(split.allowed or 0)} may be used; "
                "give less data, a smaller batch or smaller networks, or raise `memory_limit`."
            )
        if len(split.parts) > 1:
            announcer.say(messages.trained_in_parts(split, where, limit.bytes or 0))
        fleets += split.parts
    return fleets


def refuse_too_large(program: FleetProgram) -> None:
    """Refuse networks that this machine could not even hold, before anything of them is made."""
    device, runs = program.devices.first, len(program.runs)
    needed, most = state_bytes(program) // program.devices.number, total_memory(device)
    if most is not None and needed > most:
        whose = "one run" if runs == 1 else f"{runs} runs"
        raise InputError(
            f"the networks of {whose} take {as_size(needed)}, and {device.device_kind} has {as_size(most)} in all; "
            "give smaller ones (`config.hidden`)."
        )


@contextmanager
def memory_errors(folder: Path) -> Iterator[None]:
    """Turn a device or machine without memory left into one sentence."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        if isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise InputError(
            f"no memory was left while training in {folder} ({' '.join(str(error).split())[:120]}); what was written "
            "before is whole: free some memory and go on with `resume`, or train less at once."
        ) from error


def stored_fleets(runs: Iterable[Run], records: Iterable[RunRecord]) -> list[list[Run]]:
    """The fleets as they were formed: their checkpoints are, whatever memory this machine has."""
    where = {record.id: (record.fleet, record.position) for record in records}
    fleets: dict[int, list[Run]] = {}
    for run in sorted(runs, key=lambda run: where[run.id]):
        fleets.setdefault(where[run.id][0], []).append(run)
    return list(fleets.values())
