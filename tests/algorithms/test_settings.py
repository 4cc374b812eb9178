"""Settings: their limits in words, their groups, and what `make_config` makes of plain values."""

import dataclasses
import re
from types import SimpleNamespace
from typing import Any

import jax
import pytest

from score_rl.algorithms.registry import algorithm_names, get_algorithm
from score_rl.algorithms.score import Config
from score_rl.algorithms.settings import HEADINGS, Limits, config, grouped, make_config, setting
from score_rl.errors import InputError

NAMES = algorithm_names()


def test_limits_say_what_they_allow() -> None:
    said = {
        "0 or more": Limits(minimum=0), "between 0 and 1": Limits(minimum=0, maximum=1),
        "above 0 and at most 1": Limits(above=0, maximum=1), "above 0 and below 1": Limits(above=0, below=1),
        "0 or more and below 1": Limits(minimum=0, below=1), "at most 3": Limits(maximum=3), "any number": Limits(),
    }  # fmt: skip
    for words, limits in said.items():
        assert str(limits) == words
    allowed = {number: Limits(above=0, maximum=1).allow(number) for number in (-1, 0, 0.5, 1, 1.5, float("nan"))}
    assert allowed == {-1: False, 0: False, 0.5: True, 1: True, 1.5: False} | {n: False for n in allowed if n != n}


@config
class Numbers:
    rate: float = setting(0.5, "a share", maximum=1)
    widths: tuple[int, ...] = setting((4, 4), "widths", minimum=1)
    shift: float = setting(0.0, "any number", minimum=None)
    count: int = setting(3, "a count", above=0)


NUMBERS = SimpleNamespace(name="numbers", Config=Numbers)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"rate": -0.1}, "rate is -0.1; it must be between 0 and 1."),
        ({"rate": 2}, "rate is 2.0; it must be between 0 and 1."),
        ({"widths": "4,0"}, "widths is (4, 0); each number must be 1 or more."),
        ({"widths": ()}, "widths is empty; give at least one number, such as 256,256."),
        ({"count": 0}, "count is 0; it must be above 0."),
    ],
    ids=str,
)
def test_a_value_beyond_its_limit_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(said)}$"):
        make_config(NUMBERS, settings)


def test_values_at_their_limits_are_taken() -> None:
    made = make_config(NUMBERS, {"rate": 1, "widths": "1", "shift": -3, "count": 1})
    assert made == Numbers(rate=1.0, widths=(1,), shift=-3.0, count=1)


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_is_shown_once_under_a_heading(name: str) -> None:
    algorithm = get_algorithm(name)
    groups = grouped(algorithm.Config)
    shown = [field.name for fields in groups.values() for field in fields]
    assert sorted(shown) == sorted(field.name for field in dataclasses.fields(algorithm.Config))
    assert list(groups) == [heading for heading in HEADINGS.values() if heading in groups]


def test_score_shows_the_papers_eight_first() -> None:
    first, *_ = grouped(Config).values()
    eight = ["beta", "bc_decay", "bc_decay_every", "critics", "actor_delay", "tau", "target_noise", "target_noise_clip"]
    assert [field.name for field in first] == eight


def test_the_order_of_the_leaves_stays() -> None:
    """Compiled programs take them in this order. Another one rounds otherwise, and the same seed trains otherwise."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(Config())
    assert [jax.tree_util.keystr(path, simple=True) for path, _ in leaves] == [
        "beta", "bc_decay", "tau", "target_noise", "target_noise_clip", "alpha", "bc_weight", "discount",
        "critic_learning_rate", "actor_learning_rate", "perturbation", "mmd_threshold", "mmd_sigma", "next_beta",
        "dropout",
    ]  # fmt: skip
