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

The paper's ablations are settings, each replacing one piece and leaving the others as they are:

    constraint   none: no cloning. fix: a VAE proposes, as in BCQ. mmd: the MMD to a VAE, as in BEAR
                 (`constraints.py` has both)
    uncertainty  dropout: u is the standard deviation over passes with dropout, the mean over critics.
                 min-q: y = r + γ·(1 - terminal)·min_i Q'_i(s', a') for every critic, and no penalty
    penalty      here+next: Q'_i(s', a') - β'·u'(s', a') in place of Q'_i(s', a'), u' of the target critics
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms import constraints
from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Shapes
from score_rl.algorithms.settings import Schedule, config, require, setting
from score_rl.nets.actor_critic import deterministic, smoothed, values
from score_rl.nets.dropout import hidden_of, many_passes, one_pass
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.spectral import normalise_layer, power_iteration


@config
class Config:
    beta: float = setting(0.2, "β, weight of the uncertainty penalty; the paper's grid is 0.1, 0.2, 0.5", group="paper")
    bc_decay: float = setting(
        0.98, "γ_bc, factor on λ every d_bc updates; the paper's grid is 0.96, 0.98, 1.0", group="paper"
    )
    bc_decay_every: int = setting(
        10_000,
        "d_bc, updates between two decays of λ (published code)",
        schedule=Schedule("λ never falls"),
        minimum=1,
        group="paper",
    )
    bc_weight: float = setting(1.0, "λ at the start (paper)")
    alpha: float = setting(2.5, "α, weight of the normalised value in the actor's loss (paper, from TD3-BC)")
    discount: float = setting(0.99, "γ (paper)", maximum=1)
    tau: float = setting(
        0.005, "share of the online network in each move of the targets (paper)", above=0, maximum=1, group="paper"
    )
    target_noise: float = setting(
        0.2, "σ, standard deviation of the noise on the target's action (paper)", group="paper"
    )
    target_noise_clip: float = setting(0.5, "c, bound of that noise (paper)", group="paper")
    critic_learning_rate: float = setting(3e-4, "Adam's learning rate for the critics (paper)")
    actor_learning_rate: float = setting(3e-4, "Adam's learning rate for the actor (paper)")
    critics: int = setting(5, "M, number of critics (paper)", minimum=2, group="paper")
    hidden: tuple[int, ...] = setting((256, 256), "widths of the hidden layers of actor and critics (paper)", minimum=1)
    batch_size: int = setting(256, "transitions per update (published code: 100 as run, 256 as default)", minimum=1)
    actor_delay: int = setting(
        2, "d, updates of the critics per update of the actor and targets (paper)", minimum=1, group="paper"
    )
    first_actor_step: Literal["zero", "delay"] = setting(
        "zero", "the actor first moves in update 0 (published code) or after d updates (paper)", group="ablation"
    )
    bootstrap_keep: float = setting(
        1.0,
        "probability that a critic sees a row, drawn once per row and critic (published code: 1.0)",
        static=True,
        above=0,
        maximum=1,
        group="ablation",
    )
    critic_divisor: Literal["mean", "mask+1"] = setting(
        "mean",
        "what a critic's summed error is divided by: the rows it sees, or one more (published code)",
        group="ablation",
    )
    bc_norm: Literal["mean", "sum"] = setting(
        "mean", "behaviour cloning error over action dimensions: mean (published code) or sum (paper)", group="ablation"
    )
    spectral_norm: bool = setting(
        False, "spectral normalisation of the critics' middle layer (published code: off)", group="ablation"
    )
    constraint: Literal["bc", "none", "fix", "mmd"] = setting(
        "bc",
        "what keeps π near the data: behaviour cloning (paper), nothing, BCQ's candidates or BEAR's MMD",
        group="ablation",
    )
    uncertainty: Literal["ensemble", "dropout", "min-q"] = setting(
        "ensemble",
        "where pessimism comes from: the critics' disagreement (paper), MC dropout, or their minimum",
        group="ablation",
    )
    penalty: Literal["here", "here+next"] = setting(
        "here",
        "where u is taken: at (s, a) with weight beta (paper), or also at (s', a') with weight next_beta",
        group="ablation",
    )
    next_beta: float = setting(
        0.0, "β', weight of u(s', a') with penalty here+next; beta 0 leaves it alone", group="ablation"
    )
    dropout: float = setting(
        0.1, "uncertainty dropout: probability that a critic's hidden unit is dropped (UWAC)", below=1, group="ablation"
    )
    dropout_passes: int = setting(
        10, "uncertainty dropout: passes for a standard deviation (UWAC: 100)", minimum=2, group="ablation"
    )
    perturbation: float = setting(0.05, "constraint fix: Φ, the furthest a candidate is moved (BCQ)", group="ablation")
    target_samples: int = setting(
        10, "constraint fix: candidates in each next state (BCQ)", minimum=1, group="ablation"
    )
    acting_samples: int = setting(
        100, "constraints fix and mmd: candidates when acting (BCQ, BEAR)", minimum=1, group="ablation"
    )
    vae_hidden: tuple[int, ...] = setting(
        (750, 750), "constraints fix and mmd: widths of the VAE (BCQ, BEAR)", minimum=1, group="ablation"
    )
    mmd_threshold: float = setting(0.05, "constraint mmd: ε (BEAR)", group="ablation")
    mmd_sigma: float = setting(20.0, "constraint mmd: σ of the kernel (BEAR)", above=0, group="ablation")
    mmd_kernel: Literal["laplacian", "gaussian"] = setting(
        "laplacian", "constraint mmd: kernel (BEAR, hopper)", group="ablation"
    )
    normalise_states: bool = setting(True, "standardise observations over the data set (published code)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting(
        "minmax", "scale rewards to [0, 1] over the data set: β's meaning depends on it (published code)"
    )

    def check(self) -> None:
        require(
            self.penalty == "here+next" or self.next_beta == 0,
            f"next_beta is {self.next_beta} and penalty is 'here', which does not use it; give penalty here+next.",
        )
        require(
            not self.spectral_norm or (self.constraint in ("bc", "none") and self.uncertainty != "dropout"),
            "spectral_norm goes with constraint bc or none and uncertainty ensemble or min-q; leave one of them out.",
        )
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
    power: Float[Array, "2 members width"] | None  # with `spectral_norm`: singular vectors, see `normalised`
    bootstrap_key: PRNGKeyArray  # fixes which critic sees which row
    step: Int[Array, ""]
    behaviour: constraints.Behaviour | None = None  # where the constraint is fix or mmd


