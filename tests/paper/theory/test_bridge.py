import numpy as np
import pytest

from score_rl.errors import InputError
from score_rl.paper.theory.bridge import GAMMA, Training, exact_action_value, exact_value, query_points, reward, step


def test_the_exact_value_matches_a_rollout() -> None:
    policy_of = lambda s: np.tanh(0.5 - s)  # noqa: E731
    grid = np.linspace(-1.0, 1.0, 401)
    value = exact_value(policy_of(grid))
    s = np.array([-0.9, -0.2, 0.33, 0.8])
    a = np.array([0.5, -1.0, 0.9, 0.0])
    q, state, action = np.zeros(4), s, a
    for t in range(300):
        q += GAMMA**t * reward(state, action)
        state = step(state, action)
        action = policy_of(state)
    np.testing.assert_allclose(exact_action_value(value, s, a), q, atol=2e-3)


def test_rewards_lie_in_the_unit_interval() -> None:
    s, a = query_points(41)
    assert s.shape == a.shape == (41 * 41,)
    assert reward(s, a).min() >= 0.0
    assert reward(s, a).max() <= 1.0


def test_trainings_that_cannot_be_run_are_refused() -> None:
    for wrong in ({"critics": 1}, {"steps": 10, "checkpoints": 9}, {"samples": 0}):
        with pytest.raises(InputError):
            Training(**wrong)
