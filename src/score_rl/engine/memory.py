"""Whether a fleet fits into its device's memory, said before it starts; what does not fit is trained in parts.

A program's need is a constant, the data, and so much for every run. Compiling the whole program only to learn that it
does not fit would be slow, and its compilation could itself run out of memory. So two steps:

1. An upper bound from tracing one run: everything the program computes, as if nothing were ever freed or fused. Most
   fleets are far below the limit by it, and nothing more is done.
2. Otherwise the program is compiled for two and for four runs, and the compiler's figures are continued on their line.
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
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.engine.program import FleetProgram, train_window
from score_rl.engine.runs import Run
from score_rl.engine.stage_program import StageProgram
from score_rl.errors import InputError
from score_rl.nets.precision import Precision, arithmetic

GIBIBYTE = 2**30
SHARE = 0.9  # of the memory that a prediction may fill: the line is not exact, and libraries want their workspace
PROBES = (2, 4)  # runs; one alone is another program


def as_size(count: float) -> str:
    """Bytes in the largest unit of which there is one."""
    for unit, size in (("GiB", GIBIBYTE), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count:.0f} bytes"


def total_memory(device: jax.Device) -> int | None:
    """Bytes that programs may use there; None where nothing says."""
    if device.platform == "cpu":
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError, AttributeError):
            return None
    return (device.memory_stats() or {}).get("bytes_limit")


def free_memory(device: jax.Device) -> int | None:
    """Bytes that nothing else uses now; None where nothing says."""
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
    """Bytes on each device: `fixed`, `per_run` for every run there, and the rows of the data sets."""

    fixed: float
    per_run: float
    devices: int = 1

    def of(self, runs: Sequence[Run]) -> int:
        data = {run.dataset.checksum: rows_bytes(run.dataset) for run in runs}
        return int(self.fixed + self.per_run * -(-len(runs) // self.devices) + sum(data.values()))


def rows_bytes(dataset: Dataset) -> int:
    """What a data set takes on the device, packed (`program.pack_rows`)."""
    columns = 2 * dataset.observation_dim + dataset.action_dim + 3
    return 4 * columns * len(dataset)


def upper_bound(run: Run, precision: Precision = "float32") -> int:
    """More bytes than one run of a fleet can need, its data left out: nothing is freed, nothing is fused."""
    program = FleetProgram([_stand_in(run)], jax.local_devices()[:1], precision)
    algorithm, shapes, rows = program.algorithm, program.shapes, program.rows
    inputs, state = (jax.tree.map(_of_one, tree) for tree in (program.inputs, program.state_shapes()))
    number = jax.ShapeDtypeStruct((), jnp.int32)
    window = partial(train_window, algorithm, shapes, cycle(algorithm, run.config))
    with arithmetic(program.arithmetic):
        needs = [_computed(window, inputs, state, number, rows)]
    for stage in range(len(algorithm.stages)):
        stages = StageProgram(program, stage)
        own = jax.tree.map(_of_one, stages.state_shapes())
        working = jax.ShapeDtypeStruct((), jnp.bool_)
        needs.append(_computed(stages.epoch_of_run, inputs, own, working, number, rows) + 2 * _bytes(own))
    return max(needs) + 2 * _bytes(state) + _bytes(inputs)


def measured_need(run: Run, updates: int, devices: int = 1, precision: Precision = "float32") -> Need:
    """From the compiler's figures for a few runs like this one, in windows of `updates`."""
    few, more = PROBES
    used, used_by_more = (_compiled_need(run, number, updates, precision) for number in PROBES)
    per_run = (used_by_more - used) / (more - few)
    return Need(fixed=used - few * per_run, per_run=per_run, devices=devices)


def _compiled_need(run: Run, number: int, updates: int, precision: Precision) -> int:
    """Without the data: a stand-in of the same shapes takes its place."""
    stand_in = _stand_in(run)
    runs = [dataclasses.replace(stand_in, id=str(n), seed=n) for n in range(number)]
    program = FleetProgram(runs, jax.local_devices()[:1], precision)
    needs = [program.memory(updates)]
    for stage in range(len(program.algorithm.stages)):
        stages = StageProgram(program, stage)
        working = jax.ShapeDtypeStruct((number,), jnp.bool_)
        counter = jax.ShapeDtypeStruct((), jnp.int32)
        lowered = stages._epoch.lower(program.inputs, stages.state_shapes(), working, counter, program.rows)
        analysis = lowered.compile().memory_analysis()
        if analysis is not None:
            outside = _bytes(program.state_shapes())  # the state of training waits meanwhile
            needs.append(
                analysis.argument_size_in_bytes
                + analysis.output_size_in_bytes
                + analysis.temp_size_in_bytes
                - analysis.alias_size_in_bytes
                + outside
            )
    return max(needs) - rows_bytes(stand_in.dataset)


def split_fleet(
    runs: Sequence[Run],
    updates: int,
    limit: int | None,
    say: Callable[[str], None],
    *,
    where: str = "the device",
    precision: Precision = "float32",
    alone_too: bool = False,
) -> list[list[Run]]:
    """The fleet as it is where it fits into `limit` bytes on each device, else in the fewest parts that do.

    A run alone cannot be split: whether it fits is asked where `alone_too`, and found out in training else.
    """
    runs = list(runs)
    if limit is None or (len(runs) == 1 and not alone_too):
        return [runs]
    devices = min(len(jax.local_devices()), len(runs))
    if Need(0, upper_bound(runs[0], precision), devices).of(runs) <= SHARE * limit:
        return [runs]
    need = (
        Need(_compiled_need(runs[0], 1, updates, precision), 0)
        if len(runs) == 1
        else measured_need(runs[0], updates, devices, precision)
    )
    if need.of(runs) <= SHARE * limit:
        return [runs]
    for number in range(2, len(runs) + 1):
        parts = [list(part) for part in np.array_split(np.array(runs, dtype=object), number)]
        if all(need.of(part) <= SHARE * limit for part in parts):
            sizes = sorted({len(part) for part in parts}, reverse=True)
            say(
                f"{len(runs)} runs would need {as_size(need.of(runs))} on {where}, where "
                f"{as_size(limit)} are free: they are trained as {number} fleets of "
                f"{' or '.join(map(str, sizes))}, one after the other. The results are the same."
            )
            return parts
    largest = max(runs, key=lambda run: rows_bytes(run.dataset))
    raise InputError(
        f"one run needs {as_size(need.of([largest]))} on {where}, where {as_size(SHARE * limit)} may be used; "
        "give less data, a smaller batch or smaller networks, or raise --memory-limit."
    )


def _stand_in(run: Run) -> Run:
    """The same run on a little data of the same shape: only shapes decide what a program needs."""
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


def _of_one(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


def _size(leaf: Any) -> int:
    return int(np.prod(leaf.shape, dtype=np.int64)) * leaf.dtype.itemsize


def _bytes(tree: Any) -> int:
    return sum(_size(leaf) for leaf in jax.tree.leaves(tree))


def _computed(function: Callable[..., Any], *arguments: Any) -> int:
    """Bytes of every value that the function computes, the body of a loop counted once."""
    return _values(jax.make_jaxpr(function)(*arguments).jaxpr)


def _values(jaxpr: Any) -> int:
    total = 0
    for equation in jaxpr.eqns:
        total += sum(_size(variable.aval) for variable in equation.outvars)
        for inner in jaxprs_in_params(equation.params):
            total += _values(inner)
    return total
