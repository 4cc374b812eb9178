r"""FQL: flow Q-learning (Park, Li and Levine, 2025).

Two policies. A flow learns how the data act: v moves noise x₀ to an action along straight lines (flow matching). The
actor μ makes an action of noise in one step. It is distilled from the flow, and pulled to where the critics are high:

    L(v)   = E[‖v(s, x_t, t) - (a - x₀)‖²],    x_t = (1 - t)·x₀ + t·a,  x₀ ~ N(0, 1),  t ~ U(0, 1)
    L(μ)   = α·E[‖μ(s, z) - flow(s, z)‖²] - E[mean_i Q_i(s, clip(μ(s, z), ±1))],    z ~ N(0, 1)
    L(Q_i) = E[(Q_i(s, a) - r - γ·(1 - terminal)·mean_j Q'_j(s', a'))²],    a' = clip(μ(s', z'), ±1)

`flow(s, z)` follows v from z in K steps of Euler's method and is clipped to ±1. No gradient goes through it. Squared
errors are averaged over the action's dimensions, and the critics' over both critics. In each update all networks move
by their losses at the parameters before it. The target critics follow the critics as they were before it too, as in the
published code. Hidden layers have GELU; in the critics layer normalisation follows it. Biases start at 0 and weights
uniform in ±√(6/(fan_in + fan_out)), as in the published code.

The actor is stochastic: episodes are played with fresh noise in every step, as the authors do.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Paper, Shapes
from score_rl.algorithms.settings import config, setting
from score_rl.nets.initialisation import glorot_start
from score_rl.nets.layer_norm import Critics, make_critics
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.precision import product


@config
class Config:
    alpha: float = setting(
        10.0, "α, weight of the distillation; the most important setting (published code; presets)", group="paper"
    )
    flow_steps: int = setting(10, "K, steps of Euler's method (paper)", minimum=1, group="paper")
    target_value: Literal["mean", "min"] = setting(
        "mean", "of both target critics (paper; antmaze: min)", group="paper"
    )
    normalise_value: bool = setting(
        False, "divide the actor's value by E|Q|, so that α does not depend on rewards (published code: off)"
    )
    discount: float = setting(0.99, "γ (paper)", maximum=1, group="paper")
    tau: float = setting(0.005, "share of each move of the targets (paper)", above=0, maximum=1, group="paper")
    learning_rate: float = setting(3e-4, "Adam's learning rate for all networks (paper)")
    hidden: tuple[int, ...] = setting(
        (512, 512, 512, 512), "widths of the hidden layers of all networks (paper)", minimum=1
    )
    critic_norm: bool = setting(True, "layer normalisation in the critics (paper)")
    batch_size: int = setting(256, "transitions per update (paper)", minimum=1)
    normalise_states: bool = setting(False, "standardise observations over the data set (published code: no)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "rewards as recorded (published code)")


class Actors(NamedTuple):
    flow: Perceptron  # v(s, x, t)
    one_step: Perceptron  # μ(s, z)


class State(NamedTuple):
    actors: Actors
    critics: Critics  # every array with a leading axis of length 2
    target_critics: Critics
    actor_optimiser: OptimiserState
    critic_optimiser: OptimiserState
    step: Int[Array, ""]


class Draws(NamedTuple):
    """The random numbers of an update: standard normal, but for the times."""

    next_noise: Float[Array, "batch action"]  # z'
    start: Float[Array, "batch action"]  # x₀
    times: Float[Array, "batch 1"]  # t, uniform in [0, 1)
    noise: Float[Array, "batch action"]  # z


def network(net: Perceptron, *inputs: Float[Array, "batch _"]) -> Float[Array, "batch action"]:
    """A network of GELUs on its inputs side by side."""
    return net(jnp.concatenate(inputs, axis=-1), activation=jax.nn.gelu, multiply=product)


def values(
    critics: Critics,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, "members batch"]:
    """Q_i(s, a) of both critics."""
    inputs = jnp.concatenate([observations, actions], axis=-1)
    if isinstance(critics, Perceptron):
        return critics.members(inputs, activation=jax.nn.gelu, multiply=product)[..., 0]
    return critics.members(inputs, activation=jax.nn.gelu)[..., 0]


def flow_actions(
    flow: Perceptron,
    steps: int,
    observations: Float[Array, "batch observation"],
    noise: Float[Array, "batch action"],
) -> Float[Array, "batch action"]:
    """Where v leads from the noise, in K steps of Euler's method, clipped to ±1."""
    actions = noise
    for step in range(steps):
        time = jnp.full_like(noise[:, :1], step / steps)
        actions = actions + network(flow, observations, actions, time) / steps
    return jnp.clip(actions, -1, 1)


