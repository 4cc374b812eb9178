r"""UWAC: uncertainty-weighted actor-critic (Wu et al., 2021).

BEAR with dropout and spectral normalisation in every layer of the critics. `bear.py` has the policy, its constraint and
the order of the steps. A critic's variance over many passes with dropout says how uncertain it is. What is uncertain
counts less:

    w(v) = clip(exp(-β·v), 0, 1)
    y = r + γ·(1 - terminal)·max_j [λ·min_i Q̄'_i(s', a'_j) + (1 - λ)·max_i Q̄'_i(s', a'_j)],    a'_j ~ π(s')
    L(Q_i) = E[(w(v')·(Q_i(s, a) - y))²],    v' = max_j [Var Q'_1(s', a'_j) + Var Q'_2(s', a'_j)]
    L(π) = E[-w(v)·min_i Q̄_i(s, a_1) + α·(MMD(s) - ε)],    v = Var Q_1(s, a_1) + Var Q_2(s, a_1)

Q̄ and Var are over the passes, Q_i(s, a) is a single pass. No gradient goes through a weight. In L(Q) the weight stands
inside the square, as in the published code. The paper's weight, β/v, stands outside.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from score_rl.algorithms import bear
from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Paper, Shapes
from score_rl.algorithms.behaviour import distribution
from score_rl.algorithms.settings import config, require, setting
from score_rl.nets.actor_critic import best_of, values, values_of_many
from score_rl.nets.dropout import hidden_of, many_passes, one_pass
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.spectral import normalise_layer, power_iteration

Vectors = tuple[Float[Array, "members _out"], ...]  # one per layer; empty without spectral normalisation


@config
class Config(bear.Config):
    beta: float = setting(0.5, "β, how fast the weight falls with the variance (published code)", group="paper")
    smallest_weight: float = setting(0.0, "bound of the weight from below (published code)")
    largest_weight: float = setting(1.0, "bound of the weight from above (published code)")
    dropout: float = setting(
        0.1, "p, probability that a hidden unit of a critic is dropped (published code)", below=1, group="paper"
    )
    passes: int = setting(100, "passes with dropout for mean and variance (published code)", minimum=2, group="paper")
    dropout_masks: Literal["row", "pass"] = setting(
        "row", "masks of a pass: one for each row (published code), or one for all, which is faster", group="ablation"
    )
    acting_passes: int = setting(
        0, "passes with dropout when acting; 0: act without dropout (published code: 100)", group="ablation"
    )
    spectral_norm: bool = setting(
        True, "spectral normalisation of every layer of the critics (published code)", group="paper"
    )
    mmd_threshold: float = setting(0.07, "ε (published code)", group="paper")
    mmd_kernel: Literal["laplacian", "gaussian"] = setting(
        "gaussian", "kernel (published code, all tasks)", group="paper"
    )

    def check(self) -> None:
        require(
            self.largest_weight >= self.smallest_weight,
            f"largest_weight is {self.largest_weight}; it must be at least smallest_weight, {self.smallest_weight}.",
        )


class State(NamedTuple):
    bear: bear.State
    power: Vectors  # singular vectors of the critics' weights
    target_power: Vectors


class Policy(NamedTuple):
    """What acting needs."""

    actor: Perceptron
    critics: Perceptron
    power: Vectors


class Keys(NamedTuple):
    """Where the dropout of an update comes from."""

    targets: PRNGKeyArray
    critics: PRNGKeyArray
    actor: PRNGKeyArray


def normalised(critics: Perceptron, vectors: Vectors) -> Perceptron:
    """The critics with each layer's weight divided by its largest singular value."""
    for layer, vector in enumerate(vectors):
        critics = normalise_layer(critics, layer, vector)
    return critics


def weight_of(config: Config, variance: Float[Array, " batch"]) -> Float[Array, " batch"]:
    """w(v), without a gradient."""
    weight = jnp.exp(-config.beta * jax.lax.stop_gradient(variance))
    return jnp.clip(weight, config.smallest_weight, config.largest_weight)


def critic_loss(
    critics: Perceptron, config: Config, state: State, batch: Batch, noise: bear.Noise, keys: Keys
) -> tuple[Float[Array, ""], Metrics]:
    """The sum of both critics' weighted errors."""
    target_critics = normalised(state.bear.target_critics, state.target_power)
    next_actions = distribution(state.bear.actor, batch.next_observations).sample(noise.next_actions)
    hidden = hidden_of(target_critics, batch.next_observations, next_actions)
    mean, variance = many_passes(
        target_critics, hidden, keys.targets, config.dropout, config.dropout_masks, config.passes
    )
    shape = next_actions.shape[:2]
    targets = bear.targets_from(config, batch, mean.reshape(2, *shape))
    uncertainty = variance.sum(axis=0).reshape(shape).max(axis=0)
    weight = weight_of(config, uncertainty)
    critics = normalised(critics, state.power)
    hidden = hidden_of(critics, batch.observations, batch.actions[None])
    q = one_pass(critics, hidden, keys.critics, config.dropout, config.dropout_masks)
    losses = ((weight[None] * (q - targets[None])) ** 2).mean(axis=1)
    metrics = {
        "critic_loss": losses.mean(),
        "q": q.mean(),
        "q_target": targets.mean(),
        "variance": uncertainty.mean(),
        "weight": weight.mean(),
    }
    return losses.sum(), metrics


