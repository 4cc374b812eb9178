"""The verdicts in a terminal: nothing is cut and no name is broken, whatever its width."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from score_rl.cli.judge import next_step, verdict_table
from score_rl.store.judgements import BETTER, DOUBTFUL, SAME, WORSE

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
    for word in ("seed=0", "distinguishable", "behaviour", "fitted Q", "model", "-0.234 to"):
        assert word in said, word
    assert "…" not in said
    assert ("unknown" in said) == (width >= 90)


@pytest.mark.parametrize(("verdict", "colour"), [(BETTER, "32"), (SAME, "33"), (WORSE, "31"), (DOUBTFUL, "1;31")])
def test_only_what_is_better_is_green(verdict: str, colour: str) -> None:
    data = SimpleNamespace(
        **{**vars(DATA), "runs": {"plant_seed=0": SimpleNamespace(**{**vars(RUN), "verdict": verdict})}}
    )
    out = io.StringIO()
    Console(file=out, width=120, color_system="standard", force_terminal=True).print(verdict_table(data, 120))
    assert f"\x1b[{colour}m{verdict}" in out.getvalue()


def test_it_says_what_to_do_next() -> None:
    def told(*verdicts: str) -> str:
        runs = {f"run {n}": SimpleNamespace(verdict=verdict) for n, verdict in enumerate(verdicts)}
        return next_step(Path("runs/logs"), SimpleNamespace(runs=runs))

    assert "score export runs/logs --run best" in told(DOUBTFUL, BETTER)
    assert "keep the behaviour" in told(DOUBTFUL, SAME, WORSE)
