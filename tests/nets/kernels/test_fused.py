"""The kernels for critics and actors against the plain network, in Pallas's interpreter."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest

import score_rl.nets.kernels.fused as fused
import score_rl.nets.kernels.layers as layers
from score_rl.nets.actor_critic import deterministic
from score_rl.nets.kernels.fused import MANY, How, Kernels, fits, outputs, shape_for
from score_rl.nets.kernels.layers import Tiles
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.precision import Arithmetic, arithmetic
from tests.nets.kernels.slopes import distance, gradients, plain, written_for_gpus

MEMBERS, INPUTS, ROWS = 3, 23, 50  # 50 rows: the last tile is not full


def network(width: int = 128, inputs: int = INPUTS) -> Perceptron:
    return Perceptron.init(jax.random.key(0), (inputs, width, width, 1), members=MEMBERS)


def kernels(how: How):
    return lambda net, x: outputs(net.weights, net.biases, x, how)


SHAPES = [
    How(rows=16, units=64, interpret=True),
    How(rows=16, units=128, interpret=True),
    How(rows=16, groups=2, units=64, rounded=False, interpret=True),
    How(rows=64, interpret=True),
]


@pytest.mark.parametrize(("how", "inputs"), list(zip(SHAPES, (5, 23, 16, 15), strict=True)))
def test_in_float32_the_kernels_are_the_network(how, inputs, monkeypatch):
    monkeypatch.setattr(fused, "DTYPE", jnp.float32)  # the same kernels without rounding: their algebra
    net, x = network(inputs=inputs), jax.random.normal(jax.random.key(1), (ROWS, inputs))
    q, slopes = gradients(kernels(how), net, x)
    expected, expected_slopes = gradients(plain, net, x)
    assert jnp.abs(q - expected).max() < 1e-6
    assert distance(slopes, expected_slopes) < 1e-5


@pytest.mark.parametrize("rounded", [True, False])
def test_rounding_costs_what_bfloat16_costs(rounded):
    net, x = network(), jax.random.normal(jax.random.key(1), (ROWS, INPUTS))
    q, slopes = gradients(kernels(SHAPES[0]._replace(rounded=rounded)), net, x)
    expected, expected_slopes = gradients(plain, net, x)
    assert 0 < jnp.abs(q - expected).max() < 4e-3
    assert distance(slopes, expected_slopes) < 0.1  # a unit near its kink may fall on the other side


def test_fleets_of_networks(monkeypatch):
    monkeypatch.setattr(fused, "DTYPE", jnp.float32)
    nets = jax.vmap(lambda key: Perceptron.init(key, (INPUTS, 64, 64, 1), members=MEMBERS))(
        jax.random.split(jax.random.key(0), 2)
    )
    x = jax.random.normal(jax.random.key(1), (2, ROWS, INPUTS))

    def slopes(function):
        return jax.vmap(jax.grad(lambda net, x: (function(net, x) ** 2).sum(), argnums=(0, 1)))(nets, x)

    assert distance(slopes(kernels(SHAPES[0])), slopes(plain)) < 1e-5


@pytest.mark.parametrize("how", SHAPES[1:3])
def test_the_gradient_by_the_input_alone(how, monkeypatch):
    monkeypatch.setattr(fused, "DTYPE", jnp.float32)
    net, x = network(), jax.random.normal(jax.random.key(1), (ROWS, INPUTS))

    def slope(function):
        return jax.grad(lambda x: (function(net, x).min(axis=0) ** 3).sum())(x)

    assert distance(slope(kernels(how)), slope(plain)) < 1e-5


def actors(width: int = 128, number: int = 6) -> Perceptron:
    return Perceptron.init(jax.random.key(0), (17, width, width, number), members=2)


@pytest.mark.parametrize(("how", "number"), [(SHAPES[0], MANY), (SHAPES[2], 2), (SHAPES[3], 6)])
def test_several_outputs(how, number, monkeypatch):
    monkeypatch.setattr(fused, "DTYPE", jnp.float32)
    net, x = actors(number=number), jax.random.normal(jax.random.key(1), (ROWS, 17))
    weights = jax.random.normal(jax.random.key(2), (2, ROWS, number))

    def both(function):
        return function(net, x), jax.grad(lambda net, x: (weights * function(net, x)).sum(), (0, 1))(net, x)

    out, slopes = both(kernels(how))
    expected, expected_slopes = both(lambda net, x: net.members(x))
    assert out.shape == expected.shape
    assert jnp.abs(out - expected).max() < 1e-6
    assert distance(slopes, expected_slopes) < 1e-5


def test_several_outputs_by_the_input_alone(monkeypatch):
    monkeypatch.setattr(fused, "DTYPE", jnp.float32)
    net, x = actors(), jax.random.normal(jax.random.key(1), (ROWS, 17))
    slope, expected = (
        jax.grad(lambda x, f=function: (f(net, x) ** 3).sum())(x)
        for function in (kernels(SHAPES[0]), lambda net, x: net.members(x))
    )
    assert distance(slope, expected) < 1e-5


@pytest.mark.parametrize("number", [1, 6])
def test_fleets_of_actors_use_them_where_they_are_chosen(number, monkeypatch):
    monkeypatch.setattr(fused, "DTYPE", jnp.float32)
    keys = jax.random.split(jax.random.key(0), 2)
    fleet = jax.vmap(lambda key: Perceptron.init(key, (17, 64, 64, number)))(keys)
    x = jax.random.normal(jax.random.key(1), (2, ROWS, 17))

    def slopes():
        return jax.vmap(jax.grad(lambda net, x: (deterministic(net, x) ** 2).sum()))(fleet, x)

    with arithmetic(Arithmetic("bfloat16", Kernels(2, always=SHAPES[0]))):
        program = jax.make_jaxpr(slopes)()
        found = slopes()
    assert str(program).count("pallas_call") == 3
    assert distance(found, slopes()) < 1e-5


@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated:DeprecationWarning")  # jax 0.11
@pytest.mark.parametrize("runs", [1, 75])
def test_they_are_accepted_for_a_gpu(runs):
    """As far as that goes without one: Pallas translates them for Triton."""
    net, x = network(256), jnp.ones((256, INPUTS))

    def everything(net, x):
        function = kernels(Kernels(runs).shape(MEMBERS, 256, INPUTS))
        by_parameters = jax.grad(lambda net: function(net, x).sum())(net)
        return by_parameters, jax.grad(lambda x: function(net, x).min(axis=0).sum())(x), function(net, x)

    assert written_for_gpus(everything, *jax.eval_shape(lambda: (net, x))).count("custom_call @__gpu") == 5
    actor = jax.tree.map(lambda leaf: leaf[:1], actors(256))
    step = jax.grad(lambda net, x: (kernels(Kernels(runs).shape(1, 256, 17))(net, x[:, :17]) ** 2).sum())
    assert written_for_gpus(step, *jax.eval_shape(lambda: (actor, x))).count("custom_call @__gpu") == 3


def test_only_networks_of_their_shape():
    assert fits(network(256).weights)
    assert not fits(network(96).weights)
    assert not fits(Perceptron.init(jax.random.key(0), (5, 64, 64, 64, 1), members=2).weights)
    assert not fits(Perceptron.init(jax.random.key(0), (5, 64, 128, 1), members=2).weights)
    assert not fits(Perceptron.init(jax.random.key(0), (5, 64, 64, 2), members=2).weights)
    assert fits(Perceptron.init(jax.random.key(0), (5, 64, 64, 2), members=2).weights, outputs=MANY)
    assert not fits(Perceptron.init(jax.random.key(0), (5, 64, 64, MANY + 1), members=2).weights, outputs=MANY)
    assert not fits(Perceptron.init(jax.random.key(0), (5, 64, 64, 1)).weights)


def test_small_fleets_are_cut_into_more_programs():
    programs = [shape_for(networks).groups * 256 // shape_for(networks).units for networks in (1, 5, 20, 60, 375)]
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
def test_smaller_devices_have_smaller_programs_or_none(memory, inputs, units, groups):
    rows = 260  # five tiles
    how = Kernels(75, memory).shape(MEMBERS, rows, inputs)
    assert (how and how.units) == units
    assert (how and how.groups) == groups
    one = Kernels(1, memory).shape(MEMBERS, rows, inputs)
    assert (one is None) == (how is None)
    assert one is None or one.units == 64


def test_too_many_inputs_are_left_to_the_kernels_of_layers():
    net = Perceptron.init(jax.random.key(0), (393, 64, 64, 1), members=2)
    with arithmetic(Arithmetic("bfloat16", Kernels(1), Tiles())):
        fast = net.fast_scalars(256)
    assert isinstance(fast, partial)
    assert fast.func is layers.outputs


def test_critics_use_them_where_they_are_chosen():
    net, x = network(), jax.random.normal(jax.random.key(1), (ROWS, INPUTS))
    how = SHAPES[0]
    with arithmetic(Arithmetic("bfloat16", Kernels(1, always=how))):
        chosen = net.scalars(x)
    assert (chosen == outputs(net.weights, net.biases, x, how)).all()
    assert (net.scalars(x) == plain(net, x)).all()
