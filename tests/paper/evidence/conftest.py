"""Intervals that are quick to make."""

import functools

import pytest

from score_rl.paper.evidence import method_claims, tables


@pytest.fixture
def hastily(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals from few resamples: these results are far apart."""
    few = functools.partial(tables.aggregates, repetitions=50)
    monkeypatch.setattr(method_claims, "aggregates", few)
    monkeypatch.setattr(tables, "aggregates", few)
