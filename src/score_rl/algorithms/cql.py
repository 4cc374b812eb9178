r"""CQL(H): conservative Q-learning (Kumar et al., 2020).

SAC with two critics. Their loss also pushes down a soft maximum of Q over all actions, and pushes up the data's:

    L(Q_i) = E[(Q_i(s, a) - y)²] + w·gap_i
    y      = r + γ·(1 - terminal)·min_j Q'_j(s', a'),    a' ~ π(·|s')
    gap_i  = E[T·log Σ_k exp((Q_i(s, a_k) - log μ(a_k))/T) - Q_i(s, a)]

The a_k are n uniform actions, n from π(·|s') and n from π(·|s), all evaluated at s. Each is weighted by the density μ
that it was drawn from. So the sum estimates ∫exp Q(s, a) da, up to the constant 3n, which is left out as published.

With `lagrange`, ν·(w·gap_i - τ) replaces w·gap_i. The multiplier ν is tuned so that the gap meets τ:

    L(log ν) = -mean_i ν·(w·gap_i - τ)

The actor and its temperature are SAC's (`soft_actor.py`). In the first `cloning_updates` the actor's loss has
log π(a|s) of the data's action in place of min_i Q_i. The temperature moves first. All other gradients are taken before
anything else moves (published code).
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Paper, Shapes
from score_rl.algorithms.settings import config, setting
from score_rl.algorithms.soft_actor import (
    SoftActor,
    act,
    actor_loss,
    improve,
    init_soft_actor,
    policy,
    tune_temperature,
)
from score_rl.nets.actor_critic import values, values_of_many
from score_rl.nets.initialisation import orthogonal_start, rlkit_start
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron


@config
class Config:
    weight: float = setting(
        5.0, "w, weight of the gap (OfflineRL-Kit; published code: 5 or 10; CORL: 10)", group="paper"
    )
    gap_temperature: float = setting(1.0, "T, temperature of the soft maximum (published code)", above=0, group="paper")
    discount: float = setting(0.99, "γ (published code)", maximum=1, group="paper")
    tau: float = setting(0.005, "share of each move of the targets (published code)", above=0, maximum=1, group="paper")
    actor_learning_rate: float = setting(1e-4, "Adam's for actor and temperature (published code; CORL 3e-5)")
    critic_learning_rate: float = setting(3e-4, "Adam's learning rate for the critics and ν (published code)")
    target_gap: float = setting(
        5.0, "lagrange: τ, the gap that ν aims at (published code)", minimum=None, group="ablation"
    )
    sampled_actions: int = setting(
        10, "n, actions of each of the three kinds (published code)", minimum=1, group="paper"
    )
    critics: int = setting(2, "number of critics (published code)", minimum=1, group="paper")
    hidden: tuple[int, ...] = setting((256, 256, 256), "widths of the hidden layers (published code)", minimum=1)
    batch_size: int = setting(256, "transitions per update (published code)", minimum=1)
    cloning_updates: int = setting(
        0, "first updates, in which the actor clones (published script: 40,000; CORL: 0)", group="ablation"
    )
    lagrange: bool = setting(
        False, "tune the weight of the gap by ν (published readme: off for MuJoCo)", group="ablation"
    )
    entropy_backup: bool = setting(
        False, "subtract α·log π(a'|s') from the target's value (published code: off)", group="ablation"
    )
    orthogonal_init: bool = setting(
        False, "critics start with orthogonal weights (CORL: on; published code: off)", group="ablation"
    )
    normalise_states: bool = setting(False, "standardise observations over the data set (CORL: on; published: off)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "rewards as recorded (published code)")


class State(NamedTuple):
    soft: SoftActor
    critics: Perceptron  # every array with a leading axis, one entry for each critic
    target_critics: Perceptron
    critic_optimiser: OptimiserState
    log_multiplier: Float[Array, ""]  # log ν
    multiplier_optimiser: OptimiserState
    step: Int[Array, ""]


class Draws(NamedTuple):
    """The random numbers of one update. All but `uniform` are standard normal."""

    here: Float[Array, "batch action"]  # for π(·|s) in the actor's loss
    there: Float[Array, "batch action"]  # for a' in the target
    many_here: Float[Array, "samples batch action"]
    many_there: Float[Array, "samples batch action"]
    uniform: Float[Array, "samples batch action"]  # within ±1


def draw(config: Config, batch: Batch, key: PRNGKeyArray) -> Draws:
    one, dtype = batch.actions.shape, batch.actions.dtype
    many = (config.sampled_actions, *one)
    keys = jax.random.split(key, 5)
    return Draws(
        here=jax.random.normal(keys[0], one, dtype),
        there=jax.random.normal(keys[1], one, dtype),
        many_here=jax.random.normal(keys[2], many, dtype),
        many_there=jax.random.normal(keys[3], many, dtype),
        uniform=jax.random.uniform(keys[4], many, dtype, -1, 1),
    )


def sampled_actions(
    network: Perceptron, batch: Batch, draws: Draws
) -> tuple[Float[Array, "samples batch action"], Float[Array, "samples batch"]]:
    """a_k and log μ(a_k): uniform ones, the policy's at s' and the policy's at s."""
    there, there_log_prob = policy(network, batch.next_observations).sample_and_log_prob(draws.many_there)
    here, here_log_prob = policy(network, batch.observations).sample_and_log_prob(draws.many_here)
    uniform_log_prob = jnp.full(here_log_prob.shape, -batch.actions.shape[-1] * math.log(2), here_log_prob.dtype)
    return (
        jnp.concatenate([draws.uniform, there, here]),
        jnp.concatenate([uniform_log_prob, there_log_prob, here_log_prob]),
    )


