"""The verdicts in a terminal: nothing is cut and no name is broken, whatever its width."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from score_rl.cli.judge import verdict_table

ESTIMATE = SimpleNamespace(value=1.394, difference=0.2531, difference_low=-0.2344, difference_high=1.0712)
RUN = SimpleNamespace(
    verdict="not distinguishable",
    estimates={"fitted Q": ESTIMATE, "model": ESTIMATE},
    distance=SimpleNamespace(moved=(0.4, 0.5), unknown=0.01),
    rank_value=0.0,
)
BEHAVIOUR = {"fitted Q": ESTIMATE, "model": ESTIMATE}
DATA = SimpleNamespace(name="plant", runs={"plant_seed=0": RUN}, behaviour=BEHAVIOUR, recorded=1.353)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_words_and_intervals_stay_whole(width: int) -> None:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(verdict_table(DATA, width))
    said = out.getvalue()
    assert all(len(line) <= width for line in said.splitlines())
    for word in ("plant_seed=0", "distinguishable", "behaviour", "fitted Q", "model", "-0.234 to"):
        assert word in said, word
    assert "…" not in said
    assert ("unknown" in said) == (width >= 90)
