"""What the documents say of experiments: each name has its command, and commands parse."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from score_rl.cli.experiment import EXPERIMENT_COMMANDS, with_default_folder
from score_rl.cli.report import ReportArguments
from score_rl.cli.terminal import parse
from score_rl.paper.experiments.registry import EXPERIMENTS, get_experiment

CHECKOUT = Path(__file__).parents[3]
STORED = CHECKOUT / "benchmarks" / "results" / "experiments"
TEXT = (CHECKOUT / "docs" / "reproduce.md").read_text()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_table_and_figure_has_its_command_and_its_stored_result(name: str) -> None:
    (row,) = [line for line in TEXT.splitlines() if f"`score experiment run {name}`" in line]
    assert EXPERIMENTS[name].paper.partition(":")[0] in row.lower()
    assert (f"(../benchmarks/results/experiments/{name})" in row) == (STORED / name).is_dir()
    assert ("none yet" in row) == (not (STORED / name).is_dir() and "results.md" not in row)


def commands() -> list[str]:
    found = re.findall(r"`(score (?:experiment run|report) [^`]+)`", TEXT)
    return sorted({command for command in found if "FOLDER" not in command and "NAME" not in command})


@pytest.mark.parametrize("command", commands())
def test_every_command_is_one(command: str) -> None:
    _, kind, *rest = shlex.split(command)
    if kind == "report":
        assert parse(ReportArguments, rest, "score report").runs
        return
    asked: Any = parse(EXPERIMENT_COMMANDS["run"], with_default_folder(rest[1:]), "score experiment run")
    assert [get_experiment(name).name for name in asked.names]
