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
from score_rl.theory.estimates import rank_correlation
from score_rl.theory.precision import double_precision, to_numpy

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


class Snapshot(NamedTuple):
    """What the networks say at one checkpoint, at the query points and along the policy."""

    mean: Any  # Q̄ at the query points
    std: Any  # u there
    next_value: Any  # Q̄(s', π(s')) after each query point
    policy: Any  # π on the fine grid
    policy_std: Any  # u(s, π(s)) on that grid
    policy_mean: Any
    policy_next: Any
    data_std: Any  # mean u on the data
    weight: Any  # λ


def _perceptron(key: Any, sizes: tuple[int, ...], jax: Any) -> list[tuple[Any, Any]]:
    """Weights and biases uniform in ±1/√fan_in."""
    layers = []
    for fan_in, fan_out in pairwise(sizes):
        key, kw, kb = jax.random.split(key, 3)
        bound = fan_in**-0.5
        layers.append(
            (
                jax.random.uniform(kw, (fan_in, fan_out), minval=-bound, maxval=bound),
                jax.random.uniform(kb, (fan_out,), minval=-bound, maxval=bound),
            )
        )
    return layers


def _forward(layers: list[tuple[Any, Any]], x: Any, jax: Any) -> Any:
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias[None, :])
    weight, bias = layers[-1]
    return (x @ weight + bias[None, :])[:, 0]


