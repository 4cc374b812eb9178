"""The judge on a plant whose simulator it does not see: what it says against what policies truly earn."""

from functools import cache

import numpy as np
import pytest

from score_rl.judge.evidence import Evidence
from score_rl.store.judgements import BETTER, DOUBTFUL, WORSE, DataJudgement, rank_of
from tests.judge.heating_logs import always, judged, logs
from tests.plants import heating

POLICIES = {
    "good": heating.controller(gain=60.0, offset=50.0, pump=1400.0),
    "poor": heating.poor,
    "full power": always(250.0, 2400.0),
    "off": always(0.0, 600.0),
}


@cache
def judgement(seed: int) -> DataJudgement:
    return judged(seed, POLICIES)


def check(seed: int) -> None:
    """The good one is above the behaviour and said to be; none of the ruined ones is, nor comes near it."""
    truth = {name: heating.returns(policy).mean() for name, policy in POLICIES.items()}
    own = heating.returns(heating.behaviour).mean()
    assert truth["good"] > own > max(truth[name] for name in ("poor", "full power", "off"))
    runs = judgement(seed).runs
    assert runs["good"].verdict == BETTER, runs["good"]
    assert rank_of(runs["good"]) > 0
    for name in ("poor", "full power", "off"):
        assert runs[name].verdict in (WORSE, DOUBTFUL), (name, runs[name])
        assert rank_of(runs[name]) < 0, (name, runs[name])


def test_a_good_policy_is_told_from_ruined_ones() -> None:
    check(0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_good_policy_is_told_from_ruined_ones_whatever_the_logs(seed: int) -> None:
    check(seed)


def test_the_behaviour_is_judged_as_what_it_earned() -> None:
    found = judgement(0)
    assert found.recorded == pytest.approx(-1.22, abs=0.1)
    for name, estimate in found.behaviour.items():
        assert estimate.value == pytest.approx(found.recorded, abs=0.15), name


def test_lengths_do_not_change_a_value_per_step() -> None:
    """The same rewards in short and in long trajectories are worth the same; sums over episodes are not."""
    dataset = logs(0, episodes=60)
    lengths = np.diff(dataset.trajectories, axis=1)[:, 0]
    assert np.ptp(lengths) > 40
    evidence = Evidence(dataset, 0.98)
    short, long = lengths < np.median(lengths), lengths >= np.median(lengths)
    of_short = evidence.earned[short].sum() / evidence.time[short].sum()
    of_long = evidence.earned[long].sum() / evidence.time[long].sum()
    assert of_short == pytest.approx(of_long, rel=0.15)
    assert evidence.earned[short].mean() > 1.3 * evidence.earned[long].mean()  # costs: less than 0
