"""Compiled programs in the cache: checked, replaced where they are damaged, and nobody else's."""

import os
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from score_rl.run import compiled_programs
from score_rl.run.compiled_programs import CheckedPrograms, keep_compiled_programs


@pytest.fixture
def hits() -> Iterator[list[str]]:
    """What JAX finds in its store, of programs however small."""
    found: list[str] = []

    def listen(event: str, **facts: object) -> None:
        if event.endswith("compilation_cache/cache_hits"):
            found.append(event)

    jax.monitoring.register_event_listener(listen)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    yield found
    jax.config.update("jax_persistent_cache_min_compile_time_secs", compiled_programs.SECONDS_WORTH_KEEPING)
    jax.monitoring.unregister_event_listener(listen)


def compute() -> float:
    """A program that was not compiled in this process, as it seems to JAX."""

    def unlike_any_other_test(x: jax.Array) -> jax.Array:
        return (x @ x).sum()

    return float(jax.jit(unlike_any_other_test)(jnp.ones((7, 7))))


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty"])
def test_a_damaged_program_is_compiled_again(cache: Path, hits: list[str], damage: str) -> None:
    assert compute() == 343
    assert compute() == 343
    assert hits, "the second time it was found"
    (path,) = (cache / "compiled").rglob("*unlike_any_other_test*.program")
    content = path.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    path.write_bytes({"flipped": flipped, "cut": content[:middle], "empty": b""}[damage])
    hits.clear()
    assert compute() == 343
    assert not hits, "what is damaged is not used"
    assert compute() == 343
    assert hits, "it was compiled and stored again"


def test_it_gives_back_what_it_was_given_or_nothing(tmp_path: Path) -> None:
    programs = CheckedPrograms(tmp_path)
    assert programs.get("key") is None
    programs.put("key", b"program")
    programs.put("key", b"another")
    assert programs.get("key") == b"another"
    (tmp_path / "key.program").rename(tmp_path / "other.program")
    assert programs.get("other") is None, "it was stored under another name"
    (tmp_path / "key.program").write_bytes(b"short")
    assert programs.get("key") is None
    assert not list(tmp_path.iterdir())


def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two users with one cache: each would run what the other stored."""
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    used = jax.config.values["jax_compilation_cache_dir"]
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        assert "belongs to user" in str(keep_compiled_programs())
        assert jax.config.values["jax_compilation_cache_dir"] is None
    finally:
        jax.config.update("jax_compilation_cache_dir", used)
