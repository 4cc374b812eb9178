"""Compiled programs are kept on disk, so that the second start of the same fleet skips the compiler."""

import hashlib
import os
import platform
from pathlib import Path

import jax

from score_rl.data.storage import cache_folder

SECONDS_WORTH_KEEPING = 0.3


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
