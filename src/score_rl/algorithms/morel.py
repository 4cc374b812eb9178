r"""MOReL: model-based offline reinforcement learning (Kidambi et al., 2020).

Two stages come before training (`morel_stages.py`). K networks f_i(s, a) are fitted to s' - s, and small ones to the
reward. Then the policy clones the data's actions. What the networks disagree about is unknown:

    u(s, a) = max_{i,j} ‖f_i(s, a) - f_j(s, a)‖,    unknown where u(s, a) > max over the data of u / pessimism

The policy learns in a pessimistic MDP. There an unknown (s, a) gets the halt reward on top and leads to HALT, an end
that is worth 0. HALT takes effect at once, as in the paper. A rollout also ends by the task's rule.

One update is one iteration of natural policy gradient in that MDP. Every network rolls the Gaussian policy out from the
same starts of recorded episodes. The advantages A come from GAE over a learned baseline and are standardised:

    g = ∇ E[log π(a|s)·A],    (F + damping·1) x = g  by conjugate gradient,    θ ← θ + √(δ/|g·x|)·x

F is the Hessian of the mean KL divergence. Rewards are those of actions within ±1, as in the published reward
functions. Velocities are scaled down before anything sees them, as in the published code. Otherwise u, a distance
between observations, would be one between velocities alone. docs/algorithms.md lists the departures from that code.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Data, Metrics, Paper, Shapes
from score_rl.algorithms.morel_stages import CLONING, DYNAMICS, Learned, ended, init_dynamics, init_policy, scaled
from score_rl.algorithms.settings import config, require, setting
from score_rl.nets.dynamics import ResidualDynamics, Scaler, disagreement
from score_rl.nets.natural_gradient import conjugate_gradient
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.repetition import loop_in_blocks

BASELINE_BATCH = 256  # published code
STATE_BOUND = 100.0  # of predicted observations, against blowing up (published code)


@config
class Config:
    pessimism: float = setting(
        3.0, "divisor of the data's largest disagreement, for the threshold (published code)", above=0, group="paper"
    )
    halt_reward: float = setting(
        0.0, "reward for entering HALT (published code for D4RL: 0)", minimum=None, group="paper"
    )
    task: Literal["none", "halfcheetah", "hopper", "walker2d"] = setting(
        "none", "the task whose rule ends a rollout; presets name it for locomotion data"
    )
    velocity_scale: float = setting(
        0.02, "factor on a task's velocities before they are used (published code for hopper)", static=True, above=0
    )
    step_size: float = setting(0.02, "δ, the length of a step in the metric F (published code)", group="paper")
    discount: float = setting(0.999, "γ (published code)", maximum=1, group="paper")
    gae: float = setting(0.97, "λ of the advantages (published code)", maximum=1, group="paper")
    paths: int = setting(
        50, "starts in an iteration; each network makes a rollout from each (published code)", minimum=1, group="paper"
    )
    horizon: int = setting(700, "steps of a rollout, at most (published code)", minimum=1, group="paper")
    fisher_iterations: int = setting(20, "steps of the conjugate gradient (published code)", minimum=1, group="paper")
    damping: float = setting(1e-3, "added to F's diagonal (published code)", group="paper")
    log_std: float = setting(
        -0.25, "log of the policy's standard deviation at the start (published code)", minimum=None
    )
    least_log_std: float = setting(-1.0, "its lower bound (published code)", minimum=None)
    largest_log_std: float = setting(1.0, "its upper bound (published code)", minimum=None)
    action_bound: float = setting(100.0, "bound of the actions that the model gets (published code; environment: 1)")
    hidden: tuple[int, ...] = setting((64, 64), "hidden widths of the policy (published code)", minimum=1)
    baseline_hidden: tuple[int, ...] = setting((128, 128), "hidden widths of the baseline (published code)", minimum=1)
    baseline_learning_rate: float = setting(1e-3, "Adam's for the baseline (published code)")
    baseline_decay: float = setting(1e-3, "weight decay of the baseline, as part of the gradient (published code)")
    models: int = setting(4, "K, dynamics networks (published code)", minimum=2, group="paper")
    dynamics_hidden: tuple[int, ...] = setting((512, 512), "hidden widths of the dynamics (published code)", minimum=1)
    reward_hidden: tuple[int, ...] = setting(
        (100, 100), "hidden widths of the reward networks (published code)", minimum=1
    )
    dynamics_learning_rate: float = setting(1e-3, "Adam's for the dynamics (published code)")
    dynamics_epochs: int = setting(25, "epochs of fitting them, at most (published code: always all)", minimum=1)
    cloning_epochs: int = setting(5, "epochs of behaviour cloning, at most (published code: always all)", minimum=1)
    cloning_learning_rate: float = setting(1e-3, "Adam's for behaviour cloning (published code)")
    held_out: int = setting(1_000, "rows held out in the stages, at most a fifth (as MOPO)", minimum=1)
    patience: int = setting(5, "epochs without improvement that end a stage (as MOPO)", minimum=1)
    batch_size: int = setting(256, "transitions per update of the stages (published code)", minimum=1)
    normalise_states: bool = setting(False, "off, since the task's rule needs observations as recorded")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "rewards as recorded (published code)")

    def check(self) -> None:
        require(
            self.least_log_std <= self.largest_log_std,
            f"least_log_std is {self.least_log_std}; it must be at most largest_log_std, {self.largest_log_std}.",
        )
        require(
            self.task == "none" or not self.normalise_states,
            f"the rule that ends {self.task} needs observations as recorded; leave normalise_states off.",
        )


class Policy(NamedTuple):
    """N(μ(s), σ²), with one σ for all states."""

    network: Perceptron
    log_std: Float[Array, " action"]


class State(NamedTuple):
    policy: Policy
    baseline: Perceptron
    baseline_optimiser: OptimiserState
    learned: Learned
    starts: Float[Array, "paths observation"]  # where the next iteration's rollouts begin
    step: Int[Array, ""]


# -- the pessimistic MDP -----------------------------------------------------------------------------------------------


class Paths(NamedTuple):
    """Rollouts, time first; `rows` are starts × networks."""

    observations: Float[Array, "time rows observation"]
    actions: Float[Array, "time rows action"]
    rewards: Float[Array, "time rows"]
    valid: Float[Array, "time rows"]  # 1 until the rollout has ended
    ends: Float[Array, "time rows"]  # 1 where it ended, in HALT or by the task's rule


def roll_out(config: Config, state: State, noise: Float[Array, "time rows action"]) -> Paths:
    """`noise` is standard normal."""
    model, members = state.learned.dynamics, config.models

    def step(carry: tuple[Array, Array], noise: Float[Array, "rows action"]) -> tuple[tuple[Array, Array], Paths]:
        s, going = carry
        a = state.policy.network(s, jnp.tanh) + jnp.exp(state.policy.log_std)[None] * noise
        a = jnp.clip(a, -config.action_bound, config.action_bound)
        # Every network predicts every rollout's next state. A rollout takes the one of its own network; all of them
        # together say whether (s, a) is known.
        predicted = model.next_of_all(s, a)
        unknown = disagreement(predicted) > state.learned.largest / config.pessimism
        apart = (members, s.shape[0] // members)
        own = jnp.arange(members)
        s2 = predicted.reshape(members, *apart, -1)[own, own]
        within = jnp.clip(a, -1, 1).reshape(*apart, -1)  # as an environment clips them, and as the data has them
        rewards = model.rewards_of_each(s.reshape(*apart, -1), within, s2).reshape(-1)
        s2 = jnp.clip(s2.reshape(s.shape), -STATE_BOUND, STATE_BOUND)
        over = unknown | ended(config, s2)
        rewards = rewards + config.halt_reward * unknown
        valid, ends = going.astype(s.dtype), (going & over).astype(s.dtype)
        return (s2, going & ~over), Paths(s, a, rewards * valid, valid, ends)

    s = jnp.tile(state.starts, (members, 1))
    _, paths = jax.lax.scan(step, (s, jnp.ones(s.shape[0], bool)), noise)
    return paths


def features(observations: Float[Array, "time rows observation"]) -> Float[Array, "time rows features"]:
    """The baseline's inputs: the observation, and four powers of time."""
    time = jnp.arange(observations.shape[0], dtype=observations.dtype)[:, None, None] / 1000
    powers = jnp.concatenate([time, time**2, time**3, time**4], axis=-1)
    shape = (*observations.shape[:2], 4)
    return jnp.concatenate([jnp.clip(observations, -10, 10) / 10, jnp.broadcast_to(powers, shape)], axis=-1)


