"""Compiled programs are kept in the cache, so that the second start of a fleet skips the compiler.

CACHE/compiled/MACHINE/KEY.program   the SHA-256 of key and program, and the program as JAX packs it

A program is machine code. So its folder is this user's alone (`private_folder`), and what does not have its checksum is
compiled again. JAX's own store has neither a checksum nor whole files: a kill leaves the beginning of one for ever.
"""

import hashlib
from pathlib import Path
from typing import Any

import jax

from score_rl.disk import cache_folder, private_folder, write_file
from score_rl.engine.compilation import processor_fingerprint
from score_rl.errors import InputError

SECONDS_WORTH_KEEPING = 0.3  # programs that compile faster are not kept
DIGEST = hashlib.sha256().digest_size


class CheckedPrograms:
    """What JAX asks for programs and gives them to."""

    def __init__(self, folder: Path) -> None:
        self._path = folder  # JAX reads this name

    def get(self, key: str) -> bytes | None:
        """None where there is no whole program of this name; a damaged one is removed."""
        path = self._file(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if len(content) > DIGEST and _digest(key, content[DIGEST:]) == content[:DIGEST]:
            return content[DIGEST:]
        path.unlink(missing_ok=True)
        return None

    def put(self, key: str, value: bytes) -> None:
        """Replaces what is there, whole or not at all."""
        write_file(self._file(key), _digest(key, value) + value)

    def _file(self, key: str) -> Path:
        return self._path / f"{key}.program"


def _digest(key: str, program: bytes) -> bytes:
    """With the key: under another name a whole program is the wrong one."""
    digest = hashlib.sha256(key.encode())
    digest.update(program)
    return digest.digest()


def keep_compiled_programs() -> str | None:
    """Use a folder of the cache, one for each kind of processor: home folders are shared between machines.

    A folder that the user gave JAX is left alone. Where none can be used, the reason comes back.
    """
    if jax.config.values.get("jax_compilation_cache_dir") is not None:
        return None
    folder = cache_folder() / "compiled" / f"jax-{jax.__version__}-{processor_fingerprint()}"
    try:
        private_folder(folder)
    except InputError as refused:
        return str(refused)
    if not _read_checked(folder):
        return f"this version of JAX ({jax.__version__}) takes no checked store"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SECONDS_WORTH_KEEPING)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return None


def _read_checked(folder: Path) -> bool:
    """Have JAX use `CheckedPrograms` for this folder. JAX has no public way to give it a store."""
    try:
        from jax._src import compilation_cache

        usual = compilation_cache.get_file_cache
    except (ImportError, AttributeError):
        return False

    def opened(path: str) -> Any:
        return (CheckedPrograms(folder), path) if path == str(folder) else usual(path)

    compilation_cache.get_file_cache = opened
    return True
