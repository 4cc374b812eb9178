"""Products in lower precision, and where the choice of it holds."""

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from score_rl.nets.actor_critic import member, on_many, values, values_of_many
from score_rl.nets.perceptron import Perceptron, aligned
from score_rl.nets.precision import Arithmetic, arithmetic, chosen_arithmetic, product

LOW = Arithmetic("bfloat16", emulated=True)
EQUATIONS = [("bi,io->bo", (8, 5), (5, 3)), ("bi,mio->mbo", (8, 5), (2, 5, 3)), ("mbi,mio->mbo", (2, 8, 5), (2, 5, 3))]


def rounded(x: jax.Array) -> Any:
    return np.asarray(x).astype(ml_dtypes.bfloat16).astype(np.float64)


@pytest.mark.parametrize(("equation", "left", "right"), EQUATIONS)
def test_inputs_are_rounded_and_sums_are_not(equation: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, w = (jax.random.normal(jax.random.key(i), shape) for i, shape in enumerate((left, right)))
    with arithmetic(LOW):
        value, pull_back = jax.vjp(lambda x, w: product(equation, x, w), x, w)
        slope = jax.random.normal(jax.random.key(2), value.shape)
        dx, dw = pull_back(slope)
    first, second = equation.split("->")[0].split(",")
    out = equation.split("->")[1]
    x, w, slope = rounded(x), rounded(w), rounded(slope)
    np.testing.assert_allclose(value, np.einsum(equation, x, w), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(dx, np.einsum(f"{out},{second}->{first}", slope, w), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(dw, np.einsum(f"{first},{out}->{second}", x, slope), rtol=1e-5, atol=1e-5)
    assert np.abs(value - np.einsum(equation, *map(np.float64, (x, w)))).max() < 1e-5


def test_float32_is_untouched() -> None:
    x, w = jnp.full((1, 1), 1 + 2.0**-10), jnp.ones((1, 1))
    assert product("bi,io->bo", x, w) == x
    with arithmetic(LOW):
        assert product("bi,io->bo", x, w) == 1


def test_the_choice_ends_with_its_block() -> None:
    def fail() -> None:
        with arithmetic(LOW):
            raise RuntimeError(chosen_arithmetic().precision)

    with pytest.raises(RuntimeError, match="bfloat16"):
        fail()
    assert chosen_arithmetic() == Arithmetic()


def test_critics_obey_it_and_other_networks_do_not() -> None:
    net = Perceptron.init(jax.random.key(0), (5, 16, 16, 1), members=2)
    s, a = jax.random.normal(jax.random.key(1), (8, 3)), jax.random.normal(jax.random.key(2), (4, 8, 2))
    both = jnp.concatenate([s, a[0]], axis=1)

    def critics() -> tuple[jax.Array, jax.Array]:
        return values(net, s, a[0]), values_of_many(net, s, a)

    def others() -> tuple[jax.Array, jax.Array, jax.Array]:
        return net.members(both), member(net, 0)(both), on_many(member(net, 0), s, a)

    plain = critics(), others()
    with arithmetic(LOW):
        low = critics(), others()
    assert all((x != y).any() for x, y in zip(plain[0], low[0], strict=True))
    assert all((x == y).all() for x, y in zip(plain[1], low[1], strict=True))


def test_wider_layers_for_a_device_compute_the_same() -> None:
    net = Perceptron.init(jax.random.key(0), (5, 30, 50, 3))
    x = jax.random.normal(jax.random.key(1), (7, 5))

    def both(net: Perceptron) -> jax.Array:
        return (aligned(net)(x) ** 2).sum()

    assert aligned(net) is net  # where nothing is asked, nothing is done
    expected, slopes = jax.value_and_grad(both)(net)
    with arithmetic(Arithmetic(multiple=16)):
        assert [weight.shape for weight in aligned(net).weights] == [(5, 32), (32, 64), (64, 3)]
        value, padded_slopes = jax.value_and_grad(both)(net)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    for one, other in zip(jax.tree.leaves(padded_slopes), jax.tree.leaves(slopes), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
