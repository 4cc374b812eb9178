r"""EDAC: ensemble-diversified actor-critic (An et al., 2021).

SAC-N with one more term in the critics' loss. The directions g_i in which the critics would change the data's action
shall differ. Fewer critics are then as pessimistic about other actions:

    L = Σ_i E[(Q_i(s, a) - y)²] + η·E[1/(N-1)·Σ_{i≠j} ⟨g_i, g_j⟩],    g_i = ∇_a Q_i(s, a)/(‖∇_a Q_i(s, a)‖ + 1e-10)

Everything else is SAC-N (`sac_n.py`). The double sum is computed as ‖Σ_i g_i‖² - Σ_i ‖g_i‖², without pairs.

The metric `gradient_similarity` is the mean of ⟨g_i, g_j⟩ over all pairs: the cosine of the angle between two critics'
gradients. 1 means that all critics agree on the direction, 0 that they have nothing in common.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from score_rl.algorithms import sac_n
from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Paper
from score_rl.algorithms.sac_n import Draws, State, draw, init, squared_error, target, uncertainty, value
from score_rl.algorithms.settings import config, setting
from score_rl.algorithms.soft_actor import act
from score_rl.nets.perceptron import Perceptron, repeated

__all__ = ["ALGORITHM", "Config", "Draws", "State", "critic_loss", "diversity_loss", "draw", "init", "update"]

_TINY = 1e-10  # published code


@config
class Config(sac_n.Config):
    eta: float = setting(1.0, "η, weight of the diversity (paper; presets: 0, 1 or 5)", group="paper")
    critics: int = setting(10, "N, number of critics (paper; preset for hopper: 50)", minimum=2, group="paper")


def values_and_action_gradients(
    critics: Perceptron,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> tuple[Float[Array, "members batch"], Float[Array, "members batch action"]]:
    """Q_i(s, a) and ∇_a Q_i(s, a), differentiable in the critics.

    One pass forward gives the values. One pass back to the first layers, and from there to the actions, gives the
    gradients.
    """
    weight, bias = critics.weights[0], critics.biases[0]
    inputs = repeated(jnp.concatenate([observations, actions], axis=-1), weight.shape[0])
    first = jnp.einsum("mbi,mio->mbo", inputs, weight) + bias[:, None]
    rest = Perceptron(critics.weights[1:], critics.biases[1:])

    def after(first: Float[Array, "members batch width"]) -> Float[Array, "members batch"]:
        return jax.vmap(lambda net, x: net(x))(rest, jax.nn.relu(first))[..., 0]

    q, pull_back = jax.vjp(after, first)
    (slope,) = pull_back(jnp.ones_like(q))
    return q, jnp.einsum("mbo,mao->mba", slope, weight[:, observations.shape[-1] :])


def diversity_loss(gradients: Float[Array, "members batch action"]) -> Float[Array, ""]:
    """E[1/(N-1)·Σ_{i≠j} ⟨g_i, g_j⟩]."""
    squares = (gradients**2).sum(axis=-1, keepdims=True)
    flat = squares == 0  # no unit is active: the norm of a gradient of 0 would give 0/0 on the way back
    norms = jnp.where(flat, 0.0, jnp.sqrt(jnp.where(flat, 1.0, squares)))
    directions = gradients / (norms + _TINY)
    all_pairs = (directions.sum(axis=0) ** 2).sum(axis=-1)
    own_pairs = (directions**2).sum(axis=(0, 2))
    return (all_pairs - own_pairs).mean() / (gradients.shape[0] - 1)


def critic_loss(
    critics: Perceptron, config: Config, state: State, batch: Batch, draws: Draws
) -> tuple[Float[Array, ""], Metrics]:
    """L, summed over the critics."""
    y = jax.lax.stop_gradient(target(config, state, batch, draws))
    q, gradients = values_and_action_gradients(critics, batch.observations, batch.actions)
    error, metrics = squared_error(q, y)
    diversity = diversity_loss(gradients)
    similarity = diversity / config.critics  # N(N-1) pairs: the sum over them, divided by N-1 above and by N here
    return error + config.eta * diversity, metrics | {"gradient_similarity": similarity}


update = partial(sac_n.update, critic_loss=critic_loss)

ALGORITHM = Algorithm(
    name="edac",
    title="EDAC",
    summary="SAC-N with fewer critics, whose gradients are kept apart",
    paper=Paper("An et al.", 2021, "2110.01548"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.soft.network,
    act=act,
    value=value,
    uncertainty=uncertainty,
    characteristics=("value-penalised", "uncertainty-aware"),
    headline=("uncertainty", "gradient_similarity"),
)