class Noise(NamedTuple):
    """The random numbers of an update."""

    actions: Float[Array, "batch action"] | None  # standard normal
    constraint: constraints.Noise | None = None
    dropout: tuple[PRNGKeyArray, PRNGKeyArray, PRNGKeyArray] | None = None  # for u(s, a), u(s', a'), Q(s, a)


def draw_noise(config: Config, state: State, batch: Batch, key: PRNGKeyArray) -> Noise:
    dropout = None
    if config.uncertainty == "dropout":
        here, there, once = jax.random.split(jax.random.fold_in(key, 1), 3)
        dropout = (here, there, once)
    if state.behaviour is not None:
        return Noise(None, constraints.draw_noise(config, state.behaviour, batch, key), dropout)
    return Noise(jax.random.normal(key, batch.actions.shape, batch.actions.dtype), None, dropout)


def bc_weight(config: Config, step: Int[Array, ""]) -> Float[Array, ""]:
    """λ, the behaviour cloning weight, at an update counted from 0."""
    return config.bc_weight * config.bc_decay ** (step // config.bc_decay_every)


def bootstrap_mask(config: Config, state: State, rows: Int[Array, " batch"]) -> Float[Array, "members batch"]:
    """1 where a critic sees a row. A function of the row alone, so it is the same whenever the row is drawn."""
    keys = jax.vmap(lambda row: jax.random.fold_in(state.bootstrap_key, row))(rows)
    draw = lambda key: jax.random.bernoulli(key, config.bootstrap_keep, (config.critics,))  # noqa: E731
    return jax.vmap(draw, out_axes=1)(keys).astype(state.critics.weights[0].dtype)


def spread(
    config: Config,
    critics: Perceptron,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
    key: PRNGKeyArray | None,
) -> Float[Array, " batch"]:
    """u(s, a). Passes with dropout share their masks over the batch: the same for each row, far fewer numbers."""
    if config.uncertainty != "dropout":
        return values(critics, observations, actions).std(axis=0)
    assert key is not None
    hidden = hidden_of(critics, observations, actions[None])
    _, variance = many_passes(critics, hidden, key, config.dropout, "pass", config.dropout_passes)
    return jnp.sqrt(variance).mean(axis=0)


def target_actions(
    config: Config, state: State, target_critics: Perceptron, batch: Batch, noise: Noise
) -> Float[Array, "batch action"]:
    """a', which serves all critics."""
    if state.behaviour is not None and noise.constraint is not None:
        return constraints.next_actions(
            config, state.behaviour, state.target_actor, target_critics, batch, noise.constraint
        )
    assert noise.actions is not None
    next_actions = deterministic(state.target_actor, batch.next_observations)
    return smoothed(next_actions, noise.actions, config.target_noise, config.target_noise_clip)


ONLINE, TARGET = 0, 1  # whose singular vectors


def normalised(critics: Perceptron, state: State, whose: int) -> Perceptron:
    """With `spectral_norm`, the middle layer divided by its largest singular value as it is known by now."""
    return critics if state.power is None else normalise_layer(critics, 1, state.power[whose])


def critic_loss(
    critics: Perceptron, config: Config, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, ""], Metrics]:
    """Sum over critics of equation `eq:q_objective`."""
    critics, target_critics = normalised(critics, state, ONLINE), normalised(state.target_critics, state, TARGET)
    next_actions = target_actions(config, state, target_critics, batch, noise)
    next_values = values(target_critics, batch.next_observations, next_actions)
    there = None
    if noise.dropout is not None:
        here, there, once = noise.dropout
        q = one_pass(critics, hidden_of(critics, batch.observations, batch.actions[None]), once, config.dropout, "row")
        frozen = jax.lax.stop_gradient(critics)
        uncertainty = spread(config, frozen, batch.observations, batch.actions, here)
    else:
        q = values(critics, batch.observations, batch.actions)
        uncertainty = jax.lax.stop_gradient(q.std(axis=0))
    beta = config.beta
    if config.uncertainty == "min-q":
        next_values, beta = next_values.min(axis=0, keepdims=True), 0.0
    elif config.penalty == "here+next":
        next_uncertainty = spread(config, target_critics, batch.next_observations, next_actions, there)
        next_values = next_values - config.next_beta * next_uncertainty[None]
    bootstrapped = config.discount * (1 - batch.terminals)[None] * next_values
    targets = jax.lax.stop_gradient(batch.rewards[None] + bootstrapped - beta * uncertainty[None])
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


