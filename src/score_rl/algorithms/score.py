r"""SCORE: falSe COrrelation REduction (Deng et al., Algorithm 1).

M critics Q_i, each with its own target network Q'_i and no minimum between them, so that their disagreement

    u(s, a) = std_i Q_i(s, a)

is passed on over time. It is subtracted from every target (equation `eq:q_objective`):

    y_i = r + γ·(1 - terminal)·Q'_i(s', a') - β·u(s, a),    a' = clip(π'(s') + clip(ε, ±c), ±1),  ε ~ N(0, σ²)
    L(Q_i) = E[(Q_i(s, a) - y_i)²]

The penalty uses the online critics at the data's own (s, a), carries no gradient, is not discounted and applies
at terminals too. Every d-th update moves the actor (equation `eq:pi_objective`, with TD3-BC's normaliser) and
then both target networks:

    L(π) = -(α / E|q|)·E[q] + λ·E‖π(s) - a‖²,    q = min_i Q_i(s, π(s))

λ starts at `bc_weight` and is multiplied by γ_bc every d_bc updates: behaviour cloning fades out once the
critics know the data well enough for their disagreement to mean something.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Shapes, config, require, setting
from score_rl.nets.actor_critic import deterministic, smoothed, values
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.spectral import normalise_layer, power_iteration


@config
class Config:
    beta: float = setting(0.2, "β, weight of the uncertainty penalty; the paper's grid is 0.1, 0.2, 0.5")
    bc_decay: float = setting(0.98, "γ_bc, factor on λ every d_bc updates; the paper's grid is 0.96, 0.98, 1.0")
    bc_decay_every: int = setting(10_000, "d_bc, updates between two decays of λ (published code)")
    bc_weight: float = setting(1.0, "λ at the start (paper)")
    alpha: float = setting(2.5, "α, weight of the normalised value in the actor's loss (paper, from TD3-BC)")
    discount: float = setting(0.99, "γ (paper)")
    tau: float = setting(0.005, "share of the online network in each move of the targets (paper)")
    target_noise: float = setting(0.2, "σ, standard deviation of the noise on the target's action (paper)")
    target_noise_clip: float = setting(0.5, "c, bound of that noise (paper)")
    critic_learning_rate: float = setting(3e-4, "Adam's learning rate for the critics (paper)")
    actor_learning_rate: float = setting(3e-4, "Adam's learning rate for the actor (paper)")
    critics: int = setting(5, "M, number of critics (paper)")
    hidden: tuple[int, ...] = setting((256, 256), "widths of the hidden layers of actor and critics (paper)")
    batch_size: int = setting(256, "transitions per update (published code: 100 as run, 256 as default)")
    actor_delay: int = setting(2, "d, updates of the critics per update of the actor and targets (paper)")
    first_actor_step: Literal["zero", "delay"] = setting(
        "zero", "the actor first moves in update 0 (published code) or after d updates (paper)"
    )
    bootstrap_keep: float = setting(
        1.0,
        "probability that a critic sees a row, drawn once per row and critic (published code: 1.0)",
        static=True,
    )
    critic_divisor: Literal["mean", "mask+1"] = setting(
        "mean", "what a critic's summed error is divided by: the rows it sees, or one more (published code)"
    )
    bc_norm: Literal["mean", "sum"] = setting(
        "mean", "behaviour cloning error over action dimensions: mean (published code) or sum (paper)"
    )
    spectral_norm: bool = setting(False, "spectral normalisation of the critics' middle layer (published code: off)")
    normalise_states: bool = setting(True, "standardise observations over the data set (published code)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting(
        "minmax", "scale rewards to [0, 1] over the data set: β's meaning depends on it (published code)"
    )

    def check(self) -> None:
        require(self.critics >= 2, f"critics is {self.critics}; their disagreement needs at least 2.")
        require(self.actor_delay >= 1, f"actor_delay is {self.actor_delay}; it must be 1 or more.")
        require(self.batch_size >= 1, f"batch_size is {self.batch_size}; it must be 1 or more.")
        require(self.bc_decay_every >= 1, f"bc_decay_every is {self.bc_decay_every}; it must be 1 or more.")
        require(0 < self.bootstrap_keep <= 1, f"bootstrap_keep is {self.bootstrap_keep}; it must be in (0, 1].")
        require(0 <= self.discount <= 1, f"discount is {self.discount}; it must be between 0 and 1.")
        require(len(self.hidden) >= 1, "hidden is empty; give at least one width, such as 256,256.")
        require(min(self.hidden) >= 1, f"hidden is {self.hidden}; every width must be 1 or more.")
        require(
            not self.spectral_norm or len(self.hidden) >= 2,
            f"spectral_norm works on the middle layer, and hidden {self.hidden} has none; give two widths or more.",
        )


class State(NamedTuple):
    actor: Perceptron
    critics: Perceptron  # every array with a leading axis of length M
    target_actor: Perceptron
    target_critics: Perceptron
    actor_optimiser: OptimiserState
    critic_optimiser: OptimiserState
    power: Float[Array, "2 members width"]  # singular vectors of the online and target middle layers; else empty
    bootstrap_key: PRNGKeyArray  # fixes which critic sees which row
    step: Int[Array, ""]


def bc_weight(config: Config, step: Int[Array, ""]) -> Float[Array, ""]:
    """λ, the behaviour cloning weight, at an update counted from 0."""
    return config.bc_weight * config.bc_decay ** (step // config.bc_decay_every)


def bootstrap_mask(config: Config, state: State, rows: Int[Array, " batch"]) -> Float[Array, "members batch"]:
    """1 where a critic sees a row. A function of the row alone, so it is the same whenever the row is drawn."""
    keys = jax.vmap(lambda row: jax.random.fold_in(state.bootstrap_key, row))(rows)
    draw = lambda key: jax.random.bernoulli(key, config.bootstrap_keep, (config.critics,))  # noqa: E731
    return jax.vmap(draw, out_axes=1)(keys).astype(state.critics.weights[0].dtype)


def critic_loss(
    critics: Perceptron, config: Config, state: State, batch: Batch, noise: Float[Array, "batch action"]
) -> tuple[Float[Array, ""], Metrics]:
    """Sum over critics of equation `eq:q_objective`; `noise` is standard normal."""
    next_actions = deterministic(state.target_actor, batch.next_observations)
    next_actions = smoothed(next_actions, noise, config.target_noise, config.target_noise_clip)
    target_critics = state.target_critics
    if config.spectral_norm:
        critics = normalise_layer(critics, 1, state.power[0])
        target_critics = normalise_layer(target_critics, 1, state.power[1])
    next_values = values(target_critics, batch.next_observations, next_actions)
    q = values(critics, batch.observations, batch.actions)
    uncertainty = jax.lax.stop_gradient(q.std(axis=0))
    bootstrapped = config.discount * (1 - batch.terminals)[None] * next_values
    targets = jax.lax.stop_gradient(batch.rewards[None] + bootstrapped - config.beta * uncertainty[None])
    errors = (q - targets) ** 2
    if config.bootstrap_keep < 1:
        mask = bootstrap_mask(config, state, batch.rows)
        seen = mask.sum(axis=1)
        errors = mask * errors
    else:
        seen = jnp.full(config.critics, float(batch.rewards.size))
    divisor = seen + 1 if config.critic_divisor == "mask+1" else jnp.maximum(seen, 1)
    losses = errors.sum(axis=1) / divisor
    metrics = {
        "critic_loss": losses.mean(),
        "q": q.mean(),
        "q_target": targets.mean(),
        "uncertainty": uncertainty.mean(),
    }
    return losses.sum(), metrics


def actor_loss(actor: Perceptron, config: Config, state: State, batch: Batch) -> tuple[Float[Array, ""], Metrics]:
    """The negative of equation `eq:pi_objective`, its value term normalised."""
    actions = deterministic(actor, batch.observations)
    critics = normalise_layer(state.critics, 1, state.power[0]) if config.spectral_norm else state.critics
    q = values(critics, batch.observations, actions).min(axis=0)
    scale = config.alpha / jax.lax.stop_gradient(jnp.abs(q).mean())
    distances = (actions - batch.actions) ** 2
    cloning = distances.sum(axis=1).mean() if config.bc_norm == "sum" else distances.mean()
    weight = bc_weight(config, state.step)
    loss = -scale * q.mean() + weight * cloning
    return loss, {"actor_loss": loss, "bc_error": cloning, "bc_weight": weight, "q_policy": q.mean()}


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """One update of every critic; on one turn of d, also one of the actor and the targets."""
    noise = jax.random.normal(key, batch.actions.shape, batch.actions.dtype)
    if config.spectral_norm:
        online, target = state.critics.weights[1], state.target_critics.weights[1]
        moved = [power_iteration(online, state.power[0]), power_iteration(target, state.power[1])]
        state = state._replace(power=jax.lax.stop_gradient(jnp.stack(moved)))
    gradients, metrics = jax.grad(critic_loss, has_aux=True)(state.critics, config, state, batch, noise)
    critics, optimiser = adam_step(state.critics, gradients, state.critic_optimiser, config.critic_learning_rate)
    state = state._replace(critics=critics, critic_optimiser=optimiser)
    if turn == (0 if config.first_actor_step == "zero" else config.actor_delay - 1):
        gradients, actor_metrics = jax.grad(actor_loss, has_aux=True)(state.actor, config, state, batch)
        actor, optimiser = adam_step(state.actor, gradients, state.actor_optimiser, config.actor_learning_rate)
        state = state._replace(
            actor=actor,
            actor_optimiser=optimiser,
            target_actor=move_towards(state.target_actor, actor, config.tau),
            target_critics=move_towards(state.target_critics, state.critics, config.tau),
        )
        metrics |= actor_metrics
    return state._replace(step=state.step + 1), metrics


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    critic_key, actor_key, power_key, bootstrap_key = jax.random.split(key, 4)
    critics = Perceptron.init(
        critic_key, (shapes.observation + shapes.action, *config.hidden, 1), members=config.critics
    )
    actor = Perceptron.init(actor_key, (shapes.observation, *config.hidden, shapes.action))
    power = jnp.zeros((2, config.critics, 0))
    if config.spectral_norm:
        start = jax.random.normal(power_key, (config.critics, config.hidden[1]))
        for _ in range(15):  # as PyTorch does before the first use
            start = power_iteration(critics.weights[1], start)
        power = jnp.stack([start, start])
    return State(
        actor=actor,
        critics=critics,
        target_actor=actor,
        target_critics=critics,
        actor_optimiser=adam_init(actor),
        critic_optimiser=adam_init(critics),
        power=power,
        bootstrap_key=bootstrap_key,
        step=jnp.zeros((), jnp.int32),
    )


def act(
    config: Config,
    actor: Perceptron,
    observations: Float[Array, "batch observation"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "batch action"]:
    """The learned policy is deterministic; `key` is not needed."""
    return deterministic(actor, observations)


def uncertainty(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """u(s, a), in units of the scaled reward."""
    critics = normalise_layer(state.critics, 1, state.power[0]) if config.spectral_norm else state.critics
    return values(critics, observations, actions).std(axis=0)


ALGORITHM = Algorithm(
    name="score",
    title="SCORE",
    summary="ensemble disagreement as a penalty, with behaviour cloning that fades out",
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.actor,
    act=act,
    turns=lambda config: config.actor_delay,
    uncertainty=uncertainty,
    characteristics=("policy-constrained", "value-penalised", "uncertainty-aware"),
    headline=("uncertainty", "q"),
)
