"""Which runs train together, how long that takes, and what comes first."""

import json
from pathlib import Path

from benchmarks.training.queue.account import Entry, add_to_account, read_account
from benchmarks.training.queue.fleets import Job, form_jobs
from benchmarks.training.queue.plan import ordered
from benchmarks.training.queue.speeds import SECONDS_TO_START, Speeds, measured_speeds
from benchmarks.training.queue.wanted import Wanted, wanted_runs

SIX = tuple(f"{task}-{kind}" for kind in ("medium", "random") for task in ("halfcheetah", "hopper", "walker2d"))
SPEEDS = Speeds({"score": 100_000.0, "bear": 10_000.0})


def formed(line: Wanted, longest: float = float("inf"), begun: tuple[Job, ...] = ()) -> list[tuple[str, ...]]:
    return [job.datasets for job in form_jobs(wanted_runs([line]), SPEEDS.seconds, longest, begun)]


def test_runs_of_one_shape_train_together() -> None:
    wide = tuple(name for name in SIX if not name.startswith("hopper"))
    assert formed(Wanted("score", "", SIX, 300_000, 3)) == [wide, ("hopper-medium", "hopper-random")]
    # BEAR's authors use another kernel on halfcheetah, and that is another program
    bear = formed(Wanted("bear", "", SIX, 300_000, 3))
    assert [name for name in bear if any("halfcheetah" in each for each in name)] == [
        ("halfcheetah-medium", "halfcheetah-random")
    ]


def test_long_jobs_are_parted_by_data_sets_and_seeds_stay_together() -> None:
    line = Wanted("bear", "", SIX, 300_000, 3)
    parted = form_jobs(wanted_runs([line]), SPEEDS.seconds, 120.0)
    assert [len(job.datasets) for job in parted] == [1] * 6
    assert all(job.seeds == (0, 1, 2) for job in parted)


def test_what_has_begun_stays_as_it_is() -> None:
    line = Wanted("score", "", SIX, 300_000, 3)
    begun = Job(line, ("hopper-medium",), (0, 1, 2))
    assert ("hopper-medium",) not in formed(line, begun=(begun,))
    assert ("hopper-random",) in formed(line, begun=(begun,))
    again = Job.from_json(json.loads(json.dumps(begun.to_json())))
    assert again == begun


def test_the_most_value_a_minute_comes_first_and_what_has_begun_before_it() -> None:
    cheap = Job(Wanted("score", "", SIX, 300_000, 3), SIX[:2], (0, 1, 2))
    dear = Job(Wanted("bear", "", SIX, 300_000, 3), SIX[:2], (0, 1, 2))
    urgent = Job(Wanted("bear", "alpha=1.0", SIX, 300_000, 3, weight=20), SIX[:2], (0, 1, 2))
    begun = Job(Wanted("bear", "", SIX, 300_000, 3), SIX[2:4], (0, 1, 2))
    assert [planned.job for planned in ordered([dear, cheap, urgent], [begun], SPEEDS)] == [begun, urgent, cheap, dear]


def test_what_the_queue_measured_counts_more_than_a_table_of_speeds(tmp_path: Path) -> None:
    (tmp_path / "speed").mkdir()
    timed = {"rates": {"5": {"run_steps_per_second": 1_000.0}}, "provenance": {"device": {"platform": "gpu"}}}
    (tmp_path / "speed" / "gpu.json").write_text(json.dumps({"methods": {"cql": timed, "bear": timed}}))
    account = tmp_path / "account.csv"
    add_to_account(account, [Entry("a", "cql", "", 6, 100, 1_100, 30.0, 2.0, "finished", "GPU", "2026")])
    add_to_account(account, [Entry("b", "cql", "", 6, 0, 0, 30.0, 2.0, "failed", "none", "2026")])
    assert [entry.job for entry in read_account(account)] == ["a", "b"]
    speeds = measured_speeds(tmp_path, [tmp_path / "elsewhere.csv", account])
    assert (speeds.of("cql"), speeds.of("bear")) == (3_000.0, 1_000.0)
    assert not speeds.knows("uwac")
    job = Job(Wanted("cql", "", SIX, 3_000, 3), SIX[:1], (0, 1, 2))
    assert speeds.seconds(job) == SECONDS_TO_START + 3.0
