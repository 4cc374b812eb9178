"""How fleets are compiled: options for the compiler, and what this machine multiplies bfloat16 with."""

import functools
import hashlib
import os
import platform
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

# XLA's default matrix library on CPUs is a twentieth slower on batches of small products than Eigen and oneDNN, which
# earlier versions used (docs/performance.md).
CPU_OPTIONS: dict[str, str | bool] = {"xla_cpu_experimental_ynn_fusion_type": "", "xla_cpu_use_onednn": True}

# But the default library alone multiplies bfloat16 with the instructions that a processor has for that. It also sums
# faster over thousands of rows: CQL and PBRL gain a twentieth, others nothing.
PADDED_OPTIONS: dict[str, str | bool] = {
    "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE"
}

# Launches that do not need each other's results run side by side. Small fleets gain most, because their launches do not
# fill a GPU (docs/performance.md).
GPU_OPTIONS: dict[str, str | bool] = {"xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"}


@functools.cache
def compiler_options(platform: str, *, padded: bool = False) -> dict[str, str | bool]:
    """Our options for programs on such devices, as far as this version of the compiler knows them.

    `padded` programs multiply bfloat16 on a CPU.
    """
    ours = {"cpu": PADDED_OPTIONS if padded else CPU_OPTIONS, "gpu": GPU_OPTIONS}.get(platform, {})
    known = {}
    for name, value in ours.items():
        try:
            jax.jit(lambda: 0).lower().compile(compiler_options={name: value})
        except jax.errors.JaxRuntimeError:
            continue  # another version of the compiler has its own way, which is only slower
        known[name] = value
    return known


def compiled_bytes(program: Any) -> int | None:
    """Bytes that a compiled program needs on each device, as the compiler says; None where it says nothing."""
    analysis = program.memory_analysis()
    if analysis is None:
        return None
    return int(
        analysis.argument_size_in_bytes
        + analysis.output_size_in_bytes
        + analysis.temp_size_in_bytes
        - analysis.alias_size_in_bytes
    )


# What CPUs multiply bfloat16 with, in Linux's words, the fastest first: Intel's matrix units, and pairs of products in
# AVX-512, which AMD's CPUs have since Zen 4.
BFLOAT16_UNITS = ("amx_bf16", "avx512_bf16")


@functools.cache
def bfloat16_units() -> str | None:
    """What this CPU multiplies bfloat16 with; None if it cannot, or if the compiler's library does not use it."""
    found = next((kind for kind in BFLOAT16_UNITS if kind in _processor_flags()), None)
    if found is None:
        return None
    options = compiler_options("cpu", padded=True)
    factor = jax.ShapeDtypeStruct((2, 64, 64), jnp.bfloat16)
    times = jax.jit(lambda x, y: jnp.einsum("mbi,mio->mbo", x, y, preferred_element_type=jnp.float32))
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        program = times.lower(factor, factor).compile(compiler_options=options)
    return found if "ynn_fusion" in (program.as_text() or "") else None


def processor() -> str:
    """This processor in words: its name, and the best unit that it has for bfloat16, if any."""
    names = [line.partition(":")[2].strip() for line in _processor_lines() if line.startswith("model name")]
    units = [kind for kind in BFLOAT16_UNITS if kind in _processor_flags()][:1]
    return ", ".join([names[0] if names else platform.processor() or platform.machine(), *units])


def _processor_flags() -> set[str]:
    """What this processor can do, in Linux's words; nothing on other systems."""
    return {flag for line in _processor_lines() if line.startswith("flags") for flag in line.partition(":")[2].split()}


def _processor_lines() -> list[str]:
    description = Path("/proc/cpuinfo")
    return description.read_text(errors="replace").splitlines() if description.exists() else []


def processor_fingerprint() -> str:
    """Twelve hex digits for this kind of processor: code compiled for one kind may not run on another."""
    facts = [platform.machine(), platform.processor(), os.environ.get("XLA_FLAGS", "")]
    facts += sorted({line for line in _processor_lines() if line.startswith(("model name", "flags", "Features"))})
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
