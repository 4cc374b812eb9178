"""Tiny jobs side by side: trained, stopped, taken elsewhere, gone on with."""

import dataclasses
import json
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.training.jobs import DataFolder
from benchmarks.training.queue import __main__ as queue
from benchmarks.training.queue import packing
from benchmarks.training.queue.account import ACCOUNT, Entry, add_to_account, read_account
from benchmarks.training.queue.conditions import Conditions
from benchmarks.training.queue.data import Collecting
from benchmarks.training.queue.fleets import Job
from benchmarks.training.queue.packing import Packing, Room
from benchmarks.training.queue.parcels import Pack, Unpack, pack, unpack
from benchmarks.training.queue.plan import Planned
from benchmarks.training.queue.wanted import Wanted, stored_runs
from score_rl.errors import InputError
from score_rl.report.stored_results import store_results
from score_rl.store.records import config_json
from tests.paper.evidence.made_up import curve_of


def plan(*seconds: float, datasets: tuple[str, ...] = ("hopper-random", "walker2d-random")) -> list[Planned]:
    return [
        Planned(Job(Wanted("bc", "", datasets, 100 * (n + 1), 3), datasets, (0, 1, 2)), each)
        for n, each in enumerate(seconds)
    ]


def next_jobs(room: Room, *seconds: float) -> list[tuple[int, int] | None]:
    """Length and number of data sets of the jobs that would be started, one after the other."""
    conditions = Conditions(Path("sources"), Path("work"), Path("results"))
    packed = Packing(plan(*seconds), conditions, room, Console(quiet=True))
    found = [packed._next() for _ in range(len(seconds) + 1)]
    return [None if each is None else (each.job.line.updates, len(each.job.datasets)) for each in found]


def test_what_ends_in_time_goes_first_then_parts_of_jobs_then_what_is_interrupted() -> None:
    room = Room(seconds=130.0, slots=1, memory_share=1.0, cores=(0,))
    assert next_jobs(room, 500.0, 150.0, 90.0) == [(200, 1), (200, 1), (300, 2), (100, 2)]
    strict = Room(seconds=130.0, slots=1, memory_share=1.0, cores=(0,), only_what_ends=True)
    assert next_jobs(strict, 500.0, 90.0) == [(200, 2), None, None]


def test_jobs_share_the_cores_and_none_has_fewer_than_judging_needs() -> None:
    room = Room(60.0, slots=8, memory_share=0.3, cores=tuple(range(16)))
    parts = [room.cores_of(slot) for slot in range(8)]
    assert {len(part) for part in parts} == {4}
    assert set().union(*parts) == set(range(16))
    assert Room(60.0, 4, 0.3, (0, 1)).cores_of(3) == [1, 0]


def test_parcels_keep_the_newest_checkpoints_and_name_what_does_not_fit(tmp_path: Path) -> None:
    work, results = tmp_path / "work", tmp_path / "results"
    for job, size in (("small", 100), ("large", 60_000)):
        folder = work / "jobs" / job / "run" / "fleet-0"
        folder.mkdir(parents=True)
        (folder / "step-0000000010.safetensors").write_bytes(b"old")
        (folder / "step-0000000020.safetensors").write_bytes(b"n" * size)
        (work / "jobs" / job / "job.json").write_text("{}")
    (results / "done").mkdir(parents=True)
    (results / "done" / "summary.json").write_text("kept")
    assert pack(Pack(tmp_path / "out", work, results, files=3, mib=0.01)) == ["large"]
    parts = sorted((tmp_path / "out").iterdir())
    assert 1 <= len(parts) <= 3
    assert all(part.stat().st_size <= 0.01 * 2**20 for part in parts)
    unpack(Unpack(tmp_path / "out", tmp_path / "work-2", tmp_path / "results-2"))
    assert (tmp_path / "results-2" / "done" / "summary.json").read_text() == "kept"
    found = {path.name for path in (tmp_path / "work-2" / "jobs").rglob("*") if path.is_file()}
    assert found == {"job.json", "step-0000000020.safetensors"}
    assert not (tmp_path / "work-2" / "jobs" / "large").exists()


def test_parcels_bring_ogbench_s_results_and_lines_of_the_account(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    old, new = (Entry(name, "bc", "", 6, 0, 100, 3.0, 2.0, "finished", "GPU", "2026") for name in ("old", "new"))
    add_to_account(there / ACCOUNT, [new])
    add_to_account(here / ACCOUNT, [old])
    stored = tmp_path / "ogbench" / "results" / "ogbench-scene-bc" / "summary.json"
    stored.parent.mkdir(parents=True)
    stored.write_text("kept")
    (tmp_path / "ogbench" / "train-scene-bc.log").write_text("said")
    assert pack(Pack(tmp_path / "out", tmp_path / "work", there, ogbench=tmp_path / "ogbench")) == []
    to = Unpack(tmp_path / "out", tmp_path / "work-2", here, tmp_path / "checkout")
    unpack(to)
    unpack(to)  # a second time adds nothing
    assert [entry.job for entry in read_account(here / ACCOUNT)] == ["old", "new"]
    assert (tmp_path / "checkout" / "ogbench-scene-bc" / "summary.json").read_text() == "kept"
    assert (tmp_path / "work-2" / "logs" / "train-scene-bc.log").read_text() == "said"


def test_results_that_are_too_large_leave_the_others_room(tmp_path: Path) -> None:
    for name, size in (("large", 60_000), ("small", 10)):
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "results" / name / "summary.json").write_bytes(b"x" * size)
    asked = Pack(tmp_path / "out", tmp_path / "work", tmp_path / "results", files=2, mib=0.02)
    assert pack(asked) == ["large"]
    unpack(Unpack(tmp_path / "out", tmp_path / "w", tmp_path / "r", tmp_path / "o"))
    assert (tmp_path / "r" / "small" / "summary.json").exists()


