r"""SCORE: falSe COrrelation REduction (Deng et al.), Algorithm 1 from top to bottom.

M critics Q_i learn side by side, each with its own target network Q'_i. What they disagree about is uncertain:

    u(s, a) = std_i Q_i(s, a)

Every target pays for it (the paper's equation `eq:q_objective`). No minimum is taken over the critics, so that the
disagreement is passed on over time. The penalty carries no gradient, is not discounted and applies at terminals too:

    y_i    = r + γ·(1 - terminal)·Q'_i(s', a') - β·u(s, a),    a' = clip(π'(s') + clip(ε, ±c), ±1),  ε ~ N(0, σ²)
    L(Q_i) = E[(Q_i(s, a) - y_i)²]

Every d-th update moves the actor (the paper's equation `eq:pi_objective`, with TD3-BC's normaliser α / E|q|), and then
all target networks by a share τ:

    L(π) = -(α / E|q|)·E[q] + λ·E[mean_k (π(s)_k - a_k)²],    q = min_i Q_i(s, π(s))

λ starts at `bc_weight` and is multiplied by γ_bc every d_bc updates: cloning fades out once the critics know the data.
The squared error is the mean over the action's dimensions k, as in the authors' code. The paper's equation has the sum,
which makes the same λ 3 (hopper) to 6 (halfcheetah, walker2d) times as strong: `bc_norm` sum.

`score_ablations.py` has the paper's ablations. Each takes the place of functions marked `replaceable`, by their names.
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms import score_ablations as ablations
from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Paper, Shapes
from score_rl.algorithms.score_ablations import replaceable
from score_rl.algorithms.score_constraints import policy
from score_rl.algorithms.settings import Schedule, config, setting
from score_rl.nets.actor_critic import deterministic, smoothed, values
from score_rl.nets.layer_norm import Critics, make_critics
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron


@config
class Config(ablations.Settings):
    # These eight are the paper's table of hyperparameters.
    beta: float = setting(0.2, "β, weight of the penalty; the paper's grid: 0.1, 0.2, 0.5", group="paper")
    bc_decay: float = setting(0.98, "γ_bc, factor on λ; the paper's grid: 0.96, 0.98, 1.0", group="paper")
    bc_decay_every: int = setting(
        10_000, "d_bc, updates per decay of λ (paper)", minimum=1, group="paper", schedule=Schedule("λ never falls")
    )
    critics: int = setting(5, "M, number of critics (paper)", minimum=2, group="paper")
    actor_delay: int = setting(2, "d, updates per move of actor and targets (paper)", minimum=1, group="paper")
    tau: float = setting(0.005, "τ, share of a target's move (paper)", above=0, maximum=1, group="paper")
    target_noise: float = setting(0.2, "σ, deviation of the noise on a' (paper)", group="paper")
    target_noise_clip: float = setting(0.5, "c, bound of that noise (paper)", group="paper")
    # The rest.
    alpha: float = setting(2.5, "α, weight of the normalised value in L(π) (paper, from TD3-BC)")
    bc_weight: float = setting(1.0, "λ at the start (published code; the paper gives no value)")
    discount: float = setting(0.99, "γ (published code; the paper gives no value)", maximum=1)
    critic_learning_rate: float = setting(3e-4, "Adam's learning rate for the critics (paper)")
    actor_learning_rate: float = setting(3e-4, "Adam's learning rate for the actor (paper)")
    hidden: tuple[int, ...] = setting((256, 256), "widths of the hidden layers of actor and critics (paper)", minimum=1)
    critic_norm: bool = setting(False, "layer normalisation in the critics (published code: no; usual on OGBench)")
    batch_size: int = setting(256, "transitions per update (published code's default; its runs: 100)", minimum=1)
    normalise_states: bool = setting(True, "standardise observations over the data set (published code)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting(
        "minmax", "scale rewards to [0, 1] over the data set; β's meaning depends on it (published code)"
    )


class State(NamedTuple):
    actor: Perceptron
    critics: Critics  # every array with a leading axis of length M
    target_actor: Perceptron
    target_critics: Critics
    actor_optimiser: OptimiserState
    critic_optimiser: OptimiserState
    power: Any  # of the ablation `spectral_norm`
    bootstrap_key: PRNGKeyArray  # of the ablation `bootstrap_keep`
    step: Int[Array, ""]
    behaviour: Any = None  # of the ablations `constraint` fix and mmd


class Noise(NamedTuple):
    """The random numbers of an update."""

    actions: Any  # standard normal, for a'; the ablations `constraint` fix and mmd have their own
    dropout: Any = None  # of the ablation `uncertainty` dropout


@replaceable
def draw(config: Config, state: State, batch: Batch, key: PRNGKeyArray) -> Noise:
    return Noise(jax.random.normal(key, batch.actions.shape, batch.actions.dtype))


@replaceable
def next_actions(config: Config, state: State, batch: Batch, noise: Noise) -> Float[Array, "batch action"]:
    """a', one for all critics."""
    actions = deterministic(state.target_actor, batch.next_observations)
    return smoothed(actions, noise.actions, config.target_noise, config.target_noise_clip)


@replaceable
def values_and_uncertainty(config: Config, critics: Critics, batch: Batch, noise: Noise) -> tuple[Array, Array]:
    """Q_i(s, a) of every critic, and u(s, a) without a gradient."""
    q = values(critics, batch.observations, batch.actions)
    return q, jax.lax.stop_gradient(q.std(axis=0))


