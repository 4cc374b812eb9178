"""Layer normalisation in the critics, and the networks that are usual on OGBench."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import iql
from score_rl.algorithms.algorithm import Batch, Shapes
from score_rl.algorithms.presets import preset
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.errors import InputError
from score_rl.nets.actor_critic import values_of_many
from score_rl.nets.layer_norm import NormalisedPerceptron, make_critics
from score_rl.nets.perceptron import Perceptron

SHAPES = Shapes(observation=4, action=2)


def batch(rows: int = 16) -> Batch:
    rng = np.random.default_rng(0)
    columns = [jnp.asarray(rng.normal(size=(rows, n)), jnp.float32) for n in (4, 2, 1, 4)]
    rewards, terminals = columns.pop(2)[:, 0], jnp.asarray(rng.uniform(size=rows) < 0.2, jnp.float32)
    return Batch(columns[0], jnp.clip(columns[1], -1, 1), rewards, columns[2], terminals, jnp.arange(rows))


@pytest.mark.parametrize("name", ["score", "td3-bc", "iql"])
def test_critics_are_normalised_where_that_is_asked_for(name: str) -> None:
    algorithm = get_algorithm(name)
    config = make_config(algorithm, {"hidden": (8, 8), "critic_norm": True})
    plain = algorithm.init(make_config(algorithm, {"hidden": (8, 8)}), SHAPES, jax.random.key(0))
    assert isinstance(plain.critics, Perceptron)
    before = algorithm.init(config, SHAPES, jax.random.key(0))
    np.testing.assert_array_equal(before.critics.layers.weights[0], plain.critics.weights[0])
    update = jax.jit(algorithm.update, static_argnums=4)
    after, metrics = update(
        config, before, batch(), jax.random.key(1), 1 if name == "td3-bc" else 0
    )  # when targets move
    assert isinstance(after.critics, NormalisedPerceptron)
    # Units that are normalised learn scales and shifts; the targets follow.
    for part in (after.critics, after.target_critics):
        assert not np.array_equal(part.scales[1], before.critics.scales[1])
        assert not np.array_equal(part.shifts[0], before.critics.shifts[0])
    assert all(np.isfinite(value) for value in metrics.values())


def test_what_reads_a_critics_layers_goes_without() -> None:
    with pytest.raises(InputError, match="critic_norm goes neither with spectral_norm nor with uncertainty dropout"):
        make_config(get_algorithm("score"), {"critic_norm": True, "uncertainty": "dropout"})


def test_many_actions_beside_a_state_have_their_own_values() -> None:
    critics = make_critics(jax.random.key(0), (6, 8, 1), 3, normalised=True)
    observations, actions = (
        jax.random.normal(jax.random.key(1), (5, 4)),
        jax.random.normal(jax.random.key(2), (7, 5, 2)),
    )
    many = values_of_many(critics, observations, actions)
    assert many.shape == (3, 7, 5)
    alone = critics.scalars(jnp.concatenate([observations, actions[6]], axis=-1))
    np.testing.assert_allclose(many[:, 6], alone, rtol=1e-5, atol=1e-6)


def test_a_constant_deviation_leaves_a_square() -> None:
    config = make_config(get_algorithm("iql"), {"hidden": (8,), "constant_std": True})
    actor = iql.init(config, SHAPES, jax.random.key(0)).actor._replace(log_std=jnp.full(2, 1.5))
    rows, advantages = batch(), jnp.linspace(-1.0, 1.0, 16)

    def loss(actor: Any) -> Any:
        return iql.actor_loss(actor, config, rows, advantages)[0]

    mean = np.tanh(np.asarray(actor.net(rows.observations)))
    square = 0.5 * ((mean - rows.actions) ** 2).sum(axis=1) + np.log(2 * np.pi)
    expected = (np.minimum(np.exp(3.0 * np.asarray(advantages)), 100) * square).mean()
    assert float(loss(actor)) == pytest.approx(float(expected), rel=1e-5)
    assert not jax.grad(loss)(actor).log_std.any()


def test_the_field_s_settings_are_found_by_data_set() -> None:
    name = "ogbench:cube-double-play-singletask-task3"
    assert preset("iql", name)["temperature"] == 0.3
    assert preset("rebrac", name) == {
        "hidden": [512, 512, 512, 512],
        "batch_size": 256,
        "critic_learning_rate": 3e-4,
        "actor_learning_rate": 3e-4,
        "actor_bc_weight": 0.1,
        "critic_bc_weight": 0.0,
    }
    config = make_config(get_algorithm("iql"), preset("iql", "ogbench:scene-play-singletask-task2"))
    assert (config.hidden, config.critic_norm, config.constant_std, config.temperature) == (
        (512,) * 4,
        True,
        True,
        10.0,
    )
