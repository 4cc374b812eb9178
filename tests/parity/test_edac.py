"""EDAC against a plain float64 transcription: consecutive full updates and the diversity term by itself."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import edac
from score_rl.algorithms.presets import preset
from tests.parity import numpy_reference as ref
from tests.parity import test_sac_n
from tests.parity.numpy_reference import arrays, beside, gradient
from tests.parity.soft_reference import SHAPES, largest_difference, q_of, started, train_both


def action_gradient(critic: list[np.ndarray], s: np.ndarray, a: np.ndarray) -> np.ndarray:
    """∇_a Q by the chain rule, layer by layer; analytic in the critic's parameters."""
    x, masks = beside(s, a), []
    for layer in range(0, len(critic) - 2, 2):
        x = x @ critic[layer] + critic[layer + 1]
        masks.append(x.real > 0)
        x = ref.relu(x)
    slope = np.broadcast_to(critic[-2][:, 0], x.shape)
    for layer, mask in zip(reversed(range(0, len(critic) - 2, 2)), reversed(masks), strict=True):
        slope = (slope * mask) @ critic[layer].T
    return slope[:, s.shape[1] :]


def diversity(critics: list[list[np.ndarray]], s: np.ndarray, a: np.ndarray) -> Any:
    directions = []
    for critic in critics:
        slope = action_gradient(critic, s, a)
        directions.append(slope / (np.sqrt((slope**2).sum(-1, keepdims=True)) + 1e-10))
    pairs = [(g * h).sum(-1) for i, g in enumerate(directions) for j, h in enumerate(directions) if i != j]
    return sum(pairs).mean() / (len(critics) - 1)


class Reference(test_sac_n.Reference):
    def critic_gradients(self, s: np.ndarray, a: np.ndarray, y: np.ndarray) -> list[list[np.ndarray]]:
        def loss(stacked: list[np.ndarray]) -> Any:
            critics = [stacked[i : i + size] for i in range(0, len(stacked), size)]
            errors = sum(((q_of(critic, s, a) - y) ** 2).mean() for critic in critics)
            return errors + self.config.eta * diversity(critics, s, a)

        size = len(self.critics[0])
        slopes = gradient(loss, [p for critic in self.critics for p in critic])
        return [slopes[i : i + size] for i in range(0, len(slopes), size)]


SMALL: dict[str, Any] = {"hidden": (6, 5, 4), "critics": 4, "critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3}


@pytest.mark.parametrize("options", [{}, {"eta": 5.0, "discount": 0.9, "tau": 0.1}, {"eta": 0.0}], ids=str)
def test_updates_agree(options: dict[str, Any]) -> None:
    with jax.enable_x64(True):
        assert largest_difference(*train_both(edac, Reference, edac.Config(**(SMALL | options)))) < 1e-8


def test_the_reference_notices_a_wrong_setting() -> None:
    with jax.enable_x64(True):
        right, wrong = edac.Config(**SMALL), edac.Config(**(SMALL | {"eta": 1.1}))
        assert largest_difference(*train_both(edac, Reference, right, wrong, updates=1)) > 1e-6


def test_values_and_their_gradients() -> None:
    with jax.enable_x64(True):
        critics = started(edac, edac.Config(**SMALL), SHAPES).critics
        s, a, *_ = next(ref.batches(1, 6, *SHAPES))
        q, slopes = jax.jit(edac.values_and_action_gradients)(critics, s, a)
        for i in range(4):
            critic = arrays(critics, i)
            np.testing.assert_allclose(q[i], q_of(critic, s, a), rtol=1e-10)
            np.testing.assert_allclose(slopes[i], action_gradient(critic, s, a), rtol=1e-10)
        expected = diversity([arrays(critics, i) for i in range(4)], s, a)
        assert float(edac.diversity_loss(slopes)) == pytest.approx(expected, rel=1e-10)


def test_diversity_has_its_known_values() -> None:
    same = jnp.broadcast_to(jnp.asarray([0.6, -0.8]), (5, 3, 2))
    assert float(edac.diversity_loss(same)) == pytest.approx(5, rel=1e-5)  # 1/(N-1)·N·(N-1)
    opposed = jnp.stack([same[0], -2 * same[0]])
    assert float(edac.diversity_loss(opposed)) == pytest.approx(-2, rel=1e-5)
    orthogonal = jnp.asarray([[[3.0, 0.0]], [[0.0, 0.5]]])
    assert float(edac.diversity_loss(orthogonal)) == pytest.approx(0, abs=1e-6)


def test_a_critic_without_active_units_gives_no_nan() -> None:
    slopes = jnp.asarray([[[0.0, 0.0]], [[1.0, 2.0]], [[0.5, -1.0]]])
    assert np.isfinite(jax.grad(edac.diversity_loss)(slopes)).all()


def test_presets_are_the_table() -> None:
    kinds = ("random", "medium-replay", "medium", "medium-expert", "expert", "full-replay")
    wanted = {
        "halfcheetah": (10, (0, 1, 1, 5, 1, 1)),
        "hopper": (50, (0, 1, 1, 1, 1, 1)),
        "walker2d": (10, (1, 1, 1, 5, 5, 1)),
    }
    for task, (critics, etas) in wanted.items():
        for kind, eta in zip(kinds, etas, strict=True):
            config = edac.Config(**preset("edac", f"replica:{task}-{kind}"))
            assert (config.critics, config.eta) == (critics, eta), (task, kind)
