"""The table of wanted results, and what of it is missing."""

import dataclasses
from pathlib import Path

import pytest

from benchmarks.training.queue.wanted import COLUMNS, TABLE, Wanted, missing, read_table
from score_rl.errors import InputError
from score_rl.report.results import RunResult
from score_rl.store.records import config_json
from tests.paper.evidence.made_up import curve_of

CQL = Wanted("cql", "", ("hopper-medium", "hopper-random"), 300_000, 2)


def table(folder: Path, *lines: str) -> list[Wanted]:
    path = folder / "wanted.csv"
    path.write_text("\n".join([",".join(COLUMNS), *lines]) + "\n")
    return read_table(path)


def stored(line: Wanted, dataset: str, seed: int, steps: int | None = None) -> RunResult:
    name = f"{dataset}-recollected" if dataset.endswith("-medium") else f"replica:{dataset}"
    run = curve_of(line.method, name, [1.0] * 5, steps or line.steps, seed=seed)
    return dataclasses.replace(run, config=config_json(line.config(dataset)), fresh_scores={100: 1.0})


def left(line: Wanted, *runs: RunResult) -> list[tuple[str, int]]:
    return [(run.dataset, run.seed) for run in missing([line], runs, fresh=100)]


def test_the_table_here_names_what_exists() -> None:
    lines = read_table(TABLE)
    assert {line.method for line in lines} >= {"score", "morel", "uwac", "pbrl-prior"}
    assert next(line for line in lines if line.settings == "batch_size=100").given()["batch_size"] == 100


def test_schedules_are_as_long_as_the_runs_and_iterations_stand_for_updates(tmp_path: Path) -> None:
    score, morel = table(tmp_path, "1,score,,six,300000,3", "1,morel,,hopper-medium,300000,3")
    assert list(score.given().values()) == [3_000]  # updates between two decays; 10,000 of a million
    assert (score.steps, morel.steps) == (300_000, 300)
    assert score.datasets[:3] == ("halfcheetah-medium", "hopper-medium", "walker2d-medium")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1,cql,,hopper-mediun,300000,3", "hopper-mediun"),
        ("1,cqll,,six,300000,3", "cqll"),
        ("1,cql,betta=1,six,300000,3", "betta"),
        ("1,cql,,six,0,3", "more than 0"),
        ("1,morel,,six,300500,3", "no whole number"),
        ("1,cql,,six,many,3", "whole numbers"),
    ],
)
def test_a_line_that_names_nothing_real_is_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        table(tmp_path, line)


def test_only_what_is_stored_with_the_same_settings_and_length_is_not_missing() -> None:
    everything = [("hopper-medium", 0), ("hopper-medium", 1), ("hopper-random", 0), ("hopper-random", 1)]
    assert left(CQL) == everything
    assert left(CQL, stored(CQL, "hopper-medium", 1)) == [everything[0], *everything[2:]]
    assert left(CQL, stored(CQL, "hopper-medium", 1, steps=200_000)) == everything
    other = dataclasses.replace(CQL, settings="batch_size=100")
    assert left(CQL, stored(other, "hopper-medium", 1)) == everything
    assert left(other, stored(other, "hopper-medium", 1)) == [everything[0], *everything[2:]]


def test_a_run_counts_once_its_last_policy_was_judged_or_it_has_diverged() -> None:
    run = stored(CQL, "hopper-medium", 0)
    assert ("hopper-medium", 0) in left(CQL, dataclasses.replace(run, fresh_scores={10: 1.0}))
    assert ("hopper-medium", 0) not in left(CQL, dataclasses.replace(run, fresh_scores={}, status="diverged"))
    assert ("hopper-medium", 0) in left(CQL, dataclasses.replace(run, status="training"))
