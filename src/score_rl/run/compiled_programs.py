"""Compiled programs are kept in the cache, so that the second start of a fleet skips the compiler."""

import jax

from score_rl.disk import cache_folder
from score_rl.engine.compilation import processor_fingerprint

SECONDS_WORTH_KEEPING = 0.3  # programs that compile faster are not kept


def keep_compiled_programs() -> None:
    """Use a folder of the cache, one for each kind of processor: home folders are shared between machines.

    A folder that the user gave JAX is left alone.
    """
    if jax.config.values.get("jax_compilation_cache_dir") is not None:
        return
    folder = cache_folder() / "compiled" / f"jax-{jax.__version__}-{processor_fingerprint()}"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SECONDS_WORTH_KEEPING)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
