r"""PBRL: pessimistic bootstrapping (Bai et al., 2022), with or without random priors.

SAC's actor (`soft_actor.py`) with K critics, each with its own target network. They disagree by u, their standard
deviation (divided by K - 1, as published). It is subtracted in two places. One is the next value of the data's
transitions. The other are pseudo-targets for actions that the data does not hold, n of the policy at s and n at s':

    y_i       = r + γ·(1 - terminal)·[Q'_i(s', a') - β_in·u'(s', a')],    a' ~ π(·|s'),  u' of the target networks
    ŷ_i(s,â)  = max(Q_i(s, â) - β_ood·u(s, â), 0),        â  ~ π(·|s)
    ŷ_i(s',â) = max(Q_i(s', â) - β_next·u(s', â), 0),     â  ~ π(·|s')
    L(Q_i)    = E[(Q_i(s, a) - y_i)²] + E[(Q_i - ŷ_i)²]    over both kinds of â
    L(π)      = E[α·log π(a|s) - min_i Q_i(s, a)]

Targets and pseudo-targets carry no gradient. β_ood falls linearly over the first updates. After that, the mean of Q at
the policy's actions is recorded every `record_every` updates. β_ood is divided by a factor whenever the last 5 records
are lower on average than the 15 before, as long as it is above a floor.

With random priors (PBRL-prior; Osband et al., 2018) each critic is Q_i + scale·p_i. The p_i are random and fixed. No
gradient passes through them. The target networks have random priors of their own (published code).

The temperature moves first, then the critics, then the actor by the moved critics, then the targets.
"""

import dataclasses
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Paper, Shapes
from score_rl.algorithms.settings import Schedule, config, setting
from score_rl.algorithms.soft_actor import SoftActor, act, improve, init_soft_actor, policy, tune_temperature
from score_rl.nets.actor_critic import values
from score_rl.nets.initialisation import rlkit_start
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron

RECORDS, RECENT = 20, 5  # how many means of Q are kept, and how many of them are the last ones (published code)


