"""Methods trained on the paper's data sets, stored, and read again."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Never

import pytest

import score_rl
from benchmarks.training import jobs, methods, storing
from benchmarks.training.jobs import Job
from benchmarks.training.methods import Arguments
from score_rl.errors import Stopped
from score_rl.report.grouping import gather
from score_rl.store.lock import held


def test_what_a_job_trains_on() -> None:
    assert len(jobs.dataset_names("table")) == 15
    assert jobs.dataset_names("medium") == ["halfcheetah-medium", "hopper-medium", "walker2d-medium"]
    assert jobs.dataset_names("hopper-expert+walker2d-medium") == ["hopper-expert", "walker2d-medium"]
    assert jobs.method_and_settings("uwac,dropout_masks=pass,passes=50") == (
        "uwac",
        {"dropout_masks": "pass", "passes": 50},
    )
    assert jobs.folder_name("uwac,dropout_masks=pass:20:2:medium") == "uwac-dropout-masks-pass-20-2-medium"
    assert jobs.stored_name("hopper-medium") == "hopper-medium-recollected"
    assert jobs.stored_name("hopper-medium-replay") == "replica:hopper-medium-replay"


@pytest.mark.slow
def test_a_job_is_stored_and_read_by_the_report(tmp_path: Path) -> None:
    asked = methods.Arguments(
        sources=tmp_path, out=tmp_path, jobs=("bc:40:2:hopper-random+hopper-expert",), transitions=2_000,
        evaluations=2, episodes=2,
    )  # fmt: skip
    for _ in range(2):  # the second time there is nothing left to train
        methods.main(asked)
    folder = tmp_path / "results" / "bc-40-2-hopper-random-hopper-expert"
    runs = gather([folder])
    assert {(run.algorithm, run.dataset, run.seed) for run in runs} == {
        ("bc", f"replica:hopper-{kind}", seed) for kind in ("random", "expert") for seed in (0, 1)
    }
    for run in runs:
        assert set(run.fresh_scores) == {2}
        assert {"evaluation/score", "train/bc_error", "speed/updates_per_second"} == set(run.curves)
        assert run.curves["evaluation/score"].steps.tolist() == [20, 40]


def test_data_can_be_collected_before_anything_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))
    texts = ("bc:40:2:hopper-random+hopper-expert", "iql:40:1:hopper-expert")
    methods.main(methods.Arguments(tmp_path, tmp_path / "out", texts, transitions=1_000, collect=True))
    recorded = sorted(path.name for path in (tmp_path / "cache").rglob("*.hdf5"))
    assert len(recorded) == 2
    assert not any((tmp_path / "out").iterdir())


def test_data_of_later_jobs_are_collected_while_the_first_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("SCORE_RL_CACHE", str(cache))
    texts = ("bc:40:1:hopper-random", "bc:40:1:hopper-expert", "iql:40:1:hopper-expert")
    asked = methods.Arguments(tmp_path, tmp_path / "out", texts, transitions=1_000)
    with methods.collected_ahead(asked) as wait:
        assert len(list(cache.rglob("*random*.hdf5"))) == 1
        wait()
        assert len(list(cache.rglob("*expert*.hdf5"))) == 1
    missing = replace(asked, jobs=("bc:40:1:hopper-random", "bc:40:1:hopper-medium"))
    with methods.collected_ahead(missing) as wait, pytest.raises(SystemExit, match="could not be collected"):
        wait()  # there is no hopper_medium-v2.hdf5
    assert "hopper_medium-v2.hdf5" in capfd.readouterr().err


def test_what_was_stopped_is_stored_as_the_shorter_run_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seeds, of which one was judged twice and the other once."""
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))
    job = "bc:40:2:hopper-random"
    asked = methods.Arguments(tmp_path, tmp_path, (job,), transitions=1_000, evaluations=2)
    experiment, _ = methods.run(asked, Job.parse(job))
    stored = tmp_path / jobs.folder_name(job) / "metrics.csv"
    lines = stored.read_text().splitlines(keepends=True)
    late = [line for line in lines if "seed=1" in line and ",40,evaluation/" in line]
    stored.write_text("".join(line for line in lines if line not in late))
    assert late

    def stopped(asked: Arguments, job: Job) -> Never:
        raise Stopped("stopped at update 40 with a checkpoint")

    monkeypatch.setattr(methods, "run", stopped)
    with pytest.raises(SystemExit, match="bc:40:2:hopper-random: stopped at update 40"):
        methods.main(asked)
    folder = tmp_path / "results" / jobs.folder_name(job)
    runs = gather([folder])
    assert [(run.steps, run.step, run.status) for run in runs] == [(20, 20, "finished")] * 2
    assert {(run.request["steps"], run.request["steps_asked_for"]) for run in runs} == {(20, 40)}
    scores = [experiment.metrics.of(run.id).curve("evaluation/score")[1][0] for run in experiment]
    assert [run.score for run in runs] == pytest.approx(scores, rel=1e-5)
    assert ",40," not in (folder / "curves.csv").read_text()


def test_what_was_stopped_before_it_was_judged_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))
    job = "bc:40:1:hopper-random"
    asked = methods.Arguments(tmp_path, tmp_path, (job,), transitions=1_000, evaluations=2)
    experiment, _ = methods.run(asked, Job.parse(job))
    stored = tmp_path / jobs.folder_name(job) / "metrics.csv"
    lines = stored.read_text().splitlines(keepends=True)
    stored.write_text("".join(line for line in lines if "evaluation/" not in line))
    assert storing.store_what_was_reached(experiment, tmp_path / "results") == []
    assert not (tmp_path / "results").exists()


def test_a_training_that_is_still_stopping_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose parent was killed ends by itself; what follows it must not fail meanwhile."""
    (tmp_path / "experiment.json").touch()
    left = threading.Event()

    def stop() -> None:
        with held(tmp_path):
            taken.set()
            time.sleep(0.5)
            left.set()

    taken = threading.Event()
    other = threading.Thread(target=stop)
    other.start()
    taken.wait()
    monkeypatch.setattr(score_rl, "resume", lambda folder: left.is_set())
    assert storing.trained(tmp_path, [], steps=1, evaluations=1)
    other.join()