@replaceable
def target(config: Config, state: State, batch: Batch, noise: Noise, actions: Array, next_q: Array, u: Array) -> Array:
    """y_i = r + γ·(1 - terminal)·Q'_i(s', a') - β·u(s, a)."""
    return batch.rewards[None] + config.discount * (1 - batch.terminals)[None] * next_q - config.beta * u[None]


@replaceable
def mean_errors(config: Config, state: State, batch: Batch, errors: Float[Array, "members batch"]) -> Array:
    """The mean over the batch, for every critic."""
    return errors.mean(axis=1)


@replaceable
def critic_loss(
    config: Config, critics: Critics, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, ""], Metrics]:
    """Equation `eq:q_objective`, summed over the critics."""
    actions = next_actions(config, state, batch, noise)
    next_q = values(state.target_critics, batch.next_observations, actions)
    q, u = values_and_uncertainty(config, critics, batch, noise)
    y = jax.lax.stop_gradient(target(config, state, batch, noise, actions, next_q, u))
    losses = mean_errors(config, state, batch, (q - y) ** 2)
    metrics = {"critic_loss": losses.mean(), "q": q.mean(), "q_target": y.mean(), "uncertainty": u.mean()}
    return losses.sum(), metrics


@replaceable
def constrained_actions(
    config: Config, actor: Perceptron, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, "batch action"], Float[Array, ""] | float, Metrics]:
    """π(s), and the term λ·E[mean_k (π(s)_k - a_k)²] that keeps it near the data."""
    actions = deterministic(actor, batch.observations)
    error = ((actions - batch.actions) ** 2).mean()
    weight = config.bc_weight * config.bc_decay ** (state.step // config.bc_decay_every)  # λ
    return actions, weight * error, {"bc_error": error, "bc_weight": weight}


@replaceable
def actor_loss(
    config: Config, actor: Perceptron, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, ""], Metrics]:
    """The negative of equation `eq:pi_objective`, its value normalised."""
    actions, constraint, metrics = constrained_actions(config, actor, state, batch, noise)
    q = values(state.critics, batch.observations, actions).min(axis=0)
    normaliser = config.alpha / jax.lax.stop_gradient(jnp.abs(q).mean())
    loss = -normaliser * q.mean() + constraint
    return loss, metrics | {"actor_loss": loss, "q_policy": q.mean()}


@replaceable
def learn(config: Config, state: State, batch: Batch, noise: Noise, turn: int) -> tuple[State, Metrics]:
    """One step of every critic and, once in d turns, of the actor and all targets."""
    gradients, metrics = jax.grad(critic_loss, argnums=1, has_aux=True)(config, state.critics, state, batch, noise)
    critics, optimiser = adam_step(state.critics, gradients, state.critic_optimiser, config.critic_learning_rate)
    state = state._replace(critics=critics, critic_optimiser=optimiser)
    if turn == 0:  # as in the published code, which begins with an update of the actor; the paper's first is the d-th
        gradients, news = jax.grad(actor_loss, argnums=1, has_aux=True)(config, state.actor, state, batch, noise)
        actor, optimiser = adam_step(state.actor, gradients, state.actor_optimiser, config.actor_learning_rate)
        state = state._replace(
            actor=actor,
            actor_optimiser=optimiser,
            target_actor=move_towards(state.target_actor, actor, config.tau),
            target_critics=move_towards(state.target_critics, state.critics, config.tau),
        )
        metrics |= news
    return state, metrics


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """One round of Algorithm 1's loop; `turn` counts 0, 1, ..., d - 1, over and over."""
    state, metrics = learn(config, state, batch, draw(config, state, batch, key), turn)
    return state._replace(step=state.step + 1), metrics


@replaceable
def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    critic_key, actor_key, _, bootstrap_key = jax.random.split(key, 4)
    sizes = (shapes.observation + shapes.action, *config.hidden, 1)
    critics = make_critics(critic_key, sizes, config.critics, normalised=config.critic_norm)
    actor = Perceptron.init(actor_key, (shapes.observation, *config.hidden, shapes.action))
    return State(
        actor=actor,
        critics=critics,
        target_actor=actor,
        target_critics=critics,
        actor_optimiser=adam_init(actor),
        critic_optimiser=adam_init(critics),
        power=None,
        bootstrap_key=bootstrap_key,
        step=jnp.zeros((), jnp.int32),
    )


@replaceable
def act(config: Config, actor: Any, observations: Array, key: PRNGKeyArray | None = None) -> Array:
    """π(s). It is deterministic, so `key` is not used."""
    return deterministic(actor, observations)


@replaceable
def uncertainty(config: Config, state: State, observations: Array, actions: Array) -> Float[Array, " batch"]:
    """u(s, a), in units of the scaled reward."""
    return values(state.critics, observations, actions).std(axis=0)


@replaceable
def value(config: Config, state: State, observations: Array, actions: Array) -> Float[Array, " batch"]:
    """min_i Q_i(s, a), by which the actor moves."""
    return values(state.critics, observations, actions).min(axis=0)


ALGORITHM = Algorithm(
    name="score",
    title="SCORE",
    summary="ensemble disagreement as a penalty, with behaviour cloning that fades out",
    paper=Paper("Deng et al.", 2024, "2110.12468"),
    Config=Config,
    init=init,
    update=update,
    policy=policy,
    act=act,
    value=value,
    turns=lambda config: config.actor_delay,
    uncertainty=uncertainty,
    characteristics=("policy-constrained", "value-penalised", "uncertainty-aware"),
    bfloat16_on=("amx_bf16", "avx512_bf16"),
    headline=("uncertainty", "q"),
)
