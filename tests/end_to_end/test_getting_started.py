"""docs/getting-started.md, command after command, on a table that a plant would keep; smaller in the fast test."""

import dataclasses
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from score_rl.judge import judging
from score_rl.judge.judging import EFFORTS
from tests.end_to_end.conftest import Outcome, Score
from tests.plants import heating
from tests.test_documents import blocks

PAGE = "docs/getting-started.md"
SMALL = "--steps 20 --config.hidden 8,8 --config.batch-size 8 --config.bc-decay-every 2 --quiet".split()  # noqa: SIM905
NOTHING_BETTER = "was judged better than what recorded the data"


def commands() -> Iterator[list[str]]:
    """Those of the page in their order, but for what installs."""
    for block in blocks(PAGE, "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("score "):
                yield shlex.split(line, comments=True)[1:]


@pytest.fixture
def logs(tmp_path: Path) -> Any:
    """The page's table, its rows in no order, and today's without what was done."""
    recorded = heating.record(30)
    heating.write_csv(tmp_path / "logs.csv", recorded, np.random.default_rng(0).permutation(len(recorded)))
    heating.write_csv(tmp_path / "today.csv", heating.record(2, seed=9))
    return recorded


def run_all(score: Score, change: Any) -> list[tuple[list[str], Outcome]]:
    done = []
    for command in commands():
        outcome = score(*change(command))
        if outcome.code == 2 and NOTHING_BETTER in outcome.err:
            outcome = score(*[word.replace("best", "heating_bc_seed=0") for word in command])
        assert outcome.code == 0, (command, outcome.err)
        done.append((command, outcome))
    return done


def smaller(command: list[str]) -> list[str]:
    """A short training of one seed; the judge is made smaller elsewhere."""
    if command[0] != "train":
        return command
    kept = [word for word in command if word not in ("--steps", "20000", "--config.bc-decay-every", "200", "1", "2")]
    return [*kept, *SMALL]


def test_from_a_csv_to_actions(score: Score, logs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = dataclasses.replace(
        EFFORTS["quick"], updates=20, density_updates=20, model_epochs=1, hidden=(8, 8), model_hidden=(8, 8)
    )
    monkeypatch.setitem(judging.EFFORTS, "quick", tiny)
    done = run_all(score, smaller)
    assert [command[0] for command, _ in done] == ["data", "data", "data", "train", "judge", "report", "export", "act"]
    proposed = done[0][1].out
    assert "score data import logs.csv" in proposed
    assert "--actions valve pump" in proposed
    assert "The rows were not sorted by trip and t; they are now." in done[1][1].out
    assert "on what was held out: score judge runs/heating" in done[3][1].out
    assert Path("page/index.html").exists()
    actions = pl.read_csv("actions.csv")
    today = pl.read_csv("today.csv")
    assert actions.columns[:4] == ["trip", "t", "valve", "pump"]
    assert actions["t"].to_list() == today["t"].to_list()
    assert actions["valve"].is_between(0, 250).all()
    assert actions["pump"].is_between(600, 2400).all()
    acting, _ = blocks(PAGE)
    names: dict[str, Any] = {}
    exec(acting, names)
    low, high = heating.ACTION_LOW, heating.ACTION_HIGH
    assert ((names["answer"]["actions"] >= low) & (names["answer"]["actions"] <= high)).all()
    assert [column["unit"] for column in names["about"]["observations"]] == [*["°C"] * 5, "l/h"]
    assert not names["answer"]["far"].any()


@pytest.mark.slow
def test_the_same_in_python(logs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a smaller training."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    small = "steps=20, config={'hidden': (8, 8), 'batch_size': 8}, quiet=True, out='again', "
    text, count = re.subn(r"score_rl\.train\(data, ", f"score_rl.train(data, {small}", blocks(PAGE)[1])
    assert count == 1
    names: dict[str, Any] = {}
    exec(text.replace("score_rl.judge(runs)", "score_rl.judge(runs, quiet=True)"), names)
    assert set(names["verdicts"].data[0].runs) == {run.id for run in names["runs"]}
    assert Path("cloned.onnx").exists()
