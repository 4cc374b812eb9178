"""Where printed and corrected statements part, at several α, and how tight the corrected ones are."""

import numpy as np
import pytest

from score_rl.paper.theory.corrections import (
    all_corrections,
    instance,
    log_ratio_bound,
    span,
    step_size_of_the_theorem,
)
from score_rl.paper.theory.studies.problem import ALPHAS

DEPENDS_ON_ALPHA = {"eq. log-bound": (0.2, 0.5), "lemma pi": (0.5, 0.96)}  # the printed version fails at these


@pytest.mark.parametrize("seed", [0, 1])
def test_every_correction_is_decided(seed: int) -> None:
    for alpha in ALPHAS:
        for correction in all_corrections(seed, alpha):
            fails = alpha in DEPENDS_ON_ALPHA.get(correction.label, ALPHAS)
            assert (correction.paper > 1e-3) == fails, (correction.label, alpha)
            assert correction.ours < 1e-9, (correction.label, alpha)


def test_the_bound_on_the_log_ratio_is_reached_at_the_first_step() -> None:
    """F_1 = Q_0/η. Later the bound is k times the largest span so far over η, computed by hand."""
    eta = 2.0
    trajectory = instance(0, 0.2).opo(3, eta)
    spans = span(trajectory.q).max(-1)
    first = span(trajectory.log_policies[1] - trajectory.log_policies[0]).max()
    np.testing.assert_allclose(log_ratio_bound(spans, eta)[0], first, rtol=1e-12)
    np.testing.assert_allclose(log_ratio_bound(np.array([3.0, 5.0, 4.0]), eta), [1.5, 5.0, 7.5])


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_step_size_as_printed_misses_the_rate_by_a_known_factor(alpha: float) -> None:
    """At η = √(ζ/K) the proof's bound is C√(ζ/K)/K + c²(1-γ)^{-3}√(K/ζ)."""
    steps = 4096
    here = instance(0, alpha)
    found = step_size_of_the_theorem(here, steps)
    assert found.ours < 1e-12
    longer = step_size_of_the_theorem(here, 4 * steps)
    assert (longer.paper + 1) / (found.paper + 1) == pytest.approx(4.0, rel=1e-3)  # √K where it should be 1/√K
