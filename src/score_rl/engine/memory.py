"""Whether a fleet fits into its device's memory, known before it starts. What does not fit is trained in parts.

A program needs a constant, the data, and so much for every run. It would be slow to compile the whole program only to
learn that it does not fit, and compiling could itself run out of memory. So there are two steps:

1. An upper bound from tracing one run: everything that the program computes, as if nothing were ever freed or fused.
   Most fleets are far below the limit by this bound, and nothing more is done.
2. Otherwise the program is compiled for two and for four runs. The compiler's two figures make a line, which is
   continued to the number of runs.
"""

import dataclasses
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxprs_in_params

from score_rl.algorithms.algorithm import cycle
from score_rl.data.dataset import make_dataset
from score_rl.engine.batches import rows_bytes
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.engine.stage_program import StageProgram
from score_rl.engine.window import train_window
from score_rl.nets.precision import Precision, arithmetic

GIBIBYTE = 2**30
SHARE = 0.9  # how much of a limit a prediction may fill: it is not exact, and libraries need memory of their own
PROBES = (2, 4)  # numbers of runs that are compiled; one run alone is another program


def as_size(count: int) -> str:
    """Bytes in words, in the largest unit of which there is at least one."""
    for unit, size in (("GiB", GIBIBYTE), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count:.0f} bytes"


def total_memory(device: jax.Device) -> int | None:
    """Bytes that programs may use on a device; None where nothing says."""
    if device.platform == "cpu":
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError, AttributeError):
            return None
    return (device.memory_stats() or {}).get("bytes_limit")


def free_memory(device: jax.Device) -> int | None:
    """Bytes of a device that nothing uses now; None where nothing says."""
    if device.platform != "cpu":
        statistics = device.memory_stats() or {}
        limit = statistics.get("bytes_limit")
        return None if limit is None else limit - statistics.get("bytes_in_use", 0)
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return total_memory(device)


