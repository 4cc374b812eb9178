r"""Estimates that weigh recorded trajectories by how likely a policy's actions make them.

A learned policy π is deterministic, so it is compared as the density it would have with the behaviour's own noise:

    ρ_t = N(a_t; π(s_t), σ(s_t)²) / N(a_t; m(s_t), σ(s_t)²),    w_t = ρ_0·...·ρ_t

Weights are normalised over trajectories at each t. Weighted per-decision importance sampling is the discounted mean of
Σ_i w_it·r_it. The doubly robust form starts at the fitted value of the starts and weighs what the fitted values leave
over:

    V = mean_i v(s_i0) + Σ_t γᵗ·Σ_i w_it·[(1 - γ)·r_it + γ·v(s'_it) - q(s_it, a_it)]

v and q are per step. A trajectory that stopped counts up to there. After a terminal rewards are 0, for ever: behind
the longest recording, the trajectories that ended count on with the weight that they have by then.
"""

import dataclasses

import numpy as np
from jaxtyping import Float

from score_rl.data.dataset import Dataset
from score_rl.judge.candidates import Candidates
from score_rl.judge.evidence import Evidence
from score_rl.judge.fitting import BehaviourDensity, FittedQ
from score_rl.judge.intervals import from_resamples, trajectory_counts
from score_rl.store.judgements import Estimate

LARGEST_LOG_RATIO = 30.0
HORIZON = 1_000  # steps of a trajectory that count at most


@dataclasses.dataclass(frozen=True)
class Weighted:
    """Two estimates, and of how many trajectories they are in effect made: (Σw)²/Σw², averaged over discounted time."""

    importance: list[Estimate]
    doubly_robust: list[Estimate]
    effective: Float[np.ndarray, " policies"]


def weighted_estimates(
    evidence: Evidence, candidates: Candidates, behaviour: BehaviourDensity, fitted: FittedQ
) -> Weighted:
    """Both estimates of every candidate and, with weights of 1, of the behaviour."""
    dataset = evidence.dataset
    log_ratios = log_ratios_of(evidence, candidates, behaviour)
    learned = candidates.act_on(dataset.observations)
    acted = np.concatenate([learned, dataset.actions[None]])
    v_now = fitted.per_step(dataset.observations, acted).mean(axis=1)
    q_now = fitted.per_step(dataset.observations, np.broadcast_to(dataset.actions, acted.shape)).mean(axis=1)
    following = np.concatenate([candidates.act_on(dataset.next_observations), _recorded_next(dataset)[None]])
    v_next = fitted.per_step(dataset.next_observations, following).mean(axis=1) * ~dataset.terminals
    over = (1 - evidence.discount) * dataset.rewards + evidence.discount * v_next - q_now
    counts = trajectory_counts(len(evidence.lengths))
    rows = _Grid(evidence)
    whole = np.ones((1, counts.shape[1]))
    plain, drawn, effective = [], [], []
    for number, log_ratio in enumerate(log_ratios):
        weights, rewards, left = rows.cumulative(log_ratio), rows.of(dataset.rewards), rows.of(over[number])
        starts = v_now[number][evidence.starts]
        plain.append(_estimates(rows, weights, rewards, left, starts, whole))
        drawn.append(_estimates(rows, weights, rewards, left, starts, counts))
        effective.append(rows.effective(weights))
    importance, robust = (
        from_resamples(np.array([each[kind][0] for each in plain]), np.stack([each[kind] for each in drawn], axis=1))
        for kind in range(2)
    )
    return Weighted(importance, robust, np.array(effective))


def log_ratios_of(
    evidence: Evidence, candidates: Candidates, behaviour: BehaviourDensity
) -> Float[np.ndarray, "policies rows"]:
    """log ρ_t of every recorded row; 0 for the behaviour, which comes last."""
    dataset = evidence.dataset
    density = behaviour.at(dataset.observations)
    taken = behaviour.scaled(dataset.actions)
    base = density.log_density(taken)
    learned = behaviour.scaled(candidates.act_on(dataset.observations))
    ratios = [density.log_density(taken, mean) - base for mean in learned]
    return np.stack([*ratios, np.zeros(len(dataset))])


def _recorded_next(dataset: Dataset) -> np.ndarray:
    """The action recorded one step later; at the end of a trajectory the last one again."""
    return np.where(dataset.followed()[:, None], np.roll(dataset.actions, -1, axis=0), dataset.actions)


class _Grid:
    """Rows as a table: a line for each trajectory, a column for each step."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.horizon = int(min(evidence.lengths.max(), HORIZON))
        inside = evidence.counts & (evidence.time_of_row < self.horizon)
        self.rows = np.flatnonzero(inside)
        self.places = evidence.trajectory_of_row[inside], evidence.time_of_row[inside]
        self.discounts = evidence.discount ** np.arange(self.horizon)
        recorded = np.zeros((len(evidence.lengths), self.horizon), bool)
        recorded[self.places] = True
        self.ended = evidence.ended & (evidence.lengths <= self.horizon)
        self.counts = recorded | self.ended[:, None]  # after a terminal a trajectory goes on, with nothing earned
        self.tail = evidence.discount**self.horizon / (1 - evidence.discount)  # Σ γᵗ behind the longest recording

    def of(self, column: Float[np.ndarray, " rows"]) -> Float[np.ndarray, "trajectories time"]:
        table = np.zeros(self.counts.shape)
        table[self.places] = column[self.rows]
        return table

    def cumulative(self, log_ratio: Float[np.ndarray, " rows"]) -> Float[np.ndarray, "trajectories time"]:
        """w_t before it is normalised over trajectories; 0 where a recording has stopped."""
        logs = np.cumsum(self.of(log_ratio), axis=1)
        logs = np.where(self.counts, logs, -np.inf)
        logs = logs - logs.max(axis=0, keepdims=True)  # what counts is the share of each trajectory
        return np.exp(np.maximum(logs, -LARGEST_LOG_RATIO)) * self.counts

    def effective(self, weights: Float[np.ndarray, "trajectories time"]) -> float:
        """(Σw)²/Σw² over trajectories, averaged over discounted time."""
        each = weights.sum(axis=0) ** 2 / np.maximum((weights**2).sum(axis=0), 1e-300)
        return float(np.average(each, weights=self.discounts))


def _estimates(
    rows: _Grid,
    weights: Float[np.ndarray, "trajectories time"],
    rewards: Float[np.ndarray, "trajectories time"],
    left: Float[np.ndarray, "trajectories time"],
    starts: Float[np.ndarray, " trajectories"],
    counts: Float[np.ndarray, "resamples trajectories"],
) -> tuple[np.ndarray, np.ndarray]:
    """Both estimates in every resample."""
    together = counts @ weights
    there = together > 0
    safe = np.where(there, together, 1.0)
    reward = np.where(there, counts @ (weights * rewards) / safe, 0.0)
    remainder = np.where(there, counts @ (weights * left) / safe, 0.0)
    ended = (counts @ (weights[:, -1] * rows.ended)) / safe[:, -1]
    time = (there * rows.discounts).sum(axis=1) + rows.tail * ended
    importance = (reward * rows.discounts).sum(axis=1) / time
    fitted = counts @ starts / counts.sum(axis=1)
    return importance, fitted + (remainder * rows.discounts).sum(axis=1)
