"""SCORE's constraints `fix` and `mmd`: the paper's alternatives to cloning, which model the data's behaviour first.

fix: a VAE of the data proposes actions, as in BCQ. π moves a proposal by at most Φ. a' and the action taken are the
best of many such candidates by min_i Q_i. The actor's loss has no other term.

mmd: π is a squashed Gaussian, as in BEAR. a' is drawn from it, the actor's loss has α·(MMD(s) - ε) in place of cloning,
and the action taken is the best of many samples by min_i Q_i.

All else stays SCORE's: each critic's own target, the penalty, the normalised value in the actor's loss, no soft
clipping. `FIX` and `MMD` say which functions of `score.py` are replaced (see `score_ablations.py`).
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from score_rl.algorithms.algorithm import Batch, Metrics, Shapes
from score_rl.algorithms.behaviour import acting_noise, action_and_mmd, ascend, candidates, distribution, fit
from score_rl.algorithms.settings import setting
from score_rl.nets.actor_critic import best_of, values_of_many
from score_rl.nets.noise import standard_normal
from score_rl.nets.optimiser import OptimiserState, adam_init
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.vae import ActionVAE

KL_WEIGHT, VAE_LEARNING_RATE, LATENT_PER_ACTION = 0.5, 1e-3, 2  # BCQ's published code
MULTIPLIER_LEARNING_RATE, MMD_SAMPLES = 1e-3, 4  # BEAR's published code
Replaced = Callable[..., Any]  # the function of `score.py` that a replacement takes the place of
State = Any  # SCORE's
Noise = Any  # SCORE's


@dataclasses.dataclass(frozen=True)
class Settings:
    perturbation: float = setting(
        0.05,
        "constraint fix: Φ, the furthest a candidate is moved (BCQ)",
        group="ablation",
        only_with=("constraint", ("fix",)),
    )
    target_samples: int = setting(
        10,
        "constraint fix: candidates in each next state (BCQ)",
        minimum=1,
        group="ablation",
        only_with=("constraint", ("fix",)),
    )
    acting_samples: int = setting(
        100,
        "constraints fix and mmd: candidates when acting (BCQ, BEAR)",
        minimum=1,
        group="ablation",
        only_with=("constraint", ("fix", "mmd")),
    )
    vae_hidden: tuple[int, ...] = setting(
        (750, 750),
        "constraints fix and mmd: widths of the VAE (BCQ, BEAR)",
        minimum=1,
        group="ablation",
        only_with=("constraint", ("fix", "mmd")),
    )
    mmd_threshold: float = setting(
        0.05, "constraint mmd: ε (BEAR)", group="ablation", only_with=("constraint", ("mmd",))
    )
    mmd_sigma: float = setting(
        20.0, "constraint mmd: σ of the kernel (BEAR)", above=0, group="ablation", only_with=("constraint", ("mmd",))
    )
    mmd_kernel: Literal["laplacian", "gaussian"] = setting(
        "laplacian", "constraint mmd: kernel (BEAR, hopper)", group="ablation", only_with=("constraint", ("mmd",))
    )


class Behaviour(NamedTuple):
    """The data's policy as it is known so far, and the multiplier of the distance to it."""

    vae: ActionVAE
    optimiser: OptimiserState
    log_multiplier: Float[Array, ""]  # stays 0 with fix
    multiplier_optimiser: OptimiserState


class Numbers(NamedTuple):
    """All standard normal numbers of an update."""

    vae: Float[Array, "batch latent"]
    next_actions: Float[Array, "*any"]  # fix: latents of candidates; mmd: one for each action
    actions: Float[Array, "*any"]  # fix: the latent of one candidate; mmd: of n actions
    proposals: Float[Array, "n batch latent"]  # none with fix


class Policy(NamedTuple):
    """What acting by the best of many needs."""

    actor: Perceptron
    critics: Perceptron
    vae: ActionVAE


# -- both --------------------------------------------------------------------------------------------------------------


def modelled_draw(replaced: Replaced, config: Any, state: State, batch: Batch, key: PRNGKeyArray) -> Noise:
    (size, action), latent = batch.actions.shape, state.behaviour.vae.latent
    shapes: tuple[tuple[int, ...], ...]
    if config.constraint == "fix":
        shapes = ((size, latent), (config.target_samples, size, latent), (1, size, latent), (0, size, latent))
    else:
        shapes = ((size, latent), (size, action), (MMD_SAMPLES, size, action), (MMD_SAMPLES, size, latent))
    numbers = Numbers(*standard_normal(key, shapes, batch.actions.dtype))
    return replaced(config, state, batch, key)._replace(actions=numbers)


def modelled_init(replaced: Replaced, config: Any, shapes: Shapes, key: PRNGKeyArray) -> State:
    """fix: the actor sees the proposal that it moves. mmd: it has a mean and a deviation for every action."""
    state = replaced(config, shapes, key)
    seen = shapes.observation + (shapes.action if config.constraint == "fix" else 0)
    said = shapes.action * (1 if config.constraint == "fix" else 2)
    _, actor_key, _, _ = jax.random.split(key, 4)
    actor = Perceptron.init(actor_key, (seen, *config.hidden, said))
    latent = LATENT_PER_ACTION * shapes.action
    vae_key = jax.random.fold_in(key, 4)
    vae = ActionVAE.init(vae_key, shapes.observation, shapes.action, latent, config.vae_hidden)
    multiplier = jnp.zeros(())
    behaviour = Behaviour(vae, adam_init(vae), multiplier, adam_init(multiplier))
    return state._replace(actor=actor, target_actor=actor, actor_optimiser=adam_init(actor), behaviour=behaviour)


