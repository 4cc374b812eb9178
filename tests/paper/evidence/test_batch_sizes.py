"""SCORE's two batch sizes: only runs that agree in all else stand side by side."""

from pathlib import Path

from score_rl.paper.evidence.batch_sizes import batch_size, pairs
from score_rl.paper.evidence.reading import collect, read_variants
from score_rl.paper.evidence.records import Evidence
from tests.paper.evidence.made_up import runs

SHORT = 300_000


def evidence(smaller_steps: int = SHORT) -> Evidence:
    """Batch 256 for 300 k and 1 M updates, and batch 100."""
    usual = runs("score", "replica:hopper-medium", [60, 61, 62], SHORT, folder="usual", batch_size=256)
    usual += runs("score", "replica:hopper-medium", [90, 90, 90, 90, 90], folder="longer", batch_size=256)
    smaller = runs("score", "replica:hopper-medium", [70, 71, 72], smaller_steps, folder="smaller", batch_size=100)
    other = runs("score", "replica:hopper-medium", [1, 2, 3], SHORT, folder="beta", beta=0.5, batch_size=100)
    return Evidence(
        collect([*usual, *smaller]).results,
        collect([*usual, *smaller]).others,
        variants=read_variants([*usual, *smaller, *other]),
    )


def test_the_same_protocol_stands_side_by_side() -> None:
    ((usual, smaller),) = pairs(evidence())
    assert list(usual.scores) == [60, 61, 62]
    assert list(smaller.scores) == [70, 71, 72]
    text = batch_size(evidence(), Path())
    assert "+10.0 (no)" in text
    assert "hopper-medium" in text


def test_other_lengths_are_not_compared() -> None:
    assert not list(pairs(evidence(smaller_steps=100_000)))
    assert "not measured yet" in batch_size(Evidence({}), Path())
