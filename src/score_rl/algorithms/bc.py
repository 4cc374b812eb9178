r"""BC: behaviour cloning, the actor's regression alone.

    L(π) = E[(π(s) - a)²],    averaged over the action's dimensions

No value is learned, so the policy is at best that of the data. SCORE and TD3-BC become BC when the value's weight is 0.
Every other method here has to beat it.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Shapes
from score_rl.algorithms.settings import config, setting
from score_rl.nets.actor_critic import deterministic
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step
from score_rl.nets.perceptron import Perceptron


@config
class Config:
    learning_rate: float = setting(3e-4, "Adam's learning rate (that of TD3-BC's actor)")
    hidden: tuple[int, ...] = setting(
        (256, 256), "widths of the actor's hidden layers (those of TD3-BC's actor)", minimum=1
    )
    batch_size: int = setting(256, "transitions per update (TD3-BC's)", minimum=1)
    normalise_states: bool = setting(True, "standardise observations over the data set (as TD3-BC does)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "rewards are not used")


class State(NamedTuple):
    actor: Perceptron
    optimiser: OptimiserState
    step: Int[Array, ""]


def loss(actor: Perceptron, batch: Batch) -> Float[Array, ""]:
    return ((deterministic(actor, batch.observations) - batch.actions) ** 2).mean()


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    error, gradients = jax.value_and_grad(loss)(state.actor, batch)
    actor, optimiser = adam_step(state.actor, gradients, state.optimiser, config.learning_rate)
    return State(actor, optimiser, state.step + 1), {"bc_error": error}


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    actor = Perceptron.init(key, (shapes.observation, *config.hidden, shapes.action))
    return State(actor, adam_init(actor), jnp.zeros((), jnp.int32))


def act(
    config: Config,
    actor: Perceptron,
    observations: Float[Array, "batch observation"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "batch action"]:
    """π(s). It is deterministic, so `key` is not used."""
    return deterministic(actor, observations)


ALGORITHM = Algorithm(
    name="bc",
    title="BC",
    summary="behaviour cloning: the data's actions by regression",
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.actor,
    act=act,
    characteristics=("policy-constrained",),
    bfloat16_on=("avx512_bf16",),
    headline=("bc_error",),
)
