"""All estimates of several policies and of the behaviour: the evaluators fitted, and then asked."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from score_rl.data.dataset import Dataset
from score_rl.data.progress_bar import row_progress
from score_rl.data.treatment import Treatment
from score_rl.judge.candidates import Candidates
from score_rl.judge.dynamics import Model
from score_rl.judge.evidence import Evidence
from score_rl.judge.fitting import BehaviourDensity, Effort, FittedQ, fit_density, fit_model, fit_q, work
from score_rl.judge.importance import weighted_estimates
from score_rl.judge.intervals import of_members
from score_rl.judge.model_estimate import rollout_values
from score_rl.store.judgements import FITTED, IMPORTANCE, MODEL, PESSIMISTIC, ROBUST, Estimate

STARTS = 100  # of imagined rollouts, at most
LONGEST_ROLLOUT = 200


class Fits(NamedTuple):
    """The evaluators."""

    behaviour: BehaviourDensity
    model: tuple[Model, Treatment]
    fitted: FittedQ


class Estimates(NamedTuple):
    """Of every policy, and of the behaviour at the end."""

    by_estimator: dict[str, list[Estimate]]
    strayed: Float[np.ndarray, " policies"]  # share of imagined steps outside of what was recorded
    effective: Float[np.ndarray, " policies"]  # of how many trajectories the weighted estimates are in effect made


def fit_evaluators(dataset: Dataset, candidates: Candidates, discount: float, effort: Effort, quiet: bool) -> Fits:
    """All evaluators, with one bar over their updates."""
    total = work(dataset, len(candidates), effort)
    with row_progress("fitting evaluators", total, shown=not quiet, unit="updates") as advance:
        behaviour = fit_density(dataset, effort, advance)
        model = fit_model(dataset, effort, advance)
        return Fits(behaviour, model, fit_q(dataset, candidates, discount, effort, advance))


def estimates_by(evidence: Evidence, candidates: Candidates, fits: Fits) -> Estimates:
    """What every estimator says of every policy."""
    asked, discount = evidence.dataset, evidence.discount
    first, recorded = asked.observations[evidence.starts], asked.actions[evidence.starts]
    values = fits.fitted.per_step(first, np.concatenate([candidates.act_on(first), recorded[None]]))
    imagined = rollout_values(
        fits.model, candidates, fits.behaviour, asked, _spread(first, STARTS),
        horizon=int(np.clip(1 / (1 - discount), 10, LONGEST_ROLLOUT)), discount=discount,
    )  # fmt: skip
    weighted = weighted_estimates(evidence, candidates, fits.behaviour, fits.fitted)
    columns = {
        FITTED: of_members(values),
        PESSIMISTIC: of_members(values, pessimistic=True),
        MODEL: of_members(imagined.values),
        IMPORTANCE: weighted.importance,
        ROBUST: weighted.doubly_robust,
    }
    return Estimates(columns, imagined.strayed, weighted.effective)


def _spread(rows: np.ndarray, number: int) -> np.ndarray:
    """So many of them at most, evenly spread."""
    return rows[np.linspace(0, len(rows) - 1, min(number, len(rows))).astype(np.int64)]
