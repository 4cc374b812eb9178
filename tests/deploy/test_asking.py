"""What can be asked of a run in Python: checked actions and values."""

import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.data.dataset import make_dataset
from score_rl.deploy.limits import BEYOND, distance, fit_limits
from score_rl.errors import InputError
from tests.deploy.trained import asked, logs, observations, policy
from tests.plants import heating


def test_no_recorded_observation_is_far_and_fresh_ones_hardly_ever() -> None:
    limits = fit_limits(logs(), None)
    assert not asked("bc").checked(logs().observations, limits).far.any()
    fresh = heating.record(episodes=40, seed=9).observations
    assert asked("bc").checked(fresh, limits).far.mean() < 0.01


def test_one_recorded_pair_in_a_hundred_is_unknown() -> None:
    run, limits = asked("score"), policy("score").limits
    assert limits is not None
    assert limits.uncertainty is not None
    recorded = run.uncertainty(logs().observations, logs().actions)
    assert (recorded > float(limits.uncertainty)).mean() == pytest.approx(0.01, abs=0.002)


def test_a_column_beyond_the_data_is_far() -> None:
    limits, run = fit_limits(logs(), None), asked("bc")
    inside = logs().observations.mean(axis=0)
    least, most = logs().observations.min(axis=0), logs().observations.max(axis=0)
    for column in range(len(inside)):
        for beyond, expected in ((0.5 * BEYOND, False), (1.5 * BEYOND, True)):
            seen = inside.copy()
            seen[column] = most[column] + beyond * (most - least)[column]
            assert run.checked(seen, limits).far or not expected
            reach = (seen - most)[column] / limits.margin[column]
            assert (float(reach) > 1) == expected


def test_a_combination_that_the_data_never_have_is_far() -> None:
    """Each number is one that was recorded."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(2_000, 1))
    together = make_dataset(
        "together",
        observations=np.hstack([base, base + 0.01 * rng.normal(size=base.shape), np.ones((2_000, 1))]),
        actions=rng.uniform(-1, 1, (2_000, 1)),
        rewards=rng.normal(size=2_000),
        terminals=np.zeros(2_000, bool),
        timeouts=np.arange(2_000) % 100 == 99,
    )
    limits = fit_limits(together, None)
    seen = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0, 1.5], [np.nan, 0.0, 1.0]], np.float32)
    found = np.asarray(distance(limits, jnp.asarray(seen)))
    assert found[0] < 1
    assert (found[1:3] > 1).all()
    assert not found[3] <= 1


def test_values_are_those_by_which_the_actor_moves() -> None:
    run, seen = asked("score"), observations(5)
    actions = run.actions(seen)
    np.testing.assert_allclose(run.value(seen, None), run.value(seen, actions), rtol=1e-5)
    assert run.value(seen[0], None).shape == ()
    worse = np.tile(heating.ACTION_HIGH.astype(np.float32), (5, 1))
    assert (run.value(seen, worse) != run.value(seen, actions)).all()
    with pytest.raises(InputError, match="lies between"):
        run.value(seen[0], [0.0, 5_000.0])


def test_iql_says_its_own_state_value() -> None:
    run, seen = asked("iql"), observations(5)
    treated = run.treatment.observe(jnp.asarray(seen))
    np.testing.assert_allclose(run.value(seen, None), run.state.value(treated)[:, 0], rtol=1e-5)
    assert (run.value(seen, None) != run.value(seen, run.actions(seen))).any()


def test_morel_says_what_its_policy_earns_in_the_model() -> None:
    run, seen = asked("morel"), observations(5)
    assert len(set(run.value(seen, None).tolist())) == 5
    with pytest.raises(InputError, match="learns no values of actions"):
        run.value(seen, run.actions(seen))


def test_methods_without_values_or_uncertainty_say_so() -> None:
    with pytest.raises(InputError, match="BC learns no values of actions; these do: score"):
        asked("bc").value(observations(1), None)
    limits = policy("bc").limits
    assert limits is not None
    answer = asked("bc").checked(observations(1), limits)
    assert answer.uncertainty is None
    assert answer.unknown is None
