"""Where an environment says whether its task was solved, people read "success", and not "normalised score"."""

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from rich.console import Console

from score_rl.cli.results import runs_table
from score_rl.report.grouping import group
from score_rl.report.page import write_report
from score_rl.report.page_text import quantity_of
from score_rl.report.results import RETURN, SCORE, SUCCESS, Curve, RunResult, score_name
from score_rl.report.stored_results import store_results


def run(dataset: str, *metrics: str, seed: int = 0) -> RunResult:
    curves = {name: Curve(np.array([10, 20]), np.array([10.0, 40.0 + seed])) for name in metrics}
    return RunResult(
        folder=Path("runs"), name=f"{dataset}_seed={seed}", algorithm="iql", dataset=dataset, environment="x",
        task=None, seed=seed, config={}, status="finished", step=20, steps=20, curves=curves,
        request={"eval_episodes": 50}, data={"checksum": dataset},
    )  # fmt: skip


SOLVING, HOPPING = run("ogbench:cube", SCORE, SUCCESS, RETURN), run("replica:hopper-medium", SCORE, RETURN)


def test_scores_are_called_what_they_are() -> None:
    assert score_name([SOLVING]) == "success"
    assert score_name([HOPPING]) == "normalised score"
    assert score_name([SOLVING, HOPPING]) == "score"
    assert score_name([]) == score_name([run("logs", RETURN)]) == "normalised score"
    assert quantity_of(SCORE, group([SOLVING])) == "success (%)"
    assert quantity_of(RETURN, group([SOLVING])) == "return"


def test_the_page_says_success(tmp_path: Path) -> None:
    seeds = [run("ogbench:cube", SCORE, SUCCESS, RETURN, seed=seed) for seed in range(3)]
    store_results(seeds, tmp_path / "kept")
    write_report([tmp_path / "kept"], tmp_path / "page")
    text = (tmp_path / "page" / "index.html").read_text()
    assert "Scores are success: the share of the episodes that solved the task, in percent." in text
    assert "success (%)" in text
    assert "normalised score" not in text


class Experiment:
    """What the table asks an experiment of two runs: what is known of the behaviour policy. That is nothing."""

    spec = SimpleNamespace(eval_episodes=10)
    record = SimpleNamespace(datasets={SOLVING.dataset: SimpleNamespace(to_json=dict)})

    def __len__(self) -> int:
        return 2


def test_the_terminal_says_success() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(runs_table(Experiment(), [SOLVING], SCORE, 100))
    assert "success, mean ± std over episodes" in console.export_text()
