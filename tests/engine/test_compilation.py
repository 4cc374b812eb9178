"""Options for the compiler: those it knows, on the devices they are for."""

import platform

import jax
import jax.numpy as jnp
import pytest

from score_rl.algorithms.registry import algorithm_names, get_algorithm
from score_rl.engine import compilation
from score_rl.nets.kernels import padded
from score_rl.nets.perceptron import Perceptron


def test_ours_are_known_to_this_version_and_strange_ones_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    compilation.compiler_options.cache_clear()
    known = compilation.compiler_options("cpu")
    assert known.items() <= compilation.CPU_OPTIONS.items()
    if jax.__version__.startswith("0.10."):  # where their gain was measured
        assert known == compilation.CPU_OPTIONS
    assert compilation.compiler_options("gpu").items() <= compilation.GPU_OPTIONS.items()
    assert compilation.compiler_options("tpu") == {}
    monkeypatch.setattr(compilation, "CPU_OPTIONS", {"xla_no_such_option": True} | compilation.CPU_OPTIONS)
    compilation.compiler_options.cache_clear()
    assert "xla_no_such_option" not in compilation.compiler_options("cpu")
    assert len(compilation.compiler_options("cpu")) == len(known)
    compilation.compiler_options.cache_clear()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="another kind of processor")
@pytest.mark.parametrize(
    ("flags", "units"),
    [
        ({"avx2", "avx512f"}, None),
        ({"avx512f", "avx512_bf16"}, "avx512_bf16"),
        ({"avx512_bf16", "amx_bf16", "amx_tile"}, "amx_bf16"),
    ],
)
def test_a_processor_is_asked_for_what_it_has(
    flags: set[str], units: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation, "_processor_flags", lambda: flags)
    compilation.bfloat16_units.cache_clear()
    found = compilation.bfloat16_units()
    compilation.bfloat16_units.cache_clear()
    assert found == units or (found is None and not jax.__version__.startswith("0.10."))


def test_a_processor_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "processor\t: 0",
        "model name\t: Some Processor 9000",
        "flags\t\t: fpu avx512_bf16 amx_bf16",
        "model name\t: X",
    ]
    monkeypatch.setattr(compilation, "_processor_lines", lambda: lines)
    assert compilation.processor() == "Some Processor 9000, amx_bf16"
    monkeypatch.setattr(compilation, "_processor_lines", lambda: lines[:2])
    assert compilation.processor() == "Some Processor 9000"
    monkeypatch.setattr(compilation, "_processor_lines", lambda: [])  # not Linux
    assert compilation.processor()


def test_a_library_that_is_not_used_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "_processor_flags", lambda: {"amx_bf16"})
    monkeypatch.setattr(compilation, "PADDED_OPTIONS", {"xla_cpu_experimental_ynn_fusion_type": ""})
    for cached in (compilation.compiler_options, compilation.bfloat16_units):
        cached.cache_clear()
    assert compilation.bfloat16_units() is None
    for cached in (compilation.compiler_options, compilation.bfloat16_units):
        cached.cache_clear()


def library_is_there() -> bool:
    return jax.__version__.startswith("0.10.") and compilation.bfloat16_units() is not None


@pytest.mark.skipif(not library_is_there(), reason="this processor does not multiply bfloat16")
def test_no_product_of_the_critics_falls_back_to_float32() -> None:
    """The library takes all six products of a network with two hidden layers, gradients included."""
    form = padded.FORM_FOR_UNITS[str(compilation.bfloat16_units())]
    net = Perceptron.init(jax.random.key(0), (5, 64, 64, 1), members=2)
    slopes = jax.jit(jax.grad(lambda net, x: padded.outputs(net.weights, net.biases, x, form).sum(), argnums=(0, 1)))
    options = compilation.compiler_options("cpu", padded=True)
    program = slopes.lower(net, jnp.ones((64, 5))).compile(compiler_options=options).as_text()
    assert program is not None
    taken = [line for line in program.splitlines() if "ynn_fusion" in line and "kind=kCustom" in line]
    assert len(taken) == 6, program  # two forwards, two by matrix, two by input


def test_every_unit_has_a_form_and_algorithms_name_no_other() -> None:
    """An algorithm says on which CPUs bfloat16 was measured to be faster; a form says how to multiply there."""
    assert set(compilation.BFLOAT16_UNITS) == set(padded.FORM_FOR_UNITS)
    for name in algorithm_names():
        assert set(get_algorithm(name).bfloat16_on) <= set(compilation.BFLOAT16_UNITS), name
