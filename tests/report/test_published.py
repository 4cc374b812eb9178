"""The paper's table as it is printed."""

import numpy as np
import pytest

from score_rl.algorithms.registry import algorithm_names
from score_rl.report.published import (
    data_kind,
    paper_dataset,
    paper_datasets,
    paper_method,
    paper_methods,
    paper_table,
    printed,
)


def test_the_table_is_whole() -> None:
    assert len(paper_datasets()) == 15
    assert len(paper_methods()) == 10
    assert len(paper_table()) == 160
    assert printed("score", "replica:hopper-medium") == (99.6, 2.8)
    assert str(printed("score", "d4rl:hopper-medium-v2")) == "99.6 ± 2.8"


@pytest.mark.parametrize("method", paper_methods())
def test_the_overall_row_is_the_mean_of_the_others(method: str) -> None:
    """Except where the paper prints something else: its BCQ is 0.4 higher than its cells, its PBRL 0.1 lower."""
    cells = [paper_table()[dataset, method].mean for dataset in paper_datasets()]
    off = {"BCQ": 62.6 - 62.16, "PBRL": 76.6 - 76.67}.get(method, 0.0)
    assert paper_table()["overall", method].mean - np.mean(cells) == pytest.approx(off, abs=0.051)


@pytest.mark.parametrize(("name", "is_called"), [
    ("replica:hopper-medium", "hopper-medium"),
    ("d4rl:walker2d-medium-replay-v2", "walker2d-medium-replay"),
    ("hopper-medium-recollected", "hopper-medium"),
    ("halfcheetah_expert-v2", "halfcheetah-expert"),
    ("d4rl:hopper-full-replay-v2", None),
    ("my_logs", None),
])  # fmt: skip
def test_names_of_data_sets(name: str, is_called: str | None) -> None:
    assert paper_dataset(name) == is_called


@pytest.mark.parametrize(("name", "kind"), [
    ("d4rl:hopper-medium-v2", "D4RL"),
    ("hopper-medium-recollected", "re-collected"),
    ("replica:hopper-random", "uniform random"),
    ("replica:hopper-medium-replay", "replica"),
    ("hopper_medium-v2", "file"),
])  # fmt: skip
def test_data_are_called_what_they_are(name: str, kind: str) -> None:
    assert data_kind(name) == kind


def test_names_of_methods() -> None:
    ours = {paper_method(name) for name in algorithm_names()}
    assert ours - {None} == set(paper_methods()), "every method of the paper is one of ours"
    assert (paper_method("pbrl"), paper_method("pbrl-prior")) == ("PBRL w/o prior", "PBRL")
    assert paper_method("iql") is None
    assert printed("iql", "replica:hopper-medium") is None
    assert printed("score", "my_logs") is None
