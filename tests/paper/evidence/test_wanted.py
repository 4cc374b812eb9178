"""What is wanted and not stored is named, as jobs that benchmarks.training.methods takes."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from benchmarks.training.jobs import Job as ParsedJob
from score_rl.errors import InputError
from score_rl.paper.evidence import wanted
from score_rl.paper.evidence.records import Choice, Evidence, Result
from score_rl.paper.experiments.protocols import Protocol
from score_rl.report.published import paper_datasets

WANTED = wanted.read_wanted(Path(__file__).parents[3] / wanted.WANTED)


def everything() -> dict[tuple[str, str], Result]:
    """All scores that are wanted, in full."""
    return {
        (each.algorithm, each.dataset): Result(
            each.algorithm, each.dataset, "replica", 1, Protocol(each.updates, each.seeds, 10), [1.0], fresh=[1.0]
        )
        for each in WANTED
        if each.what == "scores"
    }


def test_nothing_is_missing_where_all_is_stored() -> None:
    assert wanted.missing(Evidence(everything(), wanted=WANTED)) == []


def test_grids_are_missing_until_their_choice_is_reported() -> None:
    whole = everything()["score", "hopper-expert"]
    choice = Choice("hopper-expert", 0.5, 0.96, (5, 6), 1.0, 1.0, Path("curves.csv"))
    assert wanted.without_grid(Evidence({}, choices=[choice], wanted=WANTED)) == paper_datasets()
    reported = Evidence({}, choices=[dataclasses.replace(choice, result=whole)], wanted=WANTED)
    assert wanted.without_grid(reported) == [d for d in paper_datasets() if d != "hopper-expert"]


def test_every_job_is_one_that_can_be_run() -> None:
    jobs = wanted.missing(Evidence({}, wanted=WANTED))
    assert {job.lacks for job in jobs} == {"not run"}
    named = {(job.algorithm, dataset) for job in jobs for dataset in job.datasets}
    assert named == set(everything())
    for job in jobs:
        parsed = ParsedJob.parse(str(job))
        assert parsed.datasets == job.datasets or set(parsed.datasets) == set(paper_datasets())
        assert (parsed.method, parsed.seeds) == (job.algorithm, job.seeds)
        assert parsed.steps == (200 if parsed.method == "morel" else job.updates)


def test_what_is_shorter_or_not_judged_again_is_missing() -> None:
    stored = everything()
    short, unjudged = ("cql", "hopper-medium"), ("bc", "walker2d-expert")
    stored[short] = dataclasses.replace(stored[short], protocol=Protocol(200_000, 3, 10))
    stored[unjudged] = dataclasses.replace(stored[unjudged], fresh=None)
    found = {str(job): job.lacks for job in wanted.missing(Evidence(stored, wanted=WANTED))}
    assert found == {
        "bc:1000000:5:walker2d-expert": "the policies in 100 episodes",
        "cql:1000000:3:hopper-medium": "200k × 3 so far",
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("curves,score,hopper-medium,1,1", "line 2: what is 'curves'; it must be scores or grid"),
        ("scores,dqn,hopper-medium,1,1", "unknown algorithm 'dqn'"),
        ("scores,score,hopper-medum,1,1", "did you mean 'hopper-medium'"),
    ],
)
def test_a_table_of_what_does_not_exist_is_refused(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "wanted.csv").write_text(f"what,algorithm,dataset,updates,seeds\n{line}\n")
    with pytest.raises(InputError, match=message):
        wanted.read_wanted(tmp_path / "wanted.csv")


def test_times_come_from_gpus_that_have_timed_the_method() -> None:
    def timed(platform: str, **rates: Any) -> dict[str, dict[str, dict[str, Any]]]:
        device = {"platform": platform, "kind": f"a {platform}"}
        return {"methods": {"cql": {"rates": {n: {"run_steps_per_second": r} for n, r in rates.items()},
                                    "provenance": {"device": device}}}}  # fmt: skip

    job = wanted.Job("cql", 1_000_000, 3, ("hopper-medium",), "")
    speeds = {Path("a"): timed("gpu", **{"1": 1_000.0, "5": 3_000.0}), Path("b"): timed("cpu", **{"1": 1.0})}
    assert wanted.seconds(job, speeds) == {"a gpu": pytest.approx(3_000_000 / 2_000)}
    alone = {Path("a"): timed("gpu", **{"1": 1_000.0})}
    assert wanted.seconds(job, alone) == {"a gpu": pytest.approx(3_000)}
    assert wanted.seconds(wanted.Job("sac-n", 200_000, 2, ("hopper-medium",), ""), speeds) == {}