def discounted(values: Float[Array, "time rows"], rate: Float[Array, ""] | float) -> Float[Array, "time rows"]:
    """Σ_k rate^k·x_{t+k}."""

    def add(later: Float[Array, " rows"], now: Float[Array, " rows"]) -> tuple[Array, Array]:
        total = now + rate * later
        return total, total

    return jax.lax.scan(add, jnp.zeros_like(values[0]), values, reverse=True)[1]


def advantages_of(
    config: Config, paths: Paths, baseline: Float[Array, "time rows"]
) -> tuple[Float[Array, "time rows"], Float[Array, "time rows"]]:
    """Standardised advantages, and returns. The baseline of the last state stands for what the horizon cuts off."""
    following = jnp.concatenate([baseline[1:], baseline[-1:]]) * (1 - paths.ends)
    surprise = (paths.rewards + config.discount * following - baseline) * paths.valid
    advantages = discounted(surprise, config.discount * config.gae)
    number = paths.valid.sum()
    mean = (advantages * paths.valid).sum() / number
    spread = jnp.sqrt(((advantages - mean) ** 2 * paths.valid).sum() / number)
    return (advantages - mean) / (spread + 1e-6), discounted(paths.rewards, config.discount)


# -- the natural gradient ----------------------------------------------------------------------------------------------


