"""Before the long part: compile, say what training takes, and refuse what cannot fit."""

import shutil
import time

from score_rl.engine.memory import as_size, footprint
from score_rl.engine.program import FleetProgram
from score_rl.errors import InputError
from score_rl.run import messages
from score_rl.run.context import TrainingContext

CHECKPOINTS_AT_ONCE = 3  # two are kept while a third is written


def compile_fleet(program: FleetProgram, number: int, context: TrainingContext) -> int:
    """Compile fleet `number`'s program; how many updates one call of it has."""
    began = time.perf_counter()
    context.announcer.say(messages.compiling(program.algorithm.title, len(program.runs)))
    updates_per_call = program.updates_per_call(context.spec.log_every)
    needs = footprint(program, updates_per_call)
    seconds = time.perf_counter() - began
    device = program.devices.first.device_kind
    if not needs.fits:
        advice = "train fewer runs at once" if len(program.runs) > 1 else "give a smaller batch or smaller networks"
        raise InputError(
            f"fleet {number} ({messages.count(len(program.runs), 'run')}) needs {as_size(needs.program)} on {device}, "
            f"which has {as_size(needs.available or 0)}; {advice}."
        )
    on_disk, free = CHECKPOINTS_AT_ONCE * needs.checkpoint, shutil.disk_usage(context.folder.path).free
    if on_disk > free:
        raise InputError(
            f"checkpoints need {as_size(on_disk)} and {context.folder.path} has {as_size(free)} free; "
            "free some space or give another `out`."
        )
    context.announcer.say(messages.compiled(seconds, needs, device, program.devices.number))
    return updates_per_call
