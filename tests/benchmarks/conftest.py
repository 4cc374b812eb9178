"""The scripts in benchmarks/ import each other by name, as they do when one of them is run."""

import functools
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))


@pytest.fixture
def hastily(monkeypatch):
    """Intervals from few resamples: these results are far apart."""
    import claims
    import evidence

    few = functools.partial(evidence.aggregates, repetitions=50)
    monkeypatch.setattr(claims, "aggregates", few)
    monkeypatch.setattr(evidence, "aggregates", few)