def surrogate(policy: Policy, paths: Paths, advantages: Float[Array, "time rows"]) -> Float[Array, ""]:
    """E[log π(a|s)·A], up to a constant."""
    mean = policy.network(paths.observations, jnp.tanh)
    scores = (paths.actions - mean) * jnp.exp(-policy.log_std)[None, None]
    log_prob = -0.5 * (scores**2).sum(axis=-1) - policy.log_std.sum()
    return (log_prob * advantages * paths.valid).sum() / paths.valid.sum()


def divergence(policy: Policy, old: Policy, paths: Paths) -> Float[Array, ""]:
    """Mean KL divergence between policies."""
    mean, old_mean = (p.network(paths.observations, jnp.tanh) for p in (policy, old))
    variance, old_variance = jnp.exp(2 * policy.log_std), jnp.exp(2 * old.log_std)
    apart = (old_mean - mean) ** 2 + (old_variance - variance)[None, None]
    kl = (apart / (2 * variance + 1e-8)[None, None] + (policy.log_std - old.log_std)[None, None]).sum(axis=-1)
    return (kl * paths.valid).sum() / paths.valid.sum()


def natural_step(
    config: Config, policy: Policy, paths: Paths, advantages: Float[Array, "time rows"]
) -> tuple[Policy, Metrics]:
    flat, unravel = ravel_pytree(policy)
    gradient = jax.grad(lambda p: surrogate(unravel(p), paths, advantages))(flat)
    slope = jax.grad(lambda p: divergence(unravel(p), policy, paths))

    def fisher(vector: Float[Array, " parameters"]) -> Float[Array, " parameters"]:
        return jax.jvp(slope, (flat,), (vector,))[1] + config.damping * vector

    direction = conjugate_gradient(fisher, gradient, gradient, config.fisher_iterations)
    rate = jnp.sqrt(jnp.abs(config.step_size / (gradient @ direction + 1e-10)))
    moved = unravel(flat + rate * direction)
    moved = moved._replace(log_std=jnp.clip(moved.log_std, config.least_log_std, config.largest_log_std))
    return moved, {"kl": divergence(moved, policy, paths), "learning_rate": rate}


