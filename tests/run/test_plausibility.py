"""Values that no rewards can add up to are noticed, and possible ones are not."""

from collections.abc import Callable
from typing import Any

import pytest

from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.data.dataset import Dataset
from score_rl.data.treatment import fit_treatment
from score_rl.engine.runs import Run
from score_rl.run.plausibility import ValueRange, value_range


def possible(dataset: Dataset, name: str = "score", **settings: Any) -> Any:
    algorithm = get_algorithm(name)
    config = make_config(algorithm, settings)
    treatment = fit_treatment(
        dataset,
        normalise_states=getattr(config, "normalise_states", False),
        reward_scaling=getattr(config, "reward_scaling", "none"),
    )
    return value_range(Run("one", algorithm, dataset, 0, config), treatment)


def test_the_range_is_that_of_the_scaled_rewards(make_recording: Callable[..., Dataset]) -> None:
    dataset = make_recording()
    scaled = possible(dataset)  # SCORE's rewards are between 0 and 1
    assert (scaled.least, scaled.most) == (pytest.approx(0.0, abs=1e-4), pytest.approx(100.0, rel=1e-5))
    raw = possible(dataset, "td3-bc", reward_scaling="none", discount=0.9)
    assert raw.least == pytest.approx(10 * dataset.rewards.min(), rel=1e-5)
    assert raw.most == pytest.approx(10 * dataset.rewards.max(), rel=1e-5)


def test_what_is_not_discounted_has_no_range(make_recording: Callable[..., Dataset]) -> None:
    assert possible(make_recording(), "bc") is None
    assert possible(make_recording(), discount=1.0) is None


def test_rewards_of_one_sign_still_allow_nothing_at_all(make_recording: Callable[..., Dataset]) -> None:
    """An episode may end at once."""
    dataset = make_recording()
    shifted = type(dataset)(**(vars(dataset) | {"rewards": dataset.rewards + 100}))
    assert possible(shifted, "td3-bc").least == 0


@pytest.mark.parametrize(
    ("q", "words"), [(144.0, "100 at most"), (-443.0, "0 at least"), (129.0, None), (60.0, None), (-150.0, None)]
)
def test_what_is_warned_of(q: float, words: str | None) -> None:
    warning = ValueRange(0.0, 100.0, 200.0).warning(q)
    assert (warning is None) == (words is None)
    assert words is None or words in str(warning)


def test_an_entropy_bonus_is_allowed_for() -> None:
    assert ValueRange(0.0, 100.0, 200.0).warning(300.0) is not None
    assert ValueRange(0.0, 100.0, 200.0).warning(300.0, temperature=1.0) is None
