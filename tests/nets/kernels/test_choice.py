"""Which forms there are for a device, and which of them a network takes."""

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from score_rl.nets.kernels.choice import actor_form, arithmetic_for, critics_form, kernel_memory, passes_form
from score_rl.nets.kernels.fused import Fused
from score_rl.nets.kernels.layers import LayerByLayer
from score_rl.nets.kernels.padded import FORM_FOR_UNITS
from score_rl.nets.kernels.passes import DropoutPasses
from score_rl.nets.kernels.streamed import Streamed
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.precision import Arithmetic, Precision, arithmetic


def made_up(platform: str, capability: str | None = None) -> Any:
    return SimpleNamespace(platform=platform, **({} if capability is None else {"compute_capability": capability}))


HOPPER = made_up("gpu", "9.0")


def test_a_cpu_has_the_form_for_what_it_multiplies_bfloat16_with() -> None:
    assert arithmetic_for("float32", made_up("cpu"), 1, "amx_bf16") == Arithmetic()
    without = arithmetic_for("bfloat16", made_up("cpu"), 1)
    assert without == Arithmetic("bfloat16", emulated=True)
    for units, form in FORM_FOR_UNITS.items():
        chosen = arithmetic_for("bfloat16", made_up("cpu"), 1, units)
        assert (chosen.critics, chosen.actors) == ((form,), (form,))
        assert chosen.bfloat16_library
        assert not chosen.kernel_runs


@pytest.mark.parametrize(("capability", "memory"), [("8.6", 99), ("8.0", 163), ("9.0", 227), ("10.0", 227)])
def test_a_gpu_that_multiplies_bfloat16_has_kernels(capability: str, memory: int) -> None:
    chosen = arithmetic_for("bfloat16", made_up("gpu", capability), 3)
    hopper = (Streamed(3),) if capability == "9.0" else ()
    assert chosen.critics == (Fused(3, memory), *hopper, LayerByLayer.for_runs(3))
    assert chosen.actors == (Fused(3, memory),)
    assert chosen.passes == (DropoutPasses(3) if capability == "9.0" else None)
    assert chosen.kernel_runs == 3
    assert not chosen.bfloat16_library
    assert not chosen.emulated


@pytest.mark.parametrize(
    ("precision", "device"),
    [("float32", HOPPER), ("bfloat16", made_up("gpu", "7.5")), ("bfloat16", made_up("gpu", "gfx942"))],
)
def test_other_gpus_and_float32_have_aligned_layers_only(precision: Precision, device: Any) -> None:
    assert arithmetic_for(precision, device, 1) == Arithmetic(precision, multiple=64)


@pytest.mark.parametrize(
    ("platform", "capability", "memory"),
    [
        ("gpu", "9.0", 227),
        ("gpu", "8.0", 163),
        ("gpu", "8.9", 99),
        ("gpu", "13.7", 99),  # unheard of
        ("gpu", "7.5", 0),
        ("gpu", "gfx942", 0),
        ("gpu", None, 0),
        ("cpu", None, 0),
    ],
)
def test_the_memory_of_a_kernel_follows_from_the_compute_capability(
    platform: str, capability: str | None, memory: int
) -> None:
    assert kernel_memory(made_up(platform, capability)) == memory


def taken(device: Any, rows: int, *sizes: int, members: int = 5) -> tuple[type, type]:
    """The kinds of form that critics and an actor of these sizes take for a fleet of two runs."""
    critics = Perceptron.init(jax.random.key(0), (*sizes, 1), members=members)
    actor = Perceptron.init(jax.random.key(0), (*sizes, 6), members=1)
    with arithmetic(arithmetic_for("bfloat16", device, 2)):
        return type(critics_form(critics.weights, rows)), type(actor_form(actor.weights, rows))


def test_a_network_takes_the_first_form_that_fits() -> None:
    nothing = type(None)
    assert taken(HOPPER, 256, 23, 256, 256) == (Fused, Fused)
    assert taken(HOPPER, 2_048, 23, 256, 256, 256) == (Streamed, nothing)
    assert taken(HOPPER, 2_047, 23, 256, 256, 256) == (LayerByLayer, nothing)
    assert taken(made_up("gpu", "8.0"), 2_048, 23, 256, 256, 256) == (LayerByLayer, nothing)
    assert taken(HOPPER, 256, 393, 64, 64) == (LayerByLayer, nothing), "too many inputs for the fused kernels"
    assert taken(made_up("gpu", "8.9"), 256, 119, 256, 256) == (LayerByLayer, nothing), "too little memory for them"
    assert taken(HOPPER, 256, 23, 400, 300) == (nothing, nothing)


def test_an_actor_of_one_output_takes_no_form_for_critics() -> None:
    actor = Perceptron.init(jax.random.key(0), (23, 256, 256, 256, 1), members=1)
    with arithmetic(arithmetic_for("bfloat16", HOPPER, 2)):
        assert actor_form(actor.weights, 4_096) is None


def test_passes_with_one_mask_for_all_rows_have_no_form() -> None:
    weights = Perceptron.init(jax.random.key(0), (5, 64, 64, 1), members=2).weights
    with arithmetic(arithmetic_for("bfloat16", HOPPER, 2)):
        assert passes_form(weights, "row") == DropoutPasses(2)
        assert passes_form(weights, "pass") is None
        assert passes_form(jax.tree.map(lambda leaf: leaf.astype(jnp.float16), weights), "row") is None
    assert passes_form(weights, "row") is None


def test_nothing_is_chosen_outside_of_an_arithmetic() -> None:
    net = Perceptron.init(jax.random.key(0), (5, 64, 64, 1), members=2)
    assert critics_form(net.weights, 256) is None
    assert actor_form(net.weights, 256) is None
