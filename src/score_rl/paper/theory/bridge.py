"""The bridge to practice: does a critic ensemble's standard deviation measure the epistemic error?

The paper claims that the bootstrapped ensemble alone does not give a good uncertainty and that the annealed
behaviour cloning term does (section 3.2). Here SCORE's update is run, small, on a task whose truth is known:

    s, a ∈ [-1, 1],    s' = clip(s + a/4, -1, 1),    R(s, a) = 0.9 exp(-(s - 0.6)²/0.08) + 0.1 (1 - a²),    γ = 0.9,

with data from a driver who returns to the middle: away from it, moves outwards are rare, and the reward lies
outwards. Three trainings differ in the weight λ of behaviour cloning alone: none, annealed (λ ← γ_bc λ), constant.

Against u = std of the M critics, at points (s, a), stand two exact errors of their mean Q̄:

    one step   |BQ̄ - B̂Q̄| with B the true operator of the current policy. B̂Q̄ is what the critics were fitted to,
               "treated as a whole": Q̄ + βu, since their targets subtract βu.
    value      |Q̄ - Q^π|, with Q^π from a linear solve on a fine grid (linear interpolation between its points).

Reported over training: Spearman's rank correlation of u with each error, and coverage, the share of points
where the one-step error is at most U = βu (the quantifier the algorithm implements), or at most 2u.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from score_rl.errors import InputError
from score_rl.paper.theory.estimates import rank_correlation
from score_rl.paper.theory.precision import double_precision, namespace, to_numpy

GAMMA = 0.9
ARMS = ("none", "annealed", "constant")  # λ = 0, λ from 1 towards 0, λ = 1


@dataclass(frozen=True)
class Training:
    """SCORE in miniature; the names are the paper's."""

    critics: int = 5  # M
    width: int = 16  # units per hidden layer, two layers
    beta: float = 0.2  # β, penalty on the uncertainty
    gamma_bc: float = 0.96  # λ is multiplied by this ...
    d_bc: int = 30  # ... every d_bc steps: 100 times in all, as in the paper's million steps
    alpha: float = 2.5  # scale of the normalised value in the actor's objective
    steps: int = 3000
    batch: int = 32
    samples: int = 500  # N
    tau: float = 0.02  # target networks move by this share
    learning_rate: float = 2e-3
    checkpoints: int = 16

    def __post_init__(self) -> None:
        if self.critics < 2:
            raise InputError(f"an ensemble of {self.critics} critics has no standard deviation; ask for at least 2.")
        if self.steps < 2 * self.checkpoints or self.checkpoints < 1 or self.samples < 1:
            raise InputError(
                f"{self.steps} steps with {self.checkpoints} checkpoints on {self.samples} samples cannot be run; "
                "expected at least two steps per checkpoint and one sample."
            )


def reward(s: Any, a: Any, xp: Any = np) -> Any:
    """R(s, a) ∈ [0, 1]."""
    return 0.9 * xp.exp(-((s - 0.6) ** 2) / 0.08) + 0.1 * (1.0 - a**2)


def step(s: Any, a: Any, xp: Any = np) -> Any:
    """s' = clip(s + a/4, -1, 1)."""
    return xp.clip(s + 0.25 * a, -1.0, 1.0)


def behaviour(s: Any, noise: Any, xp: Any = np) -> Any:
    """The driver who made the data: back towards the middle, with some noise."""
    return xp.clip(-0.5 * s + 0.3 * noise, -1.0, 1.0)


def exact_value(policy: Float[np.ndarray, " G"]) -> Float[np.ndarray, " G"]:
    """V^π on an even grid over [-1, 1] that π is given on, by one linear solve."""
    size = len(policy)
    grid = np.linspace(-1.0, 1.0, size)
    position = (step(grid, policy) + 1.0) / 2.0 * (size - 1)
    left = np.minimum(position.astype(int), size - 2)
    share = position - left
    transition = np.zeros((size, size))
    transition[np.arange(size), left] += 1.0 - share
    transition[np.arange(size), left + 1] += share
    return np.linalg.solve(np.eye(size) - GAMMA * transition, reward(grid, policy))