@dataclasses.dataclass(frozen=True)
class Need:
    """What a fleet takes on each device: `fixed` bytes, `per_run` for every run there, and the rows of its data."""

    fixed: float
    per_run: float
    devices: int = 1

    def of(self, runs: Sequence[Run]) -> int:
        data = {run.dataset.checksum: rows_bytes(run.dataset) for run in runs}
        return int(self.fixed + self.per_run * -(-len(runs) // self.devices) + sum(data.values()))


def upper_bound(run: Run, precision: Precision = "float32") -> int:
    """More bytes than one run of a fleet can need, without its data: as if nothing were freed and nothing fused."""
    program = FleetProgram([_stand_in(run)], jax.local_devices()[:1], precision)
    algorithm, shapes, rows = program.algorithm, program.shapes, program.rows
    inputs, state = (jax.tree.map(_without_runs, tree) for tree in (program.inputs, program.state_shapes()))
    number = jax.ShapeDtypeStruct((), jnp.int32)
    window = partial(train_window, algorithm, shapes, cycle(algorithm, run.config))
    with arithmetic(program.arithmetic):
        needs = [_bytes_computed(window, inputs, state, number, rows)]
    for stage in range(len(algorithm.stages)):
        stages = StageProgram(program, stage)
        own = jax.tree.map(_without_runs, stages.state_shapes())
        working = jax.ShapeDtypeStruct((), jnp.bool_)
        needs.append(_bytes_computed(stages.epoch_of_run, inputs, own, working, number, rows) + 2 * _bytes(own))
    return max(needs) + 2 * _bytes(state) + _bytes(inputs)


def state_bytes(program: FleetProgram) -> int:
    """Parameters, moments and whatever else the runs carry from update to update. No program needs less."""
    return _bytes(program.state_shapes())


def alone(run: Run, precision: Precision) -> FleetProgram:
    """The program of one run, without its data."""
    return FleetProgram([_stand_in(run)], jax.local_devices()[:1], precision)


def measured_need(run: Run, updates: int, devices: int = 1, precision: Precision = "float32") -> Need:
    """The need of runs like this one in windows of `updates`, from the compiler's figures for a few of them."""
    few, more = PROBES
    used, used_by_more = (_compiled_need(run, number, updates, precision) for number in PROBES)
    per_run = (used_by_more - used) / (more - few)
    return Need(fixed=used - few * per_run, per_run=per_run, devices=devices)


def _compiled_need(run: Run, number: int, updates: int, precision: Precision) -> int:
    """Bytes for so many runs, without the data: a stand-in of the same shapes takes its place."""
    stand_in = _stand_in(run)
    runs = [dataclasses.replace(stand_in, id=str(n), seed=n) for n in range(number)]
    program = FleetProgram(runs, jax.local_devices()[:1], precision)
    needs = [program.memory(updates)]
    waiting = _bytes(program.state_shapes())  # the state of training, while a stage is trained
    for stage in range(len(program.algorithm.stages)):
        found = StageProgram(program, stage).memory()
        if found is not None:
            needs.append(found + waiting)
    return max(needs) - rows_bytes(stand_in.dataset)


@dataclasses.dataclass(frozen=True)
class Limit:
    """How many bytes a fleet may take on each device."""

    bytes: int | None  # None where nothing says
    asked: bool = False  # somebody asked for this limit; else it is what nothing else uses


def device_limit(device: jax.Device, gibibytes: float | None = None) -> Limit:
    """What was asked for, else what is free on the device."""
    if gibibytes is None:
        return Limit(free_memory(device))
    return Limit(int(gibibytes * GIBIBYTE), asked=True)


@dataclasses.dataclass(frozen=True)
class FleetSplit:
    """The parts in which a fleet is trained, one after the other, and why."""

    parts: list[list[Run]]  # none where not even one run fits
    whole: int | None = None  # bytes that all runs together need on each device; None if they clearly fit
    alone: int | None = None  # bytes that the largest run needs, if not even one run fits
    allowed: int | None = None  # bytes that a prediction may fill


def split_fleet(runs: Sequence[Run], updates: int, limit: Limit, *, precision: Precision = "float32") -> FleetSplit:
    """The whole fleet if it fits into the limit, else the fewest parts that do.

    A run alone cannot be split. It is only held against a limit that was asked for: without one, compiling its program
    says soon enough what it takes.
    """
    runs = list(runs)
    if limit.bytes is None or (len(runs) == 1 and not limit.asked):
        return FleetSplit([runs])
    allowed = int(SHARE * limit.bytes)
    devices = min(len(jax.local_devices()), len(runs))
    if Need(0.0, float(upper_bound(runs[0], precision)), devices).of(runs) <= allowed:
        return FleetSplit([runs], allowed=allowed)
    need = (
        Need(float(_compiled_need(runs[0], 1, updates, precision)), 0.0)
        if len(runs) == 1
        else measured_need(runs[0], updates, devices, precision)
    )
    whole = need.of(runs)
    for number in range(1, len(runs) + 1):
        parts = [list(part) for part in np.array_split(np.array(runs, dtype=object), number)]
        if all(need.of(part) <= allowed for part in parts):
            return FleetSplit(parts, whole, allowed=allowed)
    return FleetSplit([], whole, alone=max(need.of([run]) for run in runs), allowed=allowed)


@dataclasses.dataclass(frozen=True)
class Footprint:
    """What a compiled fleet takes, as the compiler says."""

    program: int  # bytes on each device, data included
    available: int | None  # bytes that the device has; None where nothing says
    checkpoint: int  # bytes of the state of all runs

    @property
    def fits(self) -> bool:
        return self.available is None or self.program <= self.available


def footprint(program: FleetProgram, updates: int) -> Footprint:
    """What a fleet takes whose program does windows of `updates`. Compiles the program."""
    return Footprint(
        program=program.memory(updates),
        available=total_memory(program.devices.first),
        checkpoint=_bytes(jax.eval_shape(lambda: jax.tree.map(_stored, program.init()))),
    )


def _stored(leaf: Any) -> Any:
    """An array as a checkpoint holds it: of a random key, its numbers."""
    return jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


def _stand_in(run: Run) -> Run:
    """The run on a little data of the same shapes. Shapes alone decide what a program needs."""
    rows, rng = 1_000, np.random.default_rng(0)
    timeouts = np.arange(rows) % 100 == 99
    data = make_dataset(
        "stand-in",
        observations=rng.normal(size=(rows, run.dataset.observation_dim)),
        actions=rng.uniform(-1, 1, (rows, run.dataset.action_dim)),
        rewards=rng.uniform(size=rows),
        next_observations=rng.normal(size=(rows, run.dataset.observation_dim)),
        terminals=np.zeros(rows, bool),
        timeouts=timeouts,
    )
    return dataclasses.replace(run, dataset=data)


def _without_runs(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


def _size(leaf: Any) -> int:
    return int(np.prod(leaf.shape, dtype=np.int64)) * leaf.dtype.itemsize


def _bytes(tree: Any) -> int:
    return sum(_size(leaf) for leaf in jax.tree.leaves(tree))


def _bytes_computed(function: Callable[..., Any], *arguments: Any) -> int:
    """Bytes of all values that the function computes; the body of a loop counts once."""
    return _bytes_of_values(jax.make_jaxpr(function)(*arguments).jaxpr)


def _bytes_of_values(jaxpr: Any) -> int:
    total = 0
    for equation in jaxpr.eqns:
        total += sum(_size(variable.aval) for variable in equation.outvars)
        for inner in jaxprs_in_params(equation.params):
            total += _bytes_of_values(inner)
    return total