def train(training: Training, seeds: int, seed: int, query: tuple[np.ndarray, np.ndarray], fine: int = 101) -> Snapshot:
    """Every arm for `seeds` seeds in one program; leaves have axes (arm, seed, checkpoint, …)."""
    with double_precision():
        import jax
        import jax.numpy as jnp
        import optax

        optimiser = optax.adam(training.learning_rate)
        points_s, points_a = (jnp.asarray(x) for x in query)
        grid = jnp.linspace(-1.0, 1.0, fine)
        per_checkpoint = 2 * (training.steps // training.checkpoints // 2)

        def critics(params: Any, s: Any, a: Any) -> Any:
            """Q_{θ_i}(s, a) for all i."""
            x = jnp.stack([s, a], -1)
            return jax.vmap(lambda layers: _forward(layers, x, jax))(params)

        def actor(params: Any, s: Any) -> Any:
            return jnp.tanh(_forward(params, s[:, None], jax))

        def collect(key: Any) -> tuple[Any, Any]:
            """N pairs: states from drives of up to 4 steps that start anywhere, actions of the driver."""
            k1, k2, k3 = jax.random.split(key, 3)
            s = jax.random.uniform(k1, (training.samples,), minval=-1.0, maxval=1.0)
            noise = jax.random.normal(k2, (5, training.samples))
            length = jax.random.randint(k3, (training.samples,), 0, 5)
            for t in range(4):
                s = jnp.where(t < length, step(s, behaviour(s, noise[t], jnp), jnp), s)
            return s, behaviour(s, noise[4], jnp)

        def one_run(key: Any, first_weight: Any, decay: Any) -> Snapshot:
            k_data, k_critic, k_actor, k_run = jax.random.split(key, 4)
            data_s, data_a = collect(k_data)
            theta = jax.vmap(lambda k: _perceptron(k, (2, training.width, training.width, 1), jax))(
                jax.random.split(k_critic, training.critics)
            )
            phi = _perceptron(k_actor, (1, training.width, training.width, 1), jax)

            def critic_loss(params: Any, s: Any, a: Any, target: Any) -> Any:
                return ((critics(params, s, a) - target) ** 2).mean(-1).sum()

            def actor_loss(params: Any, theta: Any, s: Any, a: Any, weight: Any) -> Any:
                chosen = actor(params, s)
                q = critics(theta, s, chosen).min(0)
                scale = training.alpha / jax.lax.stop_gradient(jnp.abs(q).mean())
                return -scale * q.mean() + weight * ((chosen - a) ** 2).mean()

            def evaluate(theta: Any, opt_theta: Any, theta_target: Any, phi_target: Any, t: Any) -> Any:
                """One step of the critics (equation "q_objective"); the batch is handed on to the actor."""
                k_batch, k_noise = jax.random.split(jax.random.fold_in(k_run, t))
                index = jax.random.randint(k_batch, (training.batch,), 0, training.samples)
                s, a = data_s[index], data_a[index]
                s_next = step(s, a, jnp)
                noise = jnp.clip(0.2 * jax.random.normal(k_noise, s.shape), -0.5, 0.5)
                a_next = jnp.clip(actor(phi_target, s_next) + noise, -1.0, 1.0)
                u = critics(theta, s, a).std(0)
                known = reward(s, a, jnp) - training.beta * u
                target = known[None, :] + GAMMA * critics(theta_target, s_next, a_next)
                grad = jax.grad(critic_loss)(theta, s, a, jax.lax.stop_gradient(target))
                change, opt_theta = optimiser.update(grad, opt_theta)
                return optax.apply_updates(theta, change), opt_theta, s, a

            def follow(target: Any, online: Any) -> Any:
                return jax.tree.map(lambda x, y: x + training.tau * (y - x), target, online)

            def update(state: Any, t: Any) -> tuple[Any, None]:
                """Two steps of the critics, then one of the actor and the targets (d = 2)."""
                theta, phi, theta_target, phi_target, opt_theta, opt_phi = state

                def critic_step(carry: Any, now: Any) -> Any:
                    theta, opt_theta, s, a = evaluate(carry[0], carry[1], theta_target, phi_target, now)
                    return (theta, opt_theta), (s, a)

                (theta, opt_theta), batches = jax.lax.scan(critic_step, (theta, opt_theta), t + jnp.arange(2))
                s, a = batches[0][-1], batches[1][-1]
                weight = first_weight * decay ** (t // training.d_bc)
                grad = jax.grad(actor_loss)(phi, theta, s, a, weight)
                change, opt_phi = optimiser.update(grad, opt_phi)
                phi = optax.apply_updates(phi, change)
                targets = follow(theta_target, theta), follow(phi_target, phi)
                return (theta, phi, *targets, opt_theta, opt_phi), None

            def checkpoint(state: Any, i: Any) -> tuple[Any, Snapshot]:
                times = i * per_checkpoint + 2 * jnp.arange(per_checkpoint // 2)
                state, _ = jax.lax.scan(update, state, times)
                theta, phi = state[:2]

                def mean_after(s: Any, a: Any) -> Any:
                    s_next = step(s, a, jnp)
                    return critics(theta, s_next, actor(phi, s_next)).mean(0)

                q, chosen = critics(theta, points_s, points_a), actor(phi, grid)
                along = critics(theta, grid, chosen)
                weight = first_weight * decay ** (((i + 1) * per_checkpoint - 1) // training.d_bc)
                return state, Snapshot(
                    q.mean(0),
                    q.std(0),
                    mean_after(points_s, points_a),
                    chosen,
                    along.std(0),
                    along.mean(0),
                    mean_after(grid, chosen),
                    critics(theta, data_s, data_a).std(0).mean(),
                    weight,
                )

            start = (theta, phi, theta, phi, optimiser.init(theta), optimiser.init(phi))
            return jax.lax.scan(checkpoint, start, jnp.arange(training.checkpoints))[1]

        keys = jax.random.split(jax.random.key(seed), seeds)
        first, decay = jnp.array([0.0, 1.0, 1.0]), jnp.array([1.0, training.gamma_bc, 1.0])
        over_seeds = jax.vmap(one_run, in_axes=(0, None, None))
        return to_numpy(jax.jit(jax.vmap(over_seeds, in_axes=(None, 0, 0)))(keys, first, decay))


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


def assess(training: Training, snapshot: Snapshot, query: tuple[np.ndarray, np.ndarray]) -> Quality:
    """Rank correlation and coverage of every snapshot, against the exact errors."""
    s, a = query
    arms, seeds, times, fine = snapshot.policy.shape
    grid = np.linspace(-1.0, 1.0, fine)
    out = {name: np.empty((arms, seeds, times)) for name in Quality._fields}
    for i in np.ndindex(arms, seeds, times):
        u, mean, policy = snapshot.std[i], snapshot.mean[i], snapshot.policy[i]
        one_step = np.abs(reward(s, a) + GAMMA * snapshot.next_value[i] - mean - training.beta * u)
        truth = exact_value(policy)
        value = np.abs(mean - exact_action_value(truth, s, a))
        along_u = snapshot.policy_std[i]
        along = reward(grid, policy) + GAMMA * snapshot.policy_next[i] - snapshot.policy_mean[i]
        along = np.abs(along - training.beta * along_u)
        out["rank_one_step"][i] = rank_correlation(u, one_step)
        out["rank_value"][i] = rank_correlation(u, value)
        out["rank_policy"][i] = rank_correlation(along_u, along)
        out["cover_beta"][i] = (one_step <= training.beta * u).mean()
        out["cover_two"][i] = (one_step <= 2.0 * u).mean()
        out["cover_policy"][i] = (along <= 2.0 * along_u).mean()
        out["value_error"][i] = value.mean()
        out["over_estimate"][i] = (snapshot.policy_mean[i] - truth).mean()
        out["policy_return"][i] = truth.mean()
        out["penalty"][i] = u.mean()
    return Quality(**out)


def query_points(side: int = 31) -> tuple[np.ndarray, np.ndarray]:
    """An even grid over the plane of (s, a), flattened."""
    axis = np.linspace(-1.0, 1.0, side)
    s, a = np.meshgrid(axis, axis, indexing="ij")
    return s.ravel(), a.ravel()
