"""Options for the compiler: those it knows, on the devices they are for."""

import jax

from score_rl.fleet import compilation


def test_ours_are_known_to_this_version_and_strange_ones_are_left_out(monkeypatch):
    compilation.compiler_options.cache_clear()
    known = compilation.compiler_options("cpu")
    assert known.items() <= compilation.CPU_OPTIONS.items()
    if jax.__version__.startswith("0.10."):  # where their gain was measured
        assert known == compilation.CPU_OPTIONS
    assert compilation.compiler_options("gpu") == {}
    monkeypatch.setattr(compilation, "CPU_OPTIONS", {"xla_no_such_option": True} | compilation.CPU_OPTIONS)
    compilation.compiler_options.cache_clear()
    assert "xla_no_such_option" not in compilation.compiler_options("cpu")
    assert len(compilation.compiler_options("cpu")) == len(known)
    compilation.compiler_options.cache_clear()