def constrained(
    actor: Perceptron, config: Config, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, "batch action"], Float[Array, ""] | float, Metrics]:
    """π(s), and the term that keeps it near the data."""
    if state.behaviour is not None and noise.constraint is not None:
        return constraints.actions_and_term(config, state.behaviour, actor, batch, noise.constraint)
    actions = deterministic(actor, batch.observations)
    if config.constraint == "none":
        return actions, 0.0, {}
    distances = (actions - batch.actions) ** 2
    cloning = distances.sum(axis=1).mean() if config.bc_norm == "sum" else distances.mean()
    weight = bc_weight(config, state.step)
    return actions, weight * cloning, {"bc_error": cloning, "bc_weight": weight}


def actor_loss(
    actor: Perceptron, config: Config, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, ""], Metrics]:
    """The negative of equation `eq:pi_objective`, its value term normalised."""
    actions, constraint, metrics = constrained(actor, config, state, batch, noise)
    critics = normalised(state.critics, state, ONLINE)
    q = values(critics, batch.observations, actions).min(axis=0)
    scale = config.alpha / jax.lax.stop_gradient(jnp.abs(q).mean())
    loss = -scale * q.mean() + constraint
    return loss, metrics | {"actor_loss": loss, "q_policy": q.mean()}


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """One update of every critic; on one turn of d, also one of the actor and the targets."""
    noise = draw_noise(config, state, batch, key)
    learnt: Metrics = {}
    if state.behaviour is not None and noise.constraint is not None:
        known, learnt = constraints.learn(state.behaviour, batch, noise.constraint)
        state = state._replace(behaviour=known)
    if state.power is not None:
        online, target = state.critics.weights[1], state.target_critics.weights[1]
        moved = [power_iteration(online, state.power[ONLINE]), power_iteration(target, state.power[TARGET])]
        state = state._replace(power=jax.lax.stop_gradient(jnp.stack(moved)))
    gradients, metrics = jax.grad(critic_loss, has_aux=True)(state.critics, config, state, batch, noise)
    metrics |= learnt
    critics, optimiser = adam_step(state.critics, gradients, state.critic_optimiser, config.critic_learning_rate)
    state = state._replace(critics=critics, critic_optimiser=optimiser)
    if turn == (0 if config.first_actor_step == "zero" else config.actor_delay - 1):
        gradients, actor_metrics = jax.grad(actor_loss, has_aux=True)(state.actor, config, state, batch, noise)
        actor, optimiser = adam_step(state.actor, gradients, state.actor_optimiser, config.actor_learning_rate)
        state = state._replace(
            actor=actor,
            actor_optimiser=optimiser,
            target_actor=move_towards(state.target_actor, actor, config.tau),
            target_critics=move_towards(state.target_critics, state.critics, config.tau),
        )
        if state.behaviour is not None and "mmd" in actor_metrics:
            state = state._replace(behaviour=constraints.tighten(config, state.behaviour, actor_metrics["mmd"]))
        metrics |= actor_metrics
    return state._replace(step=state.step + 1), metrics


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    critic_key, actor_key, power_key, bootstrap_key = jax.random.split(key, 4)
    critics = Perceptron.init(
        critic_key, (shapes.observation + shapes.action, *config.hidden, 1), members=config.critics
    )
    modelled = config.constraint in ("fix", "mmd")
    plain = (shapes.observation, *config.hidden, shapes.action)
    actor = Perceptron.init(actor_key, constraints.actor_sizes(config, shapes) if modelled else plain)
    power = None
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
        behaviour=constraints.init(config, shapes, jax.random.fold_in(key, 4)) if modelled else None,
    )


def policy(state: State) -> Perceptron | constraints.Policy:
    if state.behaviour is None:
        return state.actor
    return constraints.Policy(state.actor, state.critics, state.behaviour.vae)


def act(
    config: Config,
    policy: Perceptron | constraints.Policy,
    observations: Float[Array, "batch observation"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "batch action"]:
    """The learned policy is deterministic; `key` is needed by the constraints that choose among many."""
    if isinstance(policy, constraints.Policy):
        return constraints.act(config, policy, observations, key)
    return deterministic(policy, observations)


def uncertainty(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """u(s, a), in units of the scaled reward; with dropout, of the same passes for every row."""
    critics = normalised(state.critics, state, ONLINE)
    return spread(config, critics, observations, actions, jax.random.key(0))


ALGORITHM = Algorithm(
    name="score",
    title="SCORE",
    summary="ensemble disagreement as a penalty, with behaviour cloning that fades out",
    Config=Config,
    init=init,
    update=update,
    policy=policy,
    act=act,
    turns=lambda config: config.actor_delay,
    uncertainty=uncertainty,
    characteristics=("policy-constrained", "value-penalised", "uncertainty-aware"),
    bfloat16_on=("amx_bf16", "avx512_bf16"),
    headline=("uncertainty", "q"),
)