def critic_loss(
    critics: Critics, config: Config, state: State, batch: Batch, draws: Draws
) -> tuple[Float[Array, ""], Metrics]:
    next_actions = jnp.clip(network(state.actors.one_step, batch.next_observations, draws.next_noise), -1, 1)
    next_q = values(state.target_critics, batch.next_observations, next_actions)
    next_value = next_q.min(axis=0) if config.target_value == "min" else next_q.mean(axis=0)
    targets = batch.rewards + config.discount * (1 - batch.terminals) * next_value
    q = values(critics, batch.observations, batch.actions)
    loss = ((q - targets[None]) ** 2).mean()
    return loss, {"critic_loss": loss, "q": q.mean(), "q_target": targets.mean()}


def actor_loss(
    actors: Actors, config: Config, state: State, batch: Batch, draws: Draws
) -> tuple[Float[Array, ""], Metrics]:
    """L(v) + L(μ): they share no parameters."""
    between = (1 - draws.times) * draws.start + draws.times * batch.actions
    velocity = network(actors.flow, batch.observations, between, draws.times)
    flow_loss = ((velocity - (batch.actions - draws.start)) ** 2).mean()

    fixed = jax.lax.stop_gradient(actors.flow)
    goals = flow_actions(fixed, config.flow_steps, batch.observations, draws.noise)
    actions = network(actors.one_step, batch.observations, draws.noise)
    distance = ((actions - goals) ** 2).mean()
    q = values(state.critics, batch.observations, jnp.clip(actions, -1, 1)).mean(axis=0)
    scale = 1 / jax.lax.stop_gradient(jnp.abs(q).mean()) if config.normalise_value else 1.0
    loss = config.alpha * distance - scale * q.mean()
    return flow_loss + loss, {
        "actor_loss": loss,
        "flow_loss": flow_loss,
        "distance": distance,
        "q_policy": q.mean(),
    }


def draw(batch: Batch, key: PRNGKeyArray) -> Draws:
    keys = jax.random.split(key, 4)
    shape, dtype = batch.actions.shape, batch.actions.dtype
    next_noise, start, noise = (jax.random.normal(each, shape, dtype) for each in keys[:3])
    return Draws(next_noise, start, jax.random.uniform(keys[3], (shape[0], 1), dtype), noise)


def learn(config: Config, state: State, batch: Batch, draws: Draws) -> tuple[State, Metrics]:
    """One step of all networks and of the targets, all from the parameters before it."""
    gradients, metrics = jax.grad(critic_loss, has_aux=True)(state.critics, config, state, batch, draws)
    critics, critic_optimiser = adam_step(state.critics, gradients, state.critic_optimiser, config.learning_rate)
    gradients, more = jax.grad(actor_loss, has_aux=True)(state.actors, config, state, batch, draws)
    actors, actor_optimiser = adam_step(state.actors, gradients, state.actor_optimiser, config.learning_rate)
    state = State(
        actors=actors,
        critics=critics,
        target_critics=move_towards(state.target_critics, state.critics, config.tau),
        actor_optimiser=actor_optimiser,
        critic_optimiser=critic_optimiser,
        step=state.step + 1,
    )
    return state, metrics | more


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    return learn(config, state, batch, draw(batch, key))


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    critic_key, flow_key, actor_key = jax.random.split(key, 3)
    observation, action = shapes.observation, shapes.action
    sizes = (observation + action, *config.hidden, 1)
    critics = make_critics(critic_key, sizes, 2, normalised=config.critic_norm, start=glorot_start)
    actors = Actors(
        flow=glorot_start(flow_key, (observation + action + 1, *config.hidden, action)),
        one_step=glorot_start(actor_key, (observation + action, *config.hidden, action)),
    )
    return State(
        actors=actors,
        critics=critics,
        target_critics=critics,
        actor_optimiser=adam_init(actors),
        critic_optimiser=adam_init(critics),
        step=jnp.zeros((), jnp.int32),
    )


def act_on_noise(
    config: Config,
    actor: Perceptron,
    observations: Float[Array, "batch observation"],
    noise: Float[Array, "batch action"],
) -> Float[Array, "batch action"]:
    """clip(μ(s, z), ±1), its products in float32."""
    inputs = jnp.concatenate([observations, noise], axis=-1)
    return jnp.clip(actor(inputs, activation=jax.nn.gelu), -1, 1)


def act(
    config: Config,
    actor: Perceptron,
    observations: Float[Array, "batch observation"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "batch action"]:
    """μ(s, 0) without a key, a function of s; with a key a sample."""
    shape = (observations.shape[0], actor.biases[-1].shape[-1])
    noise = jnp.zeros(shape, observations.dtype)
    if key is not None:
        noise = jax.random.normal(key, shape, observations.dtype)
    return act_on_noise(config, actor, observations, noise)


def value(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """The mean of Q_i(s, a), by which the actor moves."""
    return values(state.critics, observations, actions).mean(axis=0)


ALGORITHM = Algorithm(
    name="fql",
    title="FQL",
    summary="a one-step actor, distilled from a flow that imitates the data and pulled to high values",
    paper=Paper("Park, Li and Levine", 2025, "2502.02538"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.actors.one_step,
    act=act,
    value=value,
    act_on_noise=act_on_noise,
    characteristics=("policy-constrained",),
    headline=("q", "distance"),
)
