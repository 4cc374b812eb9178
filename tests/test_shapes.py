"""Shapes in signatures are looked at while tests run."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, Int, TypeCheckError

from score_rl.nets.actor_critic import values
from score_rl.nets.perceptron import Perceptron
from tests.shapes import has_shape, of_any_library


def test_two_batches_of_one_name_have_one_size() -> None:
    critics = Perceptron.init(jax.random.key(0), (5, 4, 1), members=2)
    assert values(critics, jnp.ones((7, 3)), jnp.ones((7, 2))).shape == (2, 7)
    with pytest.raises(TypeCheckError, match="actions"):
        values(critics, jnp.ones((7, 3)), jnp.ones((6, 2)))


def test_whole_numbers_are_no_floats() -> None:
    critics = Perceptron.init(jax.random.key(0), (5, 4, 1), members=2)
    with pytest.raises(TypeCheckError, match="observations"):
        values(critics, jnp.ones((7, 3), jnp.int32), jnp.ones((7, 2)))


@pytest.mark.parametrize(
    ("hint", "wrong"),
    [
        (Float[Array, " rows"], np.ones((2, 2))),
        (tuple[Float[Array, " rows"], int], (np.ones((2, 2)), 3)),
        (dict[str, Float[Array, ""]], {"loss": np.ones(3)}),
        (Float[Array, " rows"] | None, np.ones((2, 2))),
        (list[Int[Array, " rows"]], [np.ones(2)]),
    ],
)
def test_arrays_are_found_inside_other_types(hint: Any, wrong: Any) -> None:
    from beartype.door import is_bearable

    assert has_shape(hint)
    assert not is_bearable(wrong, of_any_library(hint))


def test_other_types_are_left_to_mypy() -> None:
    assert not any(map(has_shape, (int, dict[str, int], str | None, Any)))