@config
class Config:
    beta_in: float = setting(
        0.01, "β_in, weight of u'(s', a') for the data's transitions (published code)", group="paper"
    )
    beta_ood: float = setting(5.0, "β_ood at the start (published code)", group="paper")
    beta_ood_end: float = setting(1.0, "β_ood after its linear fall (published code)", group="paper")
    beta_ood_divisor: float = setting(
        1.01, "divisor of β_ood when Q falls; 1 keeps it (published code)", above=0, group="paper"
    )
    beta_ood_floor: float = setting(0.2, "β_ood is divided only while it is above this (published code)", group="paper")
    beta_next: float = setting(0.1, "β_next, weight of u(s', â) (published code)", group="paper")
    discount: float = setting(0.99, "γ (published code)", maximum=1, group="paper")
    tau: float = setting(0.005, "share of each move of the targets (published code)", above=0, maximum=1, group="paper")
    actor_learning_rate: float = setting(1e-4, "Adam's for actor and temperature (published code)")
    critic_learning_rate: float = setting(3e-4, "Adam's learning rate for the critics (published code)")
    beta_ood_updates: int = setting(
        50_000,
        "updates of that fall (published code)",
        schedule=Schedule("β_ood is still on its way to beta_ood_end"),
        minimum=1,
        group="paper",
    )
    record_every: int = setting(1_000, "updates between two records of Q (published code: one an epoch)", minimum=1)
    ood_actions: int = setting(10, "n, actions of each kind in each state (published code)", minimum=1, group="paper")
    critics: int = setting(10, "K, number of critics (published code)", minimum=2, group="paper")
    hidden: tuple[int, ...] = setting((256, 256, 256), "widths of the hidden layers (published code)", minimum=1)
    prior_scale: float = setting(
        0.0, "scale of the random priors; 0: none (published code: 0 or 1)", static=True, group="paper"
    )
    batch_size: int = setting(256, "transitions per update (published code)", minimum=1)
    normalise_states: bool = setting(False, "standardise observations over the data set (published code: off)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "rewards as recorded (published code)")


@config
class PriorConfig(Config):
    prior_scale: float = setting(1.0, "scale of the random priors (published code)", static=True, group="paper")


class State(NamedTuple):
    soft: SoftActor
    critics: Perceptron  # every array with a leading axis of length K
    target_critics: Perceptron
    priors: Perceptron | None  # of the critics; never trained
    target_priors: Perceptron | None  # of the target networks; never trained
    critic_optimiser: OptimiserState
    beta_ood_factor: Float[Array, ""]  # what the divisions have left of β_ood
    records: Float[Array, " records"]  # the last means of Q, oldest first
    step: Int[Array, ""]


class Draws(NamedTuple):
    """The random numbers of one update, standard normal."""

    here: Float[Array, "batch action"]  # for π(·|s) in the actor's loss
    there: Float[Array, "batch action"]  # for a' in the target
    ood: Float[Array, "samples twice_batch action"]  # for â at s, then at s'


def draw(config: Config, batch: Batch, key: PRNGKeyArray) -> Draws:
    (rows, width), dtype = batch.actions.shape, batch.actions.dtype
    shapes = ((rows, width), (rows, width), (config.ood_actions, 2 * rows, width))
    return Draws(*(jax.random.normal(k, s, dtype) for k, s in zip(jax.random.split(key, 3), shapes, strict=True)))


def values_with_priors(
    config: Config,
    critics: Perceptron,
    priors: Perceptron | None,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, "members batch"]:
    """Q_i(s, a), its prior included."""
    q = values(critics, observations, actions)
    if priors is None:
        return q
    return q + config.prior_scale * jax.lax.stop_gradient(values(priors, observations, actions))


def disagreement(q: Float[Array, "members ..."]) -> Float[Array, "..."]:
    """u."""
    return q.std(axis=0, ddof=1)


def beta_ood(config: Config, state: State) -> Float[Array, ""]:
    """β_ood at this update. The schedule counts updates from 1 (published code)."""
    done = jnp.minimum((state.step + 1).astype(state.records.dtype) / config.beta_ood_updates, 1.0)
    return state.beta_ood_factor * (config.beta_ood + done * (config.beta_ood_end - config.beta_ood))


def critic_loss(
    critics: Perceptron, config: Config, state: State, batch: Batch, draws: Draws
) -> tuple[Float[Array, ""], Metrics]:
    """Sum of L(Q_i) over the critics."""
    stop = jax.lax.stop_gradient
    network, rows = state.soft.network, batch.rewards.size
    next_actions = policy(network, batch.next_observations).sample(draws.there)
    targets = (state.target_critics, state.target_priors)
    next_q = values_with_priors(config, *targets, batch.next_observations, next_actions)
    pessimistic = next_q - config.beta_in * disagreement(next_q)[None]
    y = stop(batch.rewards[None] + config.discount * (1 - batch.terminals)[None] * pessimistic)

    # One pass of the critics for everything: first (s, a), then n actions in every s and every s'.
    states = jnp.concatenate([batch.observations, batch.next_observations])
    actions = stop(policy(network, states).sample(draws.ood))
    all_states = jnp.concatenate([batch.observations, jnp.tile(states, (config.ood_actions, 1))])
    all_actions = jnp.concatenate([batch.actions, actions.reshape(-1, actions.shape[-1])])
    all_q = values_with_priors(config, critics, state.priors, all_states, all_actions)
    q, q_ood = all_q[:, :rows], all_q[:, rows:].reshape(-1, *actions.shape[:2])
    losses = ((q - y) ** 2).mean(axis=1)
    beta = beta_ood(config, state)
    betas = jnp.concatenate([jnp.full(rows, beta), jnp.full(rows, config.beta_next)]).astype(q.dtype)
    u_ood = disagreement(q_ood)
    y_ood = stop(jnp.maximum(q_ood - (betas[None] * u_ood)[None], 0.0))
    ood_losses = ((q_ood - y_ood) ** 2).mean(axis=(1, 2))
    metrics = {
        "critic_loss": losses.mean(),
        "ood_loss": ood_losses.mean(),
        "q": q.mean(),
        "q_target": y.mean(),
        "q_ood": q_ood[:, :, :rows].mean(),
        "uncertainty": disagreement(q).mean(),
        "uncertainty_ood": u_ood[:, :rows].mean(),
        "beta_ood": beta,
    }
    return (losses + ood_losses).sum(), metrics


def remember(config: Config, state: State, q_ood: Float[Array, ""]) -> State:
    """Every `record_every` updates: lower β_ood if the records say that Q falls, then record Q."""
    due = state.step % config.record_every == 0
    enough = (state.step + 1 > config.beta_ood_updates) & (state.step // config.record_every >= RECORDS)
    falls = state.records[-RECENT:].mean() < state.records[:-RECENT].mean()
    lower = due & enough & falls & (beta_ood(config, state) > config.beta_ood_floor)
    moved = jnp.concatenate([state.records[1:], q_ood[None]])
    return state._replace(
        beta_ood_factor=jnp.where(lower, state.beta_ood_factor / config.beta_ood_divisor, state.beta_ood_factor),
        records=jnp.where(due, moved, state.records),
    )


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """One step of the temperature, every critic, the actor and the targets."""
    draws = draw(config, batch, key)
    soft = tune_temperature(state.soft, batch.observations, draws.here, config.actor_learning_rate)
    gradients, metrics = jax.grad(critic_loss, has_aux=True)(state.critics, config, state, batch, draws)
    critics, optimiser = adam_step(state.critics, gradients, state.critic_optimiser, config.critic_learning_rate)
    soft, actor_metrics = improve(
        soft,
        soft.temperature,
        lambda actions: values_with_priors(config, critics, state.priors, batch.observations, actions).min(axis=0),
        batch.observations,
        draws.here,
        config.actor_learning_rate,
    )
    state = remember(config, state, metrics["q_ood"])._replace(
        soft=soft,
        critics=critics,
        target_critics=move_towards(state.target_critics, critics, config.tau),
        critic_optimiser=optimiser,
        step=state.step + 1,
    )
    return state, metrics | actor_metrics


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    actor_key, *keys = jax.random.split(key, 4)
    sizes = (shapes.observation + shapes.action, *config.hidden, 1)
    critics, *priors = (rlkit_start(k, sizes, members=config.critics) for k in keys)
    return State(
        soft=init_soft_actor(actor_key, shapes, config.hidden),
        critics=critics,
        target_critics=critics,
        priors=priors[0] if config.prior_scale > 0 else None,
        target_priors=priors[1] if config.prior_scale > 0 else None,
        critic_optimiser=adam_init(critics),
        beta_ood_factor=jnp.ones(()),
        records=jnp.zeros(RECORDS),
        step=jnp.zeros((), jnp.int32),
    )


def uncertainty(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """u(s, a), in units of the reward."""
    return disagreement(values_with_priors(config, state.critics, state.priors, observations, actions))


def value(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """min_i Q_i(s, a) with the priors, by which the actor moves."""
    return values_with_priors(config, state.critics, state.priors, observations, actions).min(axis=0)


ALGORITHM = Algorithm(
    name="pbrl",
    title="PBRL",
    summary="ensemble disagreement as a penalty on the data's targets and on sampled actions'",
    paper=Paper("Bai et al.", 2022, "2202.11566"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.soft.network,
    act=act,
    value=value,
    uncertainty=uncertainty,
    characteristics=("value-penalised", "uncertainty-aware", "OOD sampling"),
    bfloat16_on=("avx512_bf16",),
    headline=("uncertainty", "q"),
)

WITH_PRIOR = dataclasses.replace(
    ALGORITHM,
    name="pbrl-prior",
    title="PBRL-prior",
    summary="PBRL with a fixed random prior beside every critic",
    Config=PriorConfig,
)
