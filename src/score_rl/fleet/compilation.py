"""How fleets are compiled, and how compiled programs are kept: the second start of a fleet skips the compiler."""

import functools
import hashlib
import os
import platform
from pathlib import Path

import jax
import jax.numpy as jnp

from score_rl.data.storage import cache_folder

SECONDS_WORTH_KEEPING = 0.3

# The matrix library that XLA takes on CPUs by default is a twentieth slower on batches of small products than Eigen
# and oneDNN, which it used before (docs/performance.md).
CPU_OPTIONS: dict[str, str | bool] = {"xla_cpu_experimental_ynn_fusion_type": "", "xla_cpu_use_onednn": True}

# But it alone multiplies bfloat16 with a processor's matrix units.
PADDED_OPTIONS: dict[str, str | bool] = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"}

# Launches that do not need each other's results run side by side instead of one after the other. Small fleets, whose
# launches do not fill a GPU, gain most (docs/performance.md).
GPU_OPTIONS: dict[str, str | bool] = {"xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"}


@functools.cache
def compiler_options(platform: str, *, padded: bool = False) -> dict[str, str | bool]:
    """For programs on such devices: those of ours that this version of the compiler knows."""
    ours = {"cpu": PADDED_OPTIONS if padded else CPU_OPTIONS, "gpu": GPU_OPTIONS}.get(platform, {})
    known = {}
    for name, value in ours.items():
        try:
            jax.jit(lambda: 0).lower().compile(compiler_options={name: value})
        except jax.errors.JaxRuntimeError:
            continue  # another version: it has its own way, which is only slower
        known[name] = value
    return known


@functools.cache
def multiplies_bfloat16() -> bool:
    """Whether this CPU has matrix units for bfloat16 (AMX) and the compiler's library is there to use them."""
    if "amx_bf16" not in _processor_flags():
        return False
    options = compiler_options("cpu", padded=True)
    factor = jax.ShapeDtypeStruct((2, 64, 64), jnp.bfloat16)
    times = jax.jit(lambda x, y: jnp.einsum("mbi,mio->mbo", x, y, preferred_element_type=jnp.float32))
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        program = times.lower(factor, factor).compile(compiler_options=options)
    return "ynn_fusion" in (program.as_text() or "")


def _processor_flags() -> set[str]:
    """What Linux says this processor can do; nothing elsewhere."""
    description = Path("/proc/cpuinfo")
    lines = description.read_text(errors="replace").splitlines() if description.exists() else []
    return {flag for line in lines if line.startswith("flags") for flag in line.partition(":")[2].split()}


def keep_compiled_programs() -> None:
    """Use a folder of the cache, one for each kind of processor; a folder the user gave JAX is left alone."""
    if jax.config.values.get("jax_compilation_cache_dir") is not None:
        return
    folder = cache_folder() / "compiled" / f"jax-{jax.__version__}-{_processor()}"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SECONDS_WORTH_KEEPING)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def _processor() -> str:
    """Code compiled for one processor may not run on another that shares the home folder."""
    facts = [platform.machine(), platform.processor(), os.environ.get("XLA_FLAGS", "")]
    description = Path("/proc/cpuinfo")
    if description.exists():
        lines = description.read_text(errors="replace").splitlines()
        facts += sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))})
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
