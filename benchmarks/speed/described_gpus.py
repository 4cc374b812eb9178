"""Compile the critics' kernels for GPUs that are not here, and say which programs their compiler refuses.

    python -m benchmarks.speed.described_gpus                          all GPUs below
    python -m benchmarks.speed.described_gpus --gpus a100 rtx-4090

No GPU is needed, only JAX's plugin for them (pip install 'jax[cuda12]'): XLA compiles for a device that is described
to it. What a compiler accepts may still be slow, or wrong; that takes the device. Ends with 1 if anything is refused.
"""

import dataclasses
import os
import sys
import time
from types import SimpleNamespace
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"  # the plugin compiles without a device, but cannot start without one

import jax
import jax.numpy as jnp
import tyro
from jax.experimental import topologies
from jax.sharding import AbstractDevice, AbstractMesh, SingleDeviceSharding, use_abstract_mesh

from score_rl.nets.dropout import hidden_of, many_passes
from score_rl.nets.kernels.choice import arithmetic_for
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.precision import arithmetic

GIGA = 1_000_000_000
KIBIBYTE = 1024
ACTION = 6


@dataclasses.dataclass(frozen=True)
class Gpu:
    """What XLA's compiler asks about, from NVIDIA's data sheets and its table of compute capabilities."""

    name: str  # as its driver gives it
    capability: str
    shared: int  # KiB of shared memory that one block may ask for
    cores: int
    threads: int  # on a core at a time
    memory: int  # GB
    bandwidth: int  # GB/s
    cache: int  # MB
    clock: float  # GHz

    def described(self) -> str:
        major, minor = self.capability.split(".")
        return f"""
            gpu_device_info {{
              threads_per_block_limit: 1024  threads_per_warp: 32  threads_per_core_limit: {self.threads}
              shared_memory_per_block: {48 * KIBIBYTE}
              shared_memory_per_block_optin: {self.shared * KIBIBYTE}
              shared_memory_per_core: {(self.shared + 1) * KIBIBYTE}
              registers_per_core_limit: 65536  registers_per_block_limit: 65536
              core_count: {self.cores}  fpus_per_core: 128  clock_rate_ghz: {self.clock}
              block_dim_limit_x: 2147483647  block_dim_limit_y: 65535  block_dim_limit_z: 65535
              device_memory_size: {self.memory * GIGA}  memory_bandwidth: {self.bandwidth * GIGA}
              l2_cache_size: {self.cache * 1_000_000}
              cuda_compute_capability {{ major: {major} minor: {minor} }}
            }}
            platform_name: "CUDA"
            dnn_version_info {{ major: 9 minor: 8 patch: 0 }}
            device_description_str: "{self.name}"
        """


GPUS = {
    "a100": Gpu("NVIDIA A100", "8.0", 163, 108, 2048, 80, 2039, 40, 1.41),
    "rtx-3090": Gpu("NVIDIA A10", "8.6", 99, 82, 1536, 24, 936, 6, 1.7),  # JAX knows its kind by the A10's name
    "rtx-4090": Gpu("NVIDIA GeForce RTX 4090", "8.9", 99, 128, 1536, 24, 1008, 72, 2.5),
    "h200": Gpu("NVIDIA H200", "9.0", 227, 132, 2048, 141, 4800, 50, 1.98),
    "b200": Gpu("NVIDIA B200", "10.0", 227, 148, 2048, 180, 8000, 126, 1.9),
    "rtx-5090": Gpu("NVIDIA RTX PRO 6000", "12.0", 99, 170, 1536, 32, 1790, 98, 2.4),
}


@dataclasses.dataclass(frozen=True)
class Program:
    """Critics of one fleet and an actor: their gradients, and those of the least value by the action.

    With passes: the mean and variance over them, and the gradient of the mean by the action.
    """

    what: str
    runs: int
    members: int
    rows: int
    inputs: int
    hidden: tuple[int, ...] = (256, 256)
    passes: int = 0  # with dropout

    def __str__(self) -> str:
        return f"{self.what}, {self.runs} runs, {self.inputs} inputs"