def test_what_came_home_finished_is_not_gone_on_with(tmp_path: Path) -> None:
    table = tmp_path / "wanted.csv"
    table.write_text("weight,method,settings,datasets,updates,seeds\n1,bc,,hopper-random,100,1\n")
    asked = queue.Arguments(work=tmp_path / "work", results=tmp_path / "results", table=table, fresh_episodes=0)
    (planned,), _ = queue.planned(asked)
    folder = asked.conditions.jobs / planned.job.name
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps(planned.job.to_json()))
    assert [each.begun for each in queue.planned(asked)[0]] == [True]
    line = planned.job.line
    run = curve_of("bc", "replica:hopper-random", [1.0], 100, seed=0)
    store_results([dataclasses.replace(run, config=config_json(line.config("hopper-random")))], asked.results / "done")
    assert queue.planned(asked)[0] == []


def test_data_are_collected_in_order_and_a_few_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path))
    started: dict[str, list[int | None]] = {}

    class Process:
        def __init__(self, name: str) -> None:
            self.code = started.setdefault(name, [None])

        def poll(self) -> int | None:
            return self.code[0]

    monkeypatch.setattr(Collecting, "_start", lambda self, name: Process(name))
    names = [f"{task}-random" for task in ("hopper", "walker2d", "halfcheetah")]
    collecting = Collecting(DataFolder(tmp_path, tmp_path), [*names, *names, "hopper-medium"], tmp_path)
    assert collecting.go_on() == {}
    assert list(started) == names, "three at a time, each once"
    started["walker2d-random"][0] = 1
    (tmp_path / "data-walker2d-random.log").write_text("no space left")
    assert collecting.go_on() == {"walker2d-random": "no space left"}
    assert list(started) == [*names, "hopper-medium"]
    assert collecting.go_on() == {}, "told once"


def test_a_gpu_is_not_kept_waiting_for_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lacks hopper_medium-v2.hdf5, whose policies.*--sources"):
        queue.refuse_missing_sources(DataFolder(tmp_path, tmp_path), ["hopper-medium", "hopper-random"])
    (tmp_path / "hopper_medium-v2.hdf5").touch()
    queue.refuse_missing_sources(DataFolder(tmp_path, tmp_path), ["hopper-medium", "hopper-random"])
    with pytest.raises(InputError, match="trials on fewer rows"):
        queue.main(queue.Arguments(transitions=2_000))


@pytest.mark.slow
def test_a_queue_is_stopped_taken_elsewhere_and_worked_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packing, "SECONDS_TO_STOP", 15.0)
    table = tmp_path / "wanted.csv"
    table.write_text(
        "weight,method,settings,datasets,updates,seeds\n"
        '1,bc,"hidden=16,16",hopper-random,40,2\n'
        '1,td3-bc,"hidden=64,64",walker2d-random,500000,1\n'
    )

    def asked(work: str, minutes: float) -> queue.Arguments:
        return queue.Arguments(
            minutes=minutes, sources=tmp_path, work=tmp_path / work, results=tmp_path / "results", table=table, slots=2,
            transitions=2_000, evaluate_every=100_000, evaluation_episodes=2, fresh_episodes=2,
        )  # fmt: skip

    assert queue.main(asked("first", 1.2)) == 0
    entries = {entry.method: entry for entry in read_account(tmp_path / "results" / ACCOUNT)}
    assert entries["bc"].outcome == "finished"
    assert entries["td3-bc"].outcome == "interrupted"
    reached = entries["td3-bc"].updates_after
    assert 0 < reached < 500_000
    assert [(run.algorithm, run.seed) for run in stored_runs(tmp_path / "results")] == [("bc", 0), ("bc", 1)]

    first, second = asked("first", 1).conditions, asked("second", 1).conditions
    pack(Pack(tmp_path / "parcel", first.work, first.results))
    unpack(Unpack(tmp_path / "parcel", second.work, second.results))
    (job,) = second.jobs.iterdir()
    told = json.loads((job / "job.json").read_text())
    assert told["line"]["method"] == "td3-bc"
    capsys.readouterr()
    assert queue.main(asked("second", 0.9)) == 0
    last = read_account(tmp_path / "results" / ACCOUNT)[-1]
    assert (last.method, last.updates_before) == ("td3-bc", reached)
    assert last.updates_after > reached
