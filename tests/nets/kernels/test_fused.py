"""The kernels for critics and actors against the plain network, in Pallas's interpreter."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import score_rl.nets.kernels.fused as fused
from score_rl.nets.actor_critic import deterministic
from score_rl.nets.kernels.fused import MANY, Fused, Tiling, fastest_tiling, outputs
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.precision import Arithmetic, arithmetic
from tests.nets.kernels.slopes import distance, gradients, plain, written_for_gpus

MEMBERS, INPUTS, ROWS = 3, 23, 50  # 50 rows: the last tile is not full


def network(width: int = 128, inputs: int = INPUTS) -> Perceptron:
    return Perceptron.init(jax.random.key(0), (inputs, width, width, 1), members=MEMBERS)


def kernels(tiling: Tiling | None) -> Callable[..., Any]:
    assert tiling is not None
    return lambda net, x: outputs(net.weights, net.biases, x, tiling)


TILINGS = [
    Tiling(rows=16, units=64, interpret=True),
    Tiling(rows=16, units=128, interpret=True),
    Tiling(rows=16, groups=2, units=64, rounded=False, interpret=True),
    Tiling(rows=64, interpret=True),
]


@pytest.mark.parametrize(("tiling", "inputs"), list(zip(TILINGS, (5, 23, 16, 15), strict=True)))
def test_in_float32_the_kernels_are_the_network(tiling: Any, inputs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "DTYPE", jnp.float32)  # the same kernels without rounding: their algebra
    net, x = network(inputs=inputs), jax.random.normal(jax.random.key(1), (ROWS, inputs))
    q, slopes = gradients(kernels(tiling), net, x)
    expected, expected_slopes = gradients(plain, net, x)
    assert jnp.abs(q - expected).max() < 1e-6
    assert distance(slopes, expected_slopes) < 1e-5


@pytest.mark.parametrize("rounded", [True, False])
def test_rounding_costs_what_bfloat16_costs(rounded: bool) -> None:
    net, x = network(), jax.random.normal(jax.random.key(1), (ROWS, INPUTS))
    q, slopes = gradients(kernels(TILINGS[0]._replace(rounded=rounded)), net, x)
    expected, expected_slopes = gradients(plain, net, x)
    assert 0 < jnp.abs(q - expected).max() < 4e-3
    assert distance(slopes, expected_slopes) < 0.1  # a unit near its kink may fall on the other side


def test_fleets_of_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "DTYPE", jnp.float32)
    nets = jax.vmap(lambda key: Perceptron.init(key, (INPUTS, 64, 64, 1), members=MEMBERS))(
        jax.random.split(jax.random.key(0), 2)
    )
    x = jax.random.normal(jax.random.key(1), (2, ROWS, INPUTS))

    def slopes(function: Callable[..., Any]) -> tuple[Perceptron, jax.Array]:
        return jax.vmap(jax.grad(lambda net, x: (function(net, x) ** 2).sum(), argnums=(0, 1)))(nets, x)

    assert distance(slopes(kernels(TILINGS[0])), slopes(plain)) < 1e-5


@pytest.mark.parametrize("tiling", TILINGS[1:3])
def test_the_gradient_by_the_input_alone(tiling: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "DTYPE", jnp.float32)
    net, x = network(), jax.random.normal(jax.random.key(1), (ROWS, INPUTS))

    def slope(function: Callable[..., Any]) -> Any:
        return jax.grad(lambda x: (function(net, x).min(axis=0) ** 3).sum())(x)

    assert distance(slope(kernels(tiling)), slope(plain)) < 1e-5


def actors(width: int = 128, number: int = 6) -> Perceptron:
    return Perceptron.init(jax.random.key(0), (17, width, width, number), members=2)


@pytest.mark.parametrize(("tiling", "number"), [(TILINGS[0], MANY), (TILINGS[2], 2), (TILINGS[3], 6)])
def test_several_outputs(tiling: Any, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "DTYPE", jnp.float32)
    net, x = actors(number=number), jax.random.normal(jax.random.key(1), (ROWS, 17))
    weights = jax.random.normal(jax.random.key(2), (2, ROWS, number))

    def both(function: Callable[..., Any]) -> Any:
        return function(net, x), jax.grad(lambda net, x: (weights * function(net, x)).sum(), (0, 1))(net, x)

    out, slopes = both(kernels(tiling))
    expected, expected_slopes = both(lambda net, x: net.members(x))
    assert out.shape == expected.shape
    assert jnp.abs(out - expected).max() < 1e-6
    assert distance(slopes, expected_slopes) < 1e-5


def test_several_outputs_by_the_input_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "DTYPE", jnp.float32)
    net, x = actors(), jax.random.normal(jax.random.key(1), (ROWS, 17))
    slope, expected = (
        jax.grad(lambda x, f=function: (f(net, x) ** 3).sum())(x)
        for function in (kernels(TILINGS[0]), lambda net, x: net.members(x))
    )
    assert distance(slope, expected) < 1e-5


@pytest.mark.parametrize("number", [1, 6])
def test_fleets_of_actors_use_them_where_they_are_chosen(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "DTYPE", jnp.float32)
    keys = jax.random.split(jax.random.key(0), 2)
    fleet = jax.vmap(lambda key: Perceptron.init(key, (17, 64, 64, number)))(keys)
    x = jax.random.normal(jax.random.key(1), (2, ROWS, 17))

    def slopes() -> Any:
        return jax.vmap(jax.grad(lambda net, x: (deterministic(net, x) ** 2).sum()))(fleet, x)

    with arithmetic(Arithmetic("bfloat16", actors=(Fused(2, tiling=TILINGS[0]),))):
        program = jax.make_jaxpr(slopes)()
        found = slopes()
    assert str(program).count("pallas_call") == 3
    assert distance(found, slopes()) < 1e-5


@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated:DeprecationWarning")  # jax 0.11
@pytest.mark.parametrize("runs", [1, 75])
def test_they_are_accepted_for_a_gpu(runs: int) -> None:
    """As far as that goes without one: Pallas translates them for Triton."""
    net, x = network(256), jnp.ones((256, INPUTS))

    def everything(net: Any, x: jax.Array) -> Any:
        function = kernels(Fused(runs).tiling_for(MEMBERS, 256, INPUTS))
        by_parameters = jax.grad(lambda net: function(net, x).sum())(net)
        return by_parameters, jax.grad(lambda x: function(net, x).min(axis=0).sum())(x), function(net, x)

    assert written_for_gpus(everything, *jax.eval_shape(lambda: (net, x))).count("custom_call @__gpu") == 5
    actor = jax.tree.map(lambda leaf: leaf[:1], actors(256))
    step = jax.grad(lambda net, x: (kernels(Fused(runs).tiling_for(1, 256, 17))(net, x[:, :17]) ** 2).sum())
    assert written_for_gpus(step, *jax.eval_shape(lambda: (actor, x))).count("custom_call @__gpu") == 3


def fits(*sizes: int, members: int | None = MEMBERS, memory: int = 227) -> bool:
    return Fused(1, memory).fits(Perceptron.init(jax.random.key(0), sizes, members=members).weights, ROWS)


def test_only_networks_of_their_shape() -> None:
    assert fits(INPUTS, 256, 256, 1)
    assert not fits(INPUTS, 96, 96, 1)
    assert not fits(5, 64, 64, 64, 1)
    assert not fits(5, 64, 128, 1)
    assert fits(5, 64, 64, MANY)
    assert not fits(5, 64, 64, MANY + 1)
    assert not fits(5, 64, 64, 1, members=None)
    assert not fits(5, 64, 64, 1, memory=30)


def test_small_fleets_are_cut_into_more_programs() -> None:
    tilings = map(fastest_tiling, (1, 5, 20, 60, 375))
    programs = [tiling.groups * 256 // tiling.units for tiling in tilings]
    assert programs == sorted(programs, reverse=True)
    assert programs[0] > programs[-1]


@pytest.mark.parametrize(
    (
        "memory",
        "inputs",
        "units",
        "groups",
    ),  # an H200, an A100, a desktop's; halfcheetah, something larger, Ant, Humanoid
    [
        *((227, 23, 128, 1), (227, 119, 128, 1), (227, 393, None, None)),
        *((163, 23, 64, 1), (163, 47, 64, 1), (163, 119, 64, 5)),
        *((99, 23, 64, 5), (99, 47, 64, 5), (99, 119, None, None)),
    ],
)
def test_smaller_devices_have_smaller_programs_or_none(memory: Any, inputs: Any, units: Any, groups: Any) -> None:
    rows = 260  # five tiles
    tiling = Fused(75, memory).tiling_for(MEMBERS, rows, inputs)
    assert (tiling and tiling.units) == units
    assert (tiling and tiling.groups) == groups
    one = Fused(1, memory).tiling_for(MEMBERS, rows, inputs)
    assert (one is None) == (tiling is None)
    assert one is None or one.units == 64


def test_critics_use_them_where_they_are_chosen() -> None:
    net, x = network(), jax.random.normal(jax.random.key(1), (ROWS, INPUTS))
    with arithmetic(Arithmetic("bfloat16", (Fused(1, tiling=TILINGS[0]),))):
        chosen = net.scalars(x)
    assert (chosen == kernels(TILINGS[0])(net, x)).all()
    assert (net.scalars(x) == plain(net, x)).all()