def fit_baseline(
    config: Config,
    state: State,
    inputs: Float[Array, "samples features"],
    returns: Float[Array, " samples"],
    valid: Float[Array, " samples"],
    key: PRNGKeyArray,
) -> tuple[Perceptron, OptimiserState]:
    """One step for each batch. They are one fewer than cover the valid samples once (published code)."""
    order = jnp.cumsum(valid.astype(jnp.int32))
    number = order[-1]

    def step(index: Int[Array, ""], carry: tuple[Perceptron, OptimiserState]) -> tuple[Perceptron, OptimiserState]:
        network, optimiser = carry
        drawn = jax.random.randint(jax.random.fold_in(key, index), (BASELINE_BATCH,), 0, number)
        rows = jnp.searchsorted(order, drawn + 1, method="scan_unrolled")
        slopes = jax.grad(lambda n: ((n(inputs[rows])[:, 0] - returns[rows]) ** 2).mean())(network)
        slopes = jax.tree.map(lambda g, p: g + config.baseline_decay * p, slopes, network)
        return adam_step(network, slopes, optimiser, config.baseline_learning_rate)

    batches = jnp.maximum(number // BASELINE_BATCH - 1, 1)
    return loop_in_blocks(batches, step, (state.baseline, state.baseline_optimiser))


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """One iteration: rollouts, a natural gradient step, then the baseline. `batch` is not used."""
    noise_key, baseline_key = jax.random.split(key)
    shape = (config.horizon, config.models * config.paths, state.policy.log_std.shape[0])
    paths = roll_out(config, state, jax.random.normal(noise_key, shape, state.starts.dtype))
    seen = features(paths.observations)
    baseline = state.baseline(seen)[..., 0]
    advantages, returns = advantages_of(config, paths, baseline)
    policy, metrics = natural_step(config, state.policy, paths, advantages)
    network, optimiser = fit_baseline(
        config, state, seen.reshape(-1, seen.shape[-1]), returns.reshape(-1), paths.valid.reshape(-1), baseline_key
    )
    metrics |= {
        "model_return": paths.rewards.sum(axis=0).mean(),
        "model_steps": paths.valid.sum(axis=0).mean(),
        "baseline_error": ((baseline - returns) ** 2 * paths.valid).sum() / paths.valid.sum(),
        "log_std": policy.log_std.mean(),
    }
    state = state._replace(policy=policy, baseline=network, baseline_optimiser=optimiser, step=state.step + 1)
    return state, metrics


def refresh(config: Config, state: State, data: Data, key: PRNGKeyArray) -> tuple[State, Metrics]:
    """New starts, drawn from those of recorded episodes."""
    return state._replace(starts=scaled(config, data.sample_starts(key, config.paths))), {}


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    policy_key, baseline_key, dynamics_key = jax.random.split(key, 3)
    network = jax.tree.map(lambda leaf: leaf[0], init_policy(config, shapes, policy_key)[0])
    baseline = Perceptron.init(baseline_key, (shapes.observation + 4, *config.baseline_hidden, 1))
    networks, _ = init_dynamics(config, shapes, dynamics_key)
    units = [Scaler.identity(n) for n in (shapes.observation + shapes.action, shapes.observation, 1)]
    return State(
        policy=Policy(network, jnp.full(shapes.action, config.log_std)),
        baseline=baseline,
        baseline_optimiser=adam_init(baseline),
        learned=Learned(ResidualDynamics(*networks, *units), jnp.asarray(1e10)),
        starts=jnp.zeros((config.paths, shapes.observation)),
        step=jnp.zeros((), jnp.int32),
    )


def act(
    config: Config,
    policy: Policy,
    observations: Float[Array, "batch observation"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "batch action"]:
    """μ(s), or with a key a draw from N(μ(s), σ²), within the bounds."""
    mean = policy.network(scaled(config, observations), jnp.tanh)
    if key is not None:
        mean = mean + jnp.exp(policy.log_std)[None] * jax.random.normal(key, mean.shape, mean.dtype)
    return jnp.clip(mean, -1, 1)


def uncertainty(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """u(s, a), in units of scaled observations."""
    return disagreement(state.learned.dynamics.next_of_all(scaled(config, observations), actions))


def state_value(
    config: Config, state: State, observations: Float[Array, "batch observation"]
) -> Float[Array, " batch"]:
    """The baseline at the beginning of a path: what the policy earns in the model from there."""
    return state.baseline(features(observations[None]))[0, :, 0]


ALGORITHM = Algorithm(
    name="morel",
    title="MOReL",
    summary="natural policy gradient in a learned model that halts where its networks disagree",
    paper=Paper("Kidambi et al.", 2020, "2005.05951"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.policy,
    act=act,
    stages=(DYNAMICS, CLONING),
    refresh=refresh,
    uncertainty=uncertainty,
    state_value=state_value,
    precisions=("float32",),  # the natural gradient solves a linear system
    counts_as=1_000,  # an iteration is of many steps in the model
    characteristics=("value-penalised", "uncertainty-aware", "model-based"),
    headline=("model_return", "model_steps"),
)
