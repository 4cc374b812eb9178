"""Recordings that end: what an estimator says of them must not be what is earned while they last."""

import numpy as np
import pytest

from score_rl.judge.candidates import Candidates
from score_rl.judge.estimates import Estimates, estimates_by, fit_evaluators
from score_rl.judge.evidence import Evidence
from score_rl.judge.fitting import Effort
from score_rl.store.judgements import FITTED, MODEL
from tests.judge.test_importance import with_ends

DISCOUNT, HAZARD = 0.95, 0.1
LASTING = (1 - DISCOUNT) / (1 - DISCOUNT * (1 - HAZARD))  # (1 - γ)·Σ γᵗ·(1 - hazard)ᵗ, where each step earns 1
SHORT = Effort(
    updates=100, behaviour_updates=2_000, critics=2, hidden=(16,), density_updates=200, models=2, model_hidden=(16,),
    model_epochs=10, model_updates=1_000,
)  # fmt: skip


@pytest.fixture(scope="module")
def found() -> Estimates:
    """Of a policy that ends as often as the behaviour does, by evaluators with few updates of its own."""
    dataset = with_ends(600, lambda action: HAZARD, 400)
    candidates = Candidates({"still": lambda s: np.zeros_like(s)}, [-1.0], [1.0])
    fits = fit_evaluators(dataset, candidates, DISCOUNT, SHORT, quiet=True)
    return estimates_by(Evidence(dataset, DISCOUNT), candidates, fits)


@pytest.mark.parametrize("kind", [FITTED, MODEL])
def test_what_ends_is_worth_what_is_earned_until_then(found: Estimates, kind: str) -> None:
    policy, behaviour = found.by_estimator[kind]
    assert behaviour.value == pytest.approx(LASTING, abs=0.06)
    assert policy.value == pytest.approx(LASTING, abs=0.06)


def test_critics_start_with_the_behaviours(found: Estimates) -> None:
    """Otherwise a hundred updates leave them near the mean reward of 1."""
    policy, _ = found.by_estimator[FITTED]
    assert abs(policy.difference) < 0.03
    assert policy.value < 0.45