def modelled_learn(
    replaced: Replaced, config: Any, state: State, batch: Batch, noise: Noise, turn: int
) -> tuple[State, Metrics]:
    """The VAE moves first; with mmd the multiplier moves last, whenever the actor has moved."""
    vae, optimiser, learnt = fit(
        state.behaviour.vae,
        state.behaviour.optimiser,
        batch.observations,
        batch.actions,
        noise.actions.vae,
        KL_WEIGHT,
        VAE_LEARNING_RATE,
    )
    state = state._replace(behaviour=state.behaviour._replace(vae=vae, optimiser=optimiser))
    state, metrics = replaced(config, state, batch, noise, turn)
    if "mmd" in metrics:
        state = state._replace(behaviour=tightened(config, state.behaviour, metrics["mmd"]))
    return state, metrics | learnt


def tightened(config: Settings, behaviour: Behaviour, distance: Float[Array, ""]) -> Behaviour:
    """One step of the multiplier that holds the MMD below its threshold."""
    multiplier, optimiser = ascend(
        behaviour.log_multiplier,
        behaviour.multiplier_optimiser,
        distance,
        config.mmd_threshold,
        MULTIPLIER_LEARNING_RATE,
    )
    return behaviour._replace(log_multiplier=multiplier, multiplier_optimiser=optimiser)


def policy(state: State) -> Perceptron | Policy:
    """What acting needs: the actor alone, unless it is by the best of many."""
    if state.behaviour is None:
        return state.actor
    return Policy(state.actor, state.critics, state.behaviour.vae)


# -- fix ---------------------------------------------------------------------------------------------------------------


def best_next_actions(
    replaced: Replaced, config: Any, state: State, batch: Batch, noise: Noise
) -> Float[Array, "batch action"]:
    """a', the best of the candidates by the target networks."""
    actions = candidates(
        state.behaviour.vae,
        state.target_actor,
        batch.next_observations,
        noise.actions.next_actions,
        config.perturbation,
    )
    return best_of(actions, values_of_many(state.target_critics, batch.next_observations, actions).min(axis=0))


def moved_proposals(
    replaced: Replaced, config: Any, actor: Perceptron, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, "batch action"], float, Metrics]:
    """π can only move what the VAE proposes, so the loss has no other term."""
    actions = candidates(state.behaviour.vae, actor, batch.observations, noise.actions.actions, config.perturbation)
    return actions[0], 0.0, {}


def act_by_best_candidate(
    replaced: Replaced, config: Settings, policy: Policy, observations: Array, key: PRNGKeyArray | None = None
) -> Float[Array, "batch action"]:
    """Without a key every state gets the same noise."""
    noise = acting_noise(key, config.acting_samples, observations.shape[0], policy.vae.latent, observations.dtype)
    actions = candidates(policy.vae, policy.actor, observations, noise, config.perturbation)
    return best_of(actions, values_of_many(policy.critics, observations, actions).min(axis=0))


FIX: dict[str, Replaced] = {
    "init": modelled_init,
    "draw": modelled_draw,
    "learn": modelled_learn,
    "next_actions": best_next_actions,
    "constrained_actions": moved_proposals,
    "act": act_by_best_candidate,
}

# -- mmd ---------------------------------------------------------------------------------------------------------------


def sampled_next_actions(
    replaced: Replaced, config: Any, state: State, batch: Batch, noise: Noise
) -> Float[Array, "batch action"]:
    """a', drawn from the target actor."""
    return distribution(state.target_actor, batch.next_observations).sample(noise.actions.next_actions)


def actions_near_the_data(
    replaced: Replaced, config: Any, actor: Perceptron, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, "batch action"], Float[Array, ""], Metrics]:
    """An action of π(s), and α·(MMD(s) - ε)."""
    vae = state.behaviour.vae
    actions, distance = action_and_mmd(
        vae,
        actor,
        batch.observations,
        noise.actions.actions,
        noise.actions.proposals,
        config.mmd_kernel,
        config.mmd_sigma,
    )
    multiplier = jnp.exp(state.behaviour.log_multiplier)
    term = multiplier * (distance - config.mmd_threshold).mean()
    return actions, term, {"mmd": distance.mean(), "multiplier": multiplier}


def act_by_best_sample(
    replaced: Replaced, config: Settings, policy: Policy, observations: Array, key: PRNGKeyArray | None = None
) -> Float[Array, "batch action"]:
    """Without a key every state gets the same noise."""
    gaussian = distribution(policy.actor, observations)
    rows, width = gaussian.mean.shape
    actions = gaussian.sample(acting_noise(key, config.acting_samples, rows, width, observations.dtype))
    return best_of(actions, values_of_many(policy.critics, observations, actions).min(axis=0))


MMD: dict[str, Replaced] = {
    "init": modelled_init,
    "draw": modelled_draw,
    "learn": modelled_learn,
    "next_actions": sampled_next_actions,
    "constrained_actions": actions_near_the_data,
    "act": act_by_best_sample,
}
