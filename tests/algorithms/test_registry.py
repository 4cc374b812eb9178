"""Algorithms by the names that people type."""

import pytest

from score_rl.algorithms.registry import algorithm_name, algorithm_names, get_algorithm
from score_rl.errors import InputError


def test_every_name_is_its_algorithms_own() -> None:
    assert [get_algorithm(name).name for name in algorithm_names()] == algorithm_names()


@pytest.mark.parametrize(
    ("written", "name"), [("CQL", "cql"), ("SCORE", "score"), ("td3_bc", "td3-bc"), ("TD3BC", "td3-bc")]
)
def test_capitals_and_hyphens_do_not_matter(written: str, name: str) -> None:
    assert algorithm_name(written) == name
    assert get_algorithm(written).name == name


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown algorithm 'sqore': did you mean 'score'"):
        get_algorithm("sqore")
