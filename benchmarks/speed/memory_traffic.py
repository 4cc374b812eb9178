"""How many bytes an update moves through a GPU's memory, counted in the program that is compiled for it. Needs no GPU.

    python -m benchmarks.speed.memory_traffic --methods iql rebrac --runs 15
    python -m benchmarks.speed.memory_traffic --methods score --hidden 256 256 --list 20

What is counted is what every launch of the program reads and writes: its operands and its results. So it is what memory
carries at most; caches carry some of it. Beside a GPU's bandwidth it says how many updates a second there can be at
most, and the list says which launches to fuse. Needs JAX's plugin for NVIDIA's GPUs (pip install 'jax[cuda12]').
"""

import os
import re
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"  # the plugin compiles without a device, but cannot start without one

import jax
import jax.numpy as jnp
import tyro
from jax.experimental import topologies
from jax.sharding import AbstractDevice, AbstractMesh, SingleDeviceSharding, use_abstract_mesh

from benchmarks.training.ogbench_jobs import BASELINES
from score_rl.algorithms.algorithm import Algorithm, Batch, Shapes
from score_rl.algorithms.presets import preset
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.nets.kernels.choice import arithmetic_for
from score_rl.nets.precision import arithmetic

from .arguments import say
from .described_gpus import GPUS

SIZES = {
    "f32": 4, "bf16": 2, "pred": 1, "s32": 4, "u32": 4, "u8": 1, "s8": 1, "u64": 8, "s64": 8, "f16": 2, "f64": 8,
}  # fmt: skip
FREE = {"parameter", "tuple", "get-tuple-element", "bitcast", "constant"}  # they move nothing
INSTRUCTION = re.compile(r"\s*(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)")
ARRAY = re.compile(r"\b(" + "|".join(SIZES) + r")\[([\d,]*)\]")
MADE_FROM = re.compile(r'op_name="([^"]+)"')


@dataclass(frozen=True)
class Arguments:
    methods: tuple[str, ...] = ("iql", "rebrac", "fql", "score", "td3-bc", "bc")
    """With the networks and settings of docs/ogbench.md on cube-single."""
    runs: int = 15
    """Of the fleet."""
    hidden: tuple[int, ...] = ()
    """Other widths of the hidden layers."""
    gpu: str = "h200"
    list: int = 0
    """Also list so many launches, those that move most."""


@dataclass(frozen=True)
class Launch:
    """One of the program's launches."""

    name: str
    bytes: int  # that it reads and writes
    made_from: str  # the operation in our code


def bytes_of(types: str) -> int:
    """Of all arrays in a type as the compiler writes it."""
    total = 0
    for kind, dimensions in ARRAY.findall(types):
        number = 1
        for size in filter(None, dimensions.split(",")):
            number *= int(size)
        total += number * SIZES[kind]
    return total


def launches(program: str) -> list[Launch]:
    """Those of a compiled program's text, the most bytes first."""
    found, sizes = [], dict[str, int]()
    for line in program[program.index("ENTRY") :].splitlines():
        match = INSTRUCTION.match(line)
        if match is None:
            continue
        name, types, kind, rest = match.groups()
        sizes[name] = bytes_of(types)
        if kind not in FREE:
            read = sum(sizes.get(operand, 0) for operand in re.findall(r"%([\w.\-]+)", rest.partition("), ")[0]))
            made_from = MADE_FROM.search(line)
            found.append(Launch(name, sizes[name] + read, made_from.group(1) if made_from else ""))
    return sorted(found, key=lambda launch: -launch.bytes)


def compiled(asked: Arguments, method: str) -> tuple[str, int]:
    """The text of a program that makes one cycle of updates of all runs, and how many updates that is."""
    algorithm, shapes = get_algorithm(method), Shapes(28, 5)
    settings = {**preset(method, "ogbench:cube-single-play-singletask-task2"), **BASELINES.get(method, {})}
    config = make_config(algorithm, settings | ({"hidden": asked.hidden} if asked.hidden else {}))
    gpu = GPUS[asked.gpu]
    topology = topologies.get_topology_desc(gpu.name, platform="cuda", target_config=gpu.described(), topology="1x1x1")
    sharding = SingleDeviceSharding(topology.devices[0])
    like_it: Any = SimpleNamespace(platform="gpu", compute_capability=gpu.capability)
    mesh = AbstractMesh((1,), ("device",), abstract_device=AbstractDevice(gpu.name, None, "gpu"))

    def array(*shape: int, dtype: Any = jnp.float32) -> Any:
        return jax.ShapeDtypeStruct((asked.runs, *shape), dtype, sharding=sharding)

    turns = algorithm.turns(config)
    with arithmetic(arithmetic_for("bfloat16", like_it, asked.runs)), use_abstract_mesh(mesh):
        state = jax.eval_shape(lambda key: algorithm.init(config, shapes, key), jax.random.key(0))
        states = jax.tree.map(lambda leaf: array(*leaf.shape, dtype=leaf.dtype), state)
        rows = config.batch_size
        batch = Batch(
            array(rows, 28), array(rows, 5), array(rows), array(rows, 28), array(rows), array(rows, dtype=jnp.int32),
            array(rows, 5), array(rows),
        )  # fmt: skip
        traced = jax.jit(jax.vmap(_cycle(algorithm, config, turns)), donate_argnums=0).trace(states, batch)
        return traced.lower(lowering_platforms=("cuda",)).compile().as_text(), turns


def _cycle(algorithm: Algorithm, config: Any, turns: int) -> Any:
    def cycle(state: Any, batch: Batch) -> Any:
        for turn in range(turns):
            state, _ = algorithm.update(config, state, batch, jax.random.key(turn), turn)
        return state

    return cycle


def main(asked: Arguments) -> None:
    bandwidth = GPUS[asked.gpu].bandwidth * 1e9
    for method in asked.methods:
        began = time.perf_counter()
        program, turns = compiled(asked, method)
        found = launches(program)
        moved = sum(launch.bytes for launch in found) / turns
        say(
            f"{method}, {asked.runs} runs: {moved / 1e9:.2f} GB an update in {len(found) / turns:.0f} launches, so at "
            f"most {bandwidth / moved:,.0f} updates/s ({time.perf_counter() - began:.0f} s to compile)"
        )
        for launch in found[: asked.list]:
            say(f"  {launch.bytes / 1e6:7.1f} MB  {launch.name:40} {launch.made_from[-70:]}")


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