def programs() -> list[Program]:
    found = []
    for inputs in (23, 63, 127, 393):  # up to Humanoid
        found += [Program("SCORE", runs, 5, 256, inputs) for runs in (1, 5, 75)]
        found += [Program("CQL", runs, 2, 7_936, inputs, (256,) * 3) for runs in (1, 9)]
    return [
        *found,
        Program("PBRL", 2, 10, 5_120, 23, (256,) * 3),
        Program("SAC-N with 500 critics", 2, 500, 256, 14, (256,) * 3),
        Program("UWAC", 2, 2, 2_560, 23, passes=100),
        Program("UWAC with narrow critics", 1, 2, 256, 14, (64, 64), passes=7),
        Program("narrow critics", 5, 5, 256, 23, (64, 64)),
        Program("wide critics", 5, 5, 256, 23, (512, 512)),
    ]


@dataclasses.dataclass(frozen=True)
class Arguments:
    gpus: tuple[str, ...] = tuple(GPUS)
    """Which of the described: a100, rtx-3090, rtx-4090, h200, b200, rtx-5090."""


def lowered(gpu: Gpu, device: Any, program: Program) -> Any:
    sharding = SingleDeviceSharding(device)

    def of_all_runs(tree: Any) -> Any:
        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((program.runs, *leaf.shape), leaf.dtype, sharding=sharding), tree
        )

    sizes = (program.inputs, *program.hidden)
    critics = jax.eval_shape(lambda: Perceptron.init(jax.random.key(0), (*sizes, 1), members=program.members))
    actor = jax.eval_shape(lambda: Perceptron.init(jax.random.key(0), (*sizes, ACTION)))
    rows = jax.ShapeDtypeStruct((program.rows, program.inputs), jnp.float32)

    def gradients(critics: Perceptron, actor: Perceptron, rows: jax.Array) -> tuple[Any, ...]:
        return (
            jax.grad(lambda critics: (critics.scalars(rows) ** 2).sum())(critics),
            jax.grad(lambda rows: critics.scalars(rows).min(axis=0).sum())(rows),
            jax.grad(lambda actor: (actor.vectors(rows) ** 2).sum())(actor),
        )

    def statistics(critics: Perceptron, actor: Perceptron, rows: jax.Array) -> tuple[Any, ...]:
        observations, actions = rows[:, :-ACTION], rows[None, :, -ACTION:]

        def of_actions(actions: jax.Array) -> tuple[jax.Array, jax.Array]:
            hidden = hidden_of(critics, observations, actions)
            return many_passes(critics, hidden, jax.random.key(0), 0.1, "row", program.passes)

        return of_actions(actions), jax.grad(lambda actions: of_actions(actions)[0].sum())(actions)

    function = statistics if program.passes else gradients
    mesh = AbstractMesh((1,), ("device",), abstract_device=AbstractDevice(gpu.name, None, "gpu"))
    like_it: Any = SimpleNamespace(platform="gpu", compute_capability=gpu.capability)
    with arithmetic(arithmetic_for("bfloat16", like_it, program.runs)), use_abstract_mesh(mesh):
        traced = jax.jit(jax.vmap(function)).trace(*map(of_all_runs, (critics, actor, rows)))
        return traced.lower(lowering_platforms=("cuda",))


def main(asked: Arguments) -> int:
    unknown = [name for name in asked.gpus if name not in GPUS]
    if unknown:
        sys.exit(f"{', '.join(unknown)} is not described; there are {', '.join(GPUS)}")
    refused = 0
    for name in asked.gpus:
        gpu = GPUS[name]
        target = topologies.get_topology_desc(
            name, platform="cuda", target_config=gpu.described(), topology="1x1x1"
        ).devices[0]
        for program in programs():
            began = time.perf_counter()
            try:
                program_text = lowered(gpu, target, program)
                kernels = program_text.as_text().count("gpu.triton")
                program_text.compile()
                verdict = f"{kernels} kernels"
            except Exception as error:  # whatever a compiler says
                refused += 1
                verdict = f"REFUSED: {str(error).splitlines()[0][:200]}"
            print(f"{name:9} {program!s:45} {verdict}, {time.perf_counter() - began:.0f} s", flush=True)
    print("everything was accepted" if not refused else f"{refused} programs were refused")
    return min(refused, 1)


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Arguments, description=__doc__)))