def actor_loss(
    actor: Perceptron, config: Config, state: State, batch: Batch, noise: bear.Noise, keys: Keys
) -> tuple[Float[Array, ""], Metrics]:
    actions, distance = bear.actions_and_mmd(actor, config, state.bear, batch, noise)
    critics = normalised(state.bear.critics, state.power)
    hidden = hidden_of(critics, batch.observations, actions[None])
    mean, variance = many_passes(critics, hidden, keys.actor, config.dropout, config.dropout_masks, config.passes)
    weight = weight_of(config, variance.sum(axis=0))
    loss, metrics = bear.lagrangian(config, state.bear, weight * mean.min(axis=0), distance)
    return loss, metrics | {"actor_weight": weight.mean()}


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """BEAR's update with the weighted losses. The singular vectors move after the VAE, before the losses."""
    noise_key, *dropout_keys = jax.random.split(key, 4)
    keys = Keys(*dropout_keys)
    base = state.bear
    noise = bear.draw_noise(config, base, batch, noise_key)
    base, metrics = bear.clone_behaviour(config, base, batch, noise)
    state = State(base, refined(base.critics, state.power), refined(base.target_critics, state.target_power))
    critic_gradients, more = jax.grad(critic_loss, has_aux=True)(base.critics, config, state, batch, noise, keys)
    metrics |= more
    actor_gradients, more = jax.grad(actor_loss, has_aux=True)(base.actor, config, state, batch, noise, keys)
    base = bear.move(config, base, critic_gradients, actor_gradients, more["mmd"])
    return state._replace(bear=base), metrics | more


def refined(critics: Perceptron, vectors: Vectors) -> Vectors:
    """One step of power iteration in each layer."""
    return tuple(power_iteration(critics.weights[layer], vector) for layer, vector in enumerate(vectors))


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    bear_key, power_key = jax.random.split(key)
    base = bear.init(config, shapes, bear_key)
    vectors: Vectors = ()
    if config.spectral_norm:
        keys = jax.random.split(power_key, len(base.critics.weights))
        vectors = tuple(jax.random.normal(k, b.shape) for k, b in zip(keys, base.critics.biases, strict=True))
        for _ in range(15):  # so that the first updates already divide by the largest singular value
            vectors = refined(base.critics, vectors)
    return State(base, vectors, vectors)


def act(
    config: Config,
    policy: Policy,
    observations: Float[Array, "batch observation"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "batch action"]:
    """The best of many samples of the policy, by the first critic."""
    actions = bear.sampled_actions(config, policy.actor, observations, key)
    first = jax.tree.map(lambda leaf: leaf[:1], normalised(policy.critics, policy.power))
    if config.acting_passes == 0:
        return best_of(actions, values_of_many(first, observations, actions)[0])
    masks: Literal["row", "pass"] = "pass" if key is None else config.dropout_masks
    dropout_key = jax.random.fold_in(jax.random.key(0) if key is None else key, 1)
    hidden = hidden_of(first, observations, actions)
    mean, _ = many_passes(first, hidden, dropout_key, config.dropout, masks, config.acting_passes)
    return best_of(actions, mean.reshape(actions.shape[:2]))


def uncertainty(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """√(Var Q_1 + Var Q_2) over passes with dropout, the same for every row, in units of the reward."""
    critics = normalised(state.bear.critics, state.power)
    hidden = hidden_of(critics, observations, actions[None])
    _, variance = many_passes(critics, hidden, jax.random.key(0), config.dropout, "pass", config.passes)
    return jnp.sqrt(variance.sum(axis=0))


def value(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """min_i Q_i(s, a) without dropout."""
    return values(normalised(state.bear.critics, state.power), observations, actions).min(axis=0)


ALGORITHM = Algorithm(
    name="uwac",
    title="UWAC",
    summary="BEAR with errors and values weighted by the variance under dropout",
    paper=Paper("Wu et al.", 2021, "2105.08140"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: Policy(state.bear.actor, state.bear.critics, state.power),
    act=act,
    value=value,
    uncertainty=uncertainty,
    characteristics=("policy-constrained", "uncertainty-aware"),
    headline=("weight", "variance"),
)
