"""Data sets D of N samples, and the empirical model behind the empirical Bellman operator B̂.

The paper's sampling (section 2.1): (s, a) ~ d^{π_β} independently, s' ~ P(·|s, a), r = R(s, a). For a finite
MDP the counts n(s, a, s') hold everything a data set says, so many data sets are drawn as arrays of counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from score_rl.errors import InputError
from score_rl.paper.theory.mdp import FiniteMDP, check_policy, occupancy
from score_rl.paper.theory.precision import namespace


@dataclass(frozen=True, eq=False)
class Samples:
    """N transitions (s, a, s', r) of a finite MDP; refused when empty, ragged or out of range."""

    s: np.ndarray
    a: np.ndarray
    s_next: np.ndarray
    r: np.ndarray

    def __post_init__(self) -> None:
        lengths = {np.shape(x) for x in (self.s, self.a, self.s_next, self.r)}
        if len(lengths) != 1 or len(next(iter(lengths))) != 1:
            raise InputError(f"s, a, s' and r have shapes {sorted(lengths)}, expected one common (N,).")
        if next(iter(lengths))[0] == 0:
            raise InputError("the data set is empty; give at least one transition.")
        if not np.isfinite(self.r).all():
            raise InputError("the rewards of the data set hold NaN or infinite entries; give finite rewards.")

    @property
    def size(self) -> int:
        return len(self.s)


class EmpiricalModel(NamedTuple):
    """P̂, r̂ and the visits n(s, a): the sample averages of D.

    A pair that D never visited has P̂ = 0 and r̂ = 0, hence B̂Q(s, a) = 0: the data say nothing, and zero is in
    the range of values. Greedy iteration therefore errs by luck among visited pairs, not by inventing values.
    """

    P: Any
    R: Any
    gamma: Any
    visits: Any


def data_distribution(mdp: FiniteMDP, behaviour: np.ndarray) -> np.ndarray:
    """d^{π_β}(s, a) P(s'|s, a), the distribution of one sample, as an array (S, A, S)."""
    pairs = occupancy(mdp, check_policy(mdp, behaviour, "the behaviour policy π_β"), mdp.d0)
    return pairs[:, :, None] * mdp.P


def draw_samples(mdp: FiniteMDP, behaviour: np.ndarray, size: int, rng: np.random.Generator) -> Samples:
    """One data set of N = size samples."""
    if size < 1:
        raise InputError(f"the data set is to have {size} samples; ask for at least one.")
    joint = data_distribution(mdp, behaviour).ravel()
    cells = rng.choice(joint.size, size=size, p=joint / joint.sum())
    s, a, s_next = np.unravel_index(cells, mdp.P.shape)
    return Samples(s, a, s_next, mdp.R[s, a])


def transition_counts(samples: Samples, mdp: FiniteMDP) -> np.ndarray:
    """n(s, a, s') of one data set."""
    for name, index, bound in (("s", samples.s, mdp.states), ("a", samples.a, mdp.actions)):
        if index.min() < 0 or index.max() >= bound:
            raise InputError(
                f"{name} spans [{index.min()}, {index.max()}] in the data, expected within [0, {bound - 1}]."
            )
    if samples.s_next.min() < 0 or samples.s_next.max() >= mdp.states:
        raise InputError(f"s' in the data leaves the {mdp.states} states of the MDP.")
    counts = np.zeros(mdp.P.shape)
    np.add.at(counts, (samples.s, samples.a, samples.s_next), 1.0)
    return counts


def draw_counts(mdp: FiniteMDP, behaviour: np.ndarray, sizes: int | Sequence[int], sets: int, seed: int) -> np.ndarray:
    """n(s, a, s') of `sets` independent data sets for each N in `sizes`: those of the first size, then the second, …

    N independent samples fill the cells (s, a, s') multinomially, so a large N costs no more than a small one.
    """
    sizes = [sizes] if isinstance(sizes, int) else list(sizes)
    if not sizes or min(sizes) < 1 or sets < 1:
        raise InputError(f"asked for {sets} data sets of {sizes} samples; expected at least one of each.")
    joint = data_distribution(mdp, behaviour)
    rng = np.random.default_rng(seed)
    drawn = [rng.multinomial(size, joint.ravel() / joint.sum(), size=sets) for size in sizes]
    return np.concatenate(drawn).astype(np.float64).reshape(-1, *joint.shape)


def empirical_model(counts: Float[Any, "S A S"], reward: Float[Any, "S A"], gamma: float) -> EmpiricalModel:
    """P̂(s'|s, a) = n(s, a, s') / n(s, a) and r̂(s, a) = R(s, a), both zero where n(s, a) = 0."""
    xp = namespace(counts)
    visits = counts.sum(-1)
    seen = visits > 0
    P = counts / xp.maximum(visits, 1.0)[:, :, None]
    return EmpiricalModel(P, xp.where(seen, reward, 0.0), gamma, visits)


def check_counts(mdp: FiniteMDP, counts: Int[Any, "S A S"]) -> np.ndarray:
    """Counts of one data set over the MDP's transitions, at least one of them positive."""
    counts = np.asarray(counts, dtype=np.float64)
    if counts.shape != mdp.P.shape:
        raise InputError(f"the counts have shape {counts.shape}, expected {mdp.P.shape}.")
    if not np.isfinite(counts).all() or counts.min() < 0:
        raise InputError("the counts hold NaN, infinite or negative entries; give numbers of visits.")
    if counts.sum() < 1:
        raise InputError("the data set is empty; give at least one transition.")
    return counts