def target(config: Config, state: State, batch: Batch, draws: Draws) -> Float[Array, " batch"]:
    """y."""
    next_actions, log_prob = policy(state.soft.network, batch.next_observations).sample_and_log_prob(draws.there)
    next_values = values(state.target_critics, batch.next_observations, next_actions).min(axis=0)
    if config.entropy_backup:
        next_values = next_values - state.soft.temperature * log_prob
    return batch.rewards + config.discount * (1 - batch.terminals) * next_values


def critic_loss(
    critics: Perceptron, config: Config, state: State, batch: Batch, draws: Draws
) -> tuple[Float[Array, ""], Metrics]:
    """Sum of L(Q_i) over the critics."""
    y = jax.lax.stop_gradient(target(config, state, batch, draws))
    actions, log_density = jax.lax.stop_gradient(sampled_actions(state.soft.network, batch, draws))
    # The data's actions and the sampled ones together: one matrix product a layer, and the part of s only once.
    q_all = values_of_many(critics, batch.observations, jnp.concatenate([batch.actions[None], actions]))
    q, sampled = q_all[:, 0], q_all[:, 1:] - log_density[None]
    soft_maximum = config.gap_temperature * jax.nn.logsumexp(sampled / config.gap_temperature, axis=1)
    gaps = config.weight * (soft_maximum - q).mean(axis=1)
    errors = ((q - y[None]) ** 2).mean(axis=1)
    penalties = multiplier(state) * (gaps - config.target_gap) if config.lagrange else gaps
    metrics = {"critic_loss": errors.mean(), "q": q.mean(), "q_target": y.mean(), "weighted_gap": gaps.mean()}
    return (errors + penalties).sum(), metrics


def multiplier(state: State) -> Float[Array, ""]:
    """ν, bounded as in the published code."""
    return jnp.clip(jnp.exp(state.log_multiplier), 0.0, 1e6)


def cloning_first(config: Config, state: State, batch: Batch) -> Callable[..., tuple[Float[Array, ""], Metrics]]:
    """L(π), which clones the data's actions in the first updates."""

    def loss(
        network: Perceptron,
        temperature: Float[Array, ""],
        value: Callable[[Array], Array],
        observations: Float[Array, "batch observation"],
        noise: Float[Array, "batch action"],
    ) -> tuple[Float[Array, ""], Metrics]:
        usual, metrics = actor_loss(network, temperature, value, observations, noise)
        chosen = policy(network, observations)
        cloning = (temperature * chosen.sample_and_log_prob(noise)[1] - chosen.log_prob(batch.actions)).mean()
        loss = jnp.where(state.step < config.cloning_updates, cloning, usual)
        return loss, metrics | {"actor_loss": loss}

    return loss


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """One step of the temperature, the actor, both critics and their targets."""
    draws = draw(config, batch, key)
    soft = tune_temperature(state.soft, batch.observations, draws.here, config.actor_learning_rate)
    state = state._replace(soft=soft)  # the same policy, at its new temperature
    gradients, metrics = jax.grad(critic_loss, has_aux=True)(state.critics, config, state, batch, draws)
    soft, actor_metrics = improve(
        soft,
        soft.temperature,
        lambda actions: values(state.critics, batch.observations, actions).min(axis=0),
        batch.observations,
        draws.here,
        config.actor_learning_rate,
        loss=cloning_first(config, state, batch) if config.cloning_updates else actor_loss,
    )
    if config.lagrange:
        slope = jnp.where(state.log_multiplier < math.log(1e6), multiplier(state), 0.0)
        gradient = -slope * (metrics["weighted_gap"] - config.target_gap)
        log_multiplier, optimiser = adam_step(
            state.log_multiplier, gradient, state.multiplier_optimiser, config.critic_learning_rate
        )
        state = state._replace(log_multiplier=log_multiplier, multiplier_optimiser=optimiser)
        metrics["multiplier"] = multiplier(state)
    critics, optimiser = adam_step(state.critics, gradients, state.critic_optimiser, config.critic_learning_rate)
    state = state._replace(
        soft=soft,
        critics=critics,
        target_critics=move_towards(state.target_critics, critics, config.tau),
        critic_optimiser=optimiser,
        step=state.step + 1,
    )
    return state, metrics | actor_metrics


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    critic_key, actor_key = jax.random.split(key)
    start = orthogonal_start if config.orthogonal_init else rlkit_start
    critics = start(critic_key, (shapes.observation + shapes.action, *config.hidden, 1), members=config.critics)
    log_multiplier = jnp.zeros(())
    return State(
        soft=init_soft_actor(actor_key, shapes, config.hidden),
        critics=critics,
        target_critics=critics,
        critic_optimiser=adam_init(critics),
        log_multiplier=log_multiplier,
        multiplier_optimiser=adam_init(log_multiplier),
        step=jnp.zeros((), jnp.int32),
    )


def value(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """min_i Q_i(s, a), by which the actor moves."""
    return values(state.critics, observations, actions).min(axis=0)


ALGORITHM = Algorithm(
    name="cql",
    title="CQL",
    summary="critics that are low wherever the data is silent, by a soft maximum over sampled actions",
    paper=Paper("Kumar et al.", 2020, "2006.04779"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.soft.network,
    act=act,
    value=value,
    characteristics=("value-penalised", "OOD sampling"),
    bfloat16_on=("amx_bf16", "avx512_bf16"),
    headline=("weighted_gap", "q"),
)
