"""What docs/cluster.md prints is what is stored, and how the costs of a cluster are told apart."""

import json

import pytest

from benchmarks.cluster import overhead, tables
from score_rl.paper.evidence.documents import with_tables


def test_the_document_has_what_is_stored() -> None:
    text = tables.DOCUMENT.read_text()
    assert with_tables(text, "cluster", tables.TABLES) == text, "run: make tables"


def test_costs_follow_from_differences() -> None:
    """2 s once, 3 s for each fleet, and 5 % of training."""
    found = {
        "one": {"here": [10.0, 11.0, 90.0], "tasks": [15.0, 16.0, 95.0]},
        "several": {"here": [30.0, 31.0, 32.0], "tasks": [44.0, 45.0, 46.0]},
        "long": {"here": [111.0, 111.0, 111.0], "tasks": [121.0, 121.0, 121.0]},
    }
    costs = overhead.costs(found)
    assert costs["once, s"] == pytest.approx(2)
    assert costs["a fleet, s"] == pytest.approx(3)
    assert costs["while training, share"] == pytest.approx(0.05)
    assert costs["of a fleet of 10 minutes, share"] == pytest.approx(0.055)
    assert costs["of a fleet of 10 minutes that is alone, share"] == pytest.approx(0.05 + 5 / 600)


def test_every_stored_figure_says_where_it_comes_from() -> None:
    for name in tables.TABLES:
        for figures in json.loads((tables.RESULTS / f"{name}.json").read_text()).values():
            assert figures["provenance"]["code"]
            assert "uncommitted" not in figures["provenance"]["code"]
