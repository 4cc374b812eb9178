"""A traced function, written down and done by NumPy, is the function."""

import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.rollout.instructions import OPERATIONS, Instructions, NotPortable, write_down

W = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
X = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)


def check(act: Callable[..., Any], numbers: Any = (W,), x: Any = X) -> set[str]:
    """Through JSON and back, as it travels. Gives the operations that were used."""
    written = write_down(act, list(numbers), x)
    written = Instructions.from_json(json.loads(json.dumps(written.to_json())), written.constants)
    found, expected = written.policy(list(numbers))(x), np.asarray(act(list(numbers), x))
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)
    return {step.operation for step in written.steps}


FUNCTIONS = [
    lambda n, x: jax.nn.relu(x @ n[0]) - 2.0,
    lambda n, x: jnp.tanh(x) / (1 + jnp.exp(-x)),
    lambda n, x: jnp.log(jnp.abs(x) + 1) * jnp.sqrt(jnp.square(x) + 1),
    lambda n, x: jax.nn.sigmoid(x) ** 3,
    lambda n, x: jax.lax.square(x - x.max(axis=1, keepdims=True)),
    lambda n, x: jnp.clip(x, -1, 1).astype(jnp.float16),
    lambda n, x: jnp.minimum(x.T.reshape(2, 6), n[0][:1]),
    lambda n, x: jnp.split(x @ n[0], [2, 5], axis=1)[1],
    lambda n, x: jnp.concatenate([x, -x[:, 1:3], x[:, ::2]], axis=1),
    lambda n, x: x.sum(axis=1, keepdims=True) + x.max(axis=0)[None],
    lambda n, x: jnp.squeeze(x[:, :1], 1)[None] + x[0, 0],
    lambda n, x: jnp.broadcast_to(x[:, None], (3, 2, 4)),
    lambda n, x: jnp.einsum("bi,io->ob", x, n[0]),
    lambda n, x: jnp.einsum("bi,bio->bo", x, jnp.broadcast_to(n[0][None], (3, 4, 6)) * x[:, :1, None]),
    lambda n, x: x + jax.random.normal(jax.random.key(0), (3, 4)),  # always the same: a constant
]


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_functions(number: int) -> None:
    assert check(FUNCTIONS[number])


def test_every_operation_is_tried() -> None:
    used = set().union(*(check(function) for function in FUNCTIONS))
    assert used == set(OPERATIONS)


def test_what_depends_on_the_policy_alone_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written = write_down(lambda n, x: x @ jnp.tanh(n[0]), [W], X)
    calls = []
    monkeypatch.setitem(OPERATIONS, "tanh", lambda x: (calls.append(1), np.tanh(x))[1])
    act = written.policy([W])
    for _ in range(3):
        np.testing.assert_allclose(act(X), X @ np.tanh(W), rtol=1e-6)
    assert len(calls) == 1


def test_nothing_is_carried_from_one_step_to_the_next() -> None:
    act = write_down(lambda n, x: jnp.maximum(x, 0) + n[0][:1, :4], [W], X).policy([W])
    first = act(X).copy()
    act(-X)
    np.testing.assert_array_equal(act(X), first)


@pytest.mark.parametrize(
    "act",
    [
        lambda n, x: jnp.sort(x),
        lambda n, x: x[jnp.argmax(x[:, 0])],
        lambda n, x: x.astype(jnp.int32) // 2,
        lambda n, x: jnp.zeros(3),
        lambda n, x: x.astype(jnp.bfloat16) @ n[0].astype(jnp.bfloat16),
        lambda n, x: x * jax.random.uniform(jax.random.key(x[0, 0].astype(jnp.int32))),
    ],
)
def test_what_cannot_be_written_down_is_refused(act: Callable[..., Any]) -> None:
    with pytest.raises(NotPortable):
        write_down(act, [W], X)