def exact_action_value(value: Float[np.ndarray, " G"], s: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Q^π(s, a) = R(s, a) + γ V^π(s') from V^π on an even grid."""
    return reward(s, a) + GAMMA * np.interp(step(s, a), np.linspace(-1.0, 1.0, len(value)), value)


Layers = list[tuple[Any, Any]]  # weights and biases of a perceptron


class Networks(NamedTuple):
    """Critics θ (a leading axis of M) and actor φ; trained ones have axes (arm, seed, checkpoint) before that."""

    theta: Layers
    phi: Layers


class Draws(NamedTuple):
    """Everything random in one training: the data set, the first weights, the batches and the target noise."""

    s: Any
    a: Any
    start: Networks
    batches: Any  # indices [step, batch]
    noise: Any  # [step, batch]


def perceptron(rng: np.random.Generator, sizes: tuple[int, ...], members: tuple[int, ...] = ()) -> Layers:
    """Weights and biases uniform in ±1/√fan_in, for one network or an array of them."""
    return [
        (
            rng.uniform(-(m**-0.5), m**-0.5, (*members, m, n)),
            rng.uniform(-(m**-0.5), m**-0.5, (*members, 1, n)),
        )
        for m, n in pairwise(sizes)
    ]


def forward(layers: Layers, x: Any) -> Any:
    """A perceptron with ReLU between its layers, on rows x; networks with leading axes broadcast over them."""
    xp = namespace(x, layers[0][0])
    for weight, bias in layers[:-1]:
        x = xp.maximum(x @ weight + bias, 0.0)
    return (x @ layers[-1][0] + layers[-1][1])[..., 0]


def critic_values(theta: Layers, s: Any, a: Any) -> Any:
    """Q_{θ_i}(s, a) for all i."""
    x = namespace(s, a).stack([s, a], -1)
    return forward(theta, x[None])


def policy_action(phi: Layers, s: Any) -> Any:
    """π_φ(s) ∈ (-1, 1)."""
    return namespace(s, phi[0][0]).tanh(forward(phi, s[:, None]))


def draw(training: Training, rng: np.random.Generator) -> Draws:
    """One seed's randomness. The data: states from drives of up to 4 steps from anywhere, and the driver's actions."""
    s = rng.uniform(-1.0, 1.0, training.samples)
    length = rng.integers(0, 5, training.samples)
    for t in range(4):
        s = np.where(t < length, step(s, behaviour(s, rng.normal(size=s.shape))), s)
    hidden = (training.width, training.width, 1)
    shape = (training.checkpoints, training.steps // training.checkpoints // 2, 2, training.batch)
    return Draws(
        s,
        behaviour(s, rng.normal(size=s.shape)),
        Networks(perceptron(rng, (2, *hidden), (training.critics,)), perceptron(rng, (1, *hidden))),
        rng.integers(0, training.samples, shape),
        np.clip(0.2 * rng.normal(size=shape), -0.5, 0.5),
    )


class Moments(NamedTuple):
    """Adam's state."""

    first: Any  # moving average of the gradients
    second: Any  # of their squares
    steps: Any


def adam_init(parameters: Any) -> Moments:
    import jax
    import jax.numpy as jnp

    return Moments(jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters), jnp.int32(0))


def adam_step(parameters: Any, gradients: Any, state: Moments, learning_rate: float) -> tuple[Any, Moments]:
    """One step downhill, in the precision of the parameters: θ ← θ - η·(m/c₁)/(√(v/c₂) + ε), with cᵢ = 1 - βᵢᵗ."""
    import jax
    import jax.numpy as jnp

    b1, b2, epsilon = 0.9, 0.999, 1e-8
    first = jax.tree.map(lambda g, m: (1 - b1) * g + b1 * m, gradients, state.first)
    second = jax.tree.map(lambda g, v: (1 - b2) * g**2 + b2 * v, gradients, state.second)
    steps = state.steps + 1
    c1, c2 = 1 - b1**steps, 1 - b2**steps

    def moved(p: Any, m: Any, v: Any) -> Any:
        return p + -learning_rate * (m / c1.astype(m.dtype) / (jnp.sqrt(v / c2.astype(v.dtype)) + epsilon))

    return jax.tree.map(moved, parameters, first, second), Moments(first, second, steps)


def _training_run(training: Training) -> Any:
    """The traceable map (draws, first λ, its decay) ↦ networks at every checkpoint."""
    import jax
    import jax.numpy as jnp

    def critic_loss(theta: Any, s: Any, a: Any, target: Any) -> Any:
        return ((critic_values(theta, s, a) - target) ** 2).mean(-1).sum()

    def actor_loss(phi: Any, theta: Any, s: Any, a: Any, weight: Any) -> Any:
        chosen = policy_action(phi, s)
        q = critic_values(theta, s, chosen).min(0)
        scale = training.alpha / jax.lax.stop_gradient(jnp.abs(q).mean())
        return -scale * q.mean() + weight * ((chosen - a) ** 2).mean()

    def follow(target: Any, online: Any) -> Any:
        return jax.tree.map(lambda x, y: x + training.tau * (y - x), target, online)

    def run(draws: Draws, first_weight: Any, decay: Any) -> Networks:
        def update(state: Any, drawn: Any) -> tuple[Any, None]:
            """Two steps of the critics (equation "q_objective"), then one of the actor and the targets (d = 2)."""
            t, online, target, opt_theta, opt_phi = state

            def critic_step(carry: Any, drawn: Any) -> Any:
                theta, opt = carry
                index, noise = drawn
                s, a = draws.s[index], draws.a[index]
                s_next = step(s, a, jnp)
                a_next = jnp.clip(policy_action(target.phi, s_next) + noise, -1.0, 1.0)
                known = reward(s, a, jnp) - training.beta * critic_values(theta, s, a).std(0)
                y = known[None, :] + GAMMA * critic_values(target.theta, s_next, a_next)
                grad = jax.grad(critic_loss)(theta, s, a, jax.lax.stop_gradient(y))
                return adam_step(theta, grad, opt, training.learning_rate), (s, a)

            (theta, opt_theta), batches = jax.lax.scan(critic_step, (online.theta, opt_theta), drawn)
            s, a = batches[0][-1], batches[1][-1]
            weight = first_weight * decay ** (t // training.d_bc)
            grad = jax.grad(actor_loss)(online.phi, theta, s, a, weight)
            phi, opt_phi = adam_step(online.phi, grad, opt_phi, training.learning_rate)
            online = Networks(theta, phi)
            return (t + 2, online, follow(target, online), opt_theta, opt_phi), None

        def checkpoint(state: Any, drawn: Any) -> tuple[Any, Networks]:
            state, _ = jax.lax.scan(update, state, drawn)
            return state, state[1]

        first = draws.start
        state = (0, first, first, adam_init(first.theta), adam_init(first.phi))
        return jax.lax.scan(checkpoint, state, (draws.batches, draws.noise))[1]

    return run


def train(training: Training, seeds: int, seed: int) -> Networks:
    """Every arm for `seeds` seeds in one program; leaves have axes (arm, seed, checkpoint, …)."""
    drawn = [draw(training, np.random.default_rng([seed, i])) for i in range(seeds)]
    with double_precision():
        import jax
        import jax.numpy as jnp

        stacked = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *drawn)
        first, decay = jnp.array([0.0, 1.0, 1.0]), jnp.array([1.0, training.gamma_bc, 1.0])
        over_seeds = jax.vmap(_training_run(training), in_axes=(0, None, None))
        return to_numpy(jax.jit(jax.vmap(over_seeds, in_axes=(None, 0, 0)))(stacked, first, decay))


class Quality(NamedTuple):
    """How good u is as an uncertainty, per arm, seed and checkpoint."""

    rank_one_step: np.ndarray  # Spearman of u and |BQ̄ - B̂Q̄| over the plane
    rank_value: np.ndarray  # Spearman of u and |Q̄ - Q^π| over the plane
    rank_policy: np.ndarray  # Spearman of u and |BQ̄ - B̂Q̄| at (s, π(s))
    cover_beta: np.ndarray  # share of the plane with |BQ̄ - B̂Q̄| ≤ βu
    cover_two: np.ndarray  # share of the plane with |BQ̄ - B̂Q̄| ≤ 2u
    cover_policy: np.ndarray  # share of the states with |BQ̄ - B̂Q̄| ≤ 2u at (s, π(s))
    value_error: np.ndarray  # mean |Q̄ - Q^π| over the plane
    over_estimate: np.ndarray  # mean Q̄ - Q^π at (s, π(s))
    policy_return: np.ndarray  # mean of V^π over states
    penalty: np.ndarray  # mean u over the plane


def assess(training: Training, networks: Networks, query: tuple[np.ndarray, np.ndarray], fine: int = 101) -> Quality:
    """Rank correlation and coverage at every checkpoint, against the exact errors."""
    grid = np.linspace(-1.0, 1.0, fine)
    axes = networks.phi[0][0].shape[:3]
    out = {name: np.empty(axes) for name in Quality._fields}
    for i in np.ndindex(axes):
        theta, phi = ([(weight[i], bias[i]) for weight, bias in layers] for layers in networks)
        policy = policy_action(phi, grid)
        truth = exact_value(policy)

        def errors(s: np.ndarray, a: np.ndarray, theta: Layers = theta, phi: Layers = phi) -> Any:
            """Q̄, u and |BQ̄ - B̂Q̄| at the points."""
            q, s_next = critic_values(theta, s, a), step(s, a)
            mean, u = q.mean(0), q.std(0)
            after = critic_values(theta, s_next, policy_action(phi, s_next)).mean(0)
            return mean, u, np.abs(reward(s, a) + GAMMA * after - mean - training.beta * u)

        mean, u, one_step = errors(*query)
        along_mean, along_u, along = errors(grid, policy)
        value = np.abs(mean - exact_action_value(truth, *query))
        out["rank_one_step"][i] = rank_correlation(u, one_step)
        out["rank_value"][i] = rank_correlation(u, value)
        out["rank_policy"][i] = rank_correlation(along_u, along)
        out["cover_beta"][i] = (one_step <= training.beta * u).mean()
        out["cover_two"][i] = (one_step <= 2.0 * u).mean()
        out["cover_policy"][i] = (along <= 2.0 * along_u).mean()
        out["value_error"][i] = value.mean()
        out["over_estimate"][i] = (along_mean - truth).mean()
        out["policy_return"][i] = truth.mean()
        out["penalty"][i] = u.mean()
    return Quality(**out)


def query_points(side: int = 31) -> tuple[np.ndarray, np.ndarray]:
    """An even grid over the plane of (s, a), flattened."""
    axis = np.linspace(-1.0, 1.0, side)
    s, a = np.meshgrid(axis, axis, indexing="ij")
    return s.ravel(), a.ravel()
