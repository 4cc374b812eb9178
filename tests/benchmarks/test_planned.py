"""What is planned and not stored is named, as jobs that methods.py takes."""

import dataclasses
from pathlib import Path

import methods
import planned
import pytest
from measured import Choice, Result, Stored

from score_rl.paper.experiments.protocols import Protocol
from score_rl.report.paper import paper_datasets


def everything():
    """All that is planned, in full."""
    return {
        (cells.algorithm, dataset): Result(
            cells.algorithm, dataset, "replica", 1, Protocol(cells.updates, cells.seeds, 10), [1.0], fresh=[1.0]
        )
        for cells in planned.PLANNED
        for dataset in cells.datasets
    }


def test_nothing_is_missing_where_all_is_stored():
    assert planned.missing(Stored(everything())) == []


def test_grids_are_missing_until_their_choice_is_reported():
    whole = everything()["score", "hopper-expert"]
    choice = Choice("hopper-expert", 0.5, 0.96, (5, 6), 1.0, 1.0, Path("scores.csv"))
    assert planned.without_grid(Stored({}, choices=[choice])) == paper_datasets()
    reported = Stored({}, choices=[dataclasses.replace(choice, result=whole)])
    assert planned.without_grid(reported) == [d for d in paper_datasets() if d != "hopper-expert"]


def test_every_job_is_one_that_can_be_run():
    jobs = planned.missing(Stored({}))
    assert {job.lacks for job in jobs} == {"not run"}
    named = {(job.algorithm, dataset) for job in jobs for dataset in job.datasets}
    assert named == set(everything())
    for job in jobs:
        method, steps, seeds, data = str(job).split(":")
        assert tuple(methods.chosen(data)) == job.datasets or set(methods.chosen(data)) == set(paper_datasets())
        assert (method, int(seeds)) == (job.algorithm, job.seeds)
        assert int(steps) == (200 if method == "morel" else job.updates)


def test_what_is_shorter_or_not_judged_again_is_missing():
    stored = everything()
    short, unjudged = ("cql", "hopper-medium"), ("bc", "walker2d-expert")
    stored[short] = dataclasses.replace(stored[short], protocol=Protocol(200_000, 3, 10))
    stored[unjudged] = dataclasses.replace(stored[unjudged], fresh=None)
    found = {str(job): job.lacks for job in planned.missing(Stored(stored))}
    assert found == {
        "bc:1000000:5:walker2d-expert": "the policies in 100 episodes",
        "cql:1000000:3:hopper-medium": "200k × 3 so far",
    }


def test_times_come_from_gpus_that_have_timed_the_method():
    def timed(platform, **rates):
        device = {"platform": platform, "kind": f"a {platform}"}
        return {"methods": {"cql": {"rates": {n: {"run_steps_per_second": r} for n, r in rates.items()},
                                    "provenance": {"device": device}}}}  # fmt: skip

    job = planned.Job("cql", 1_000_000, 3, ("hopper-medium",), "")
    speeds = {Path("a"): timed("gpu", **{"1": 1_000.0, "5": 3_000.0}), Path("b"): timed("cpu", **{"1": 1.0})}
    assert planned.seconds(job, speeds) == {"a gpu": pytest.approx(3_000_000 / 2_000)}
    alone = {Path("a"): timed("gpu", **{"1": 1_000.0})}
    assert planned.seconds(job, alone) == {"a gpu": pytest.approx(3_000)}
    assert planned.seconds(planned.Job("sac-n", 200_000, 2, ("hopper-medium",), ""), speeds) == {}
