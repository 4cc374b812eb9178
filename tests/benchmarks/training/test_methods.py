"""Methods trained on the paper's data sets, kept, and found again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.training import jobs, methods
from benchmarks.training.jobs import Job
from score_rl.errors import Stopped
from score_rl.report.grouping import gather


def test_what_a_job_trains_on():
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


def test_the_paper_calls_pbrl_what_has_priors_here():
    hopper = ("hopper-medium-recollected", "replica:hopper-expert", "replica:hopper-full-replay")
    assert methods.paper_cells("pbrl-prior", hopper) == {hopper[0]: 81.6, hopper[1]: 110.4}
    assert methods.paper_cells("pbrl", hopper[:1]) == {hopper[0]: 75.3}
    assert methods.paper_cells("iql", hopper) == {}


@pytest.mark.slow
def test_a_job_is_kept_and_read_by_the_report(tmp_path):
    asked = methods.Arguments(
        sources=tmp_path, out=tmp_path, jobs=("bc:40:2:hopper-random+hopper-expert",), transitions=2_000,
        evaluations=2, episodes=2,
    )  # fmt: skip
    for _ in range(2):  # the second time there is nothing left to train
        methods.main(asked)
    folder = tmp_path / "results" / "bc-40-2-hopper-random-hopper-expert"
    summary = json.loads((folder / "summary.json").read_text())
    assert set(summary["results"]) == {"replica:hopper-random", "replica:hopper-expert"}
    runs = gather([Path(folder)])
    assert {(run.algorithm, run.dataset, run.seed) for run in runs} == {
        ("bc", f"replica:hopper-{kind}", seed) for kind in ("random", "expert") for seed in (0, 1)
    }


def test_data_can_be_collected_before_anything_is_trained(tmp_path, monkeypatch):
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))
    texts = ("bc:40:2:hopper-random+hopper-expert", "iql:40:1:hopper-expert")
    methods.main(methods.Arguments(tmp_path, tmp_path / "out", texts, transitions=1_000, collect=True))
    recorded = sorted(path.name for path in (tmp_path / "cache").rglob("*.hdf5"))
    assert len(recorded) == 2
    assert not any((tmp_path / "out").iterdir())


def test_data_of_later_jobs_are_collected_while_the_first_trains(tmp_path, monkeypatch, capfd):
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


def test_what_was_stopped_is_kept_as_the_shorter_run_it_was(tmp_path, monkeypatch):
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

    def stopped(asked, job):
        raise Stopped("stopped at update 40 with a checkpoint")

    monkeypatch.setattr(methods, "run", stopped)
    with pytest.raises(SystemExit, match="bc:40:2:hopper-random: stopped at update 40"):
        methods.main(asked)
    folder = tmp_path / "results" / jobs.folder_name(job)
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["request"]["steps"], summary["request"]["steps_asked_for"]) == (20, 40)
    scores = [experiment.metrics.of(run.id).curve("evaluation/score")[1][0] for run in experiment]
    assert summary["results"]["replica:hopper-random"]["last_policies"] == pytest.approx(scores)
    curves = (folder / "curves.csv").read_text()
    assert ",20,evaluation/score," in curves
    assert ",40," not in curves
    assert {run.steps for run in gather([folder])} == {20}


def test_what_was_stopped_before_it_was_judged_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))
    job = "bc:40:1:hopper-random"
    asked = methods.Arguments(tmp_path, tmp_path, (job,), transitions=1_000, evaluations=2)
    methods.run(asked, Job.parse(job))
    stored = tmp_path / jobs.folder_name(job) / "metrics.csv"
    lines = stored.read_text().splitlines(keepends=True)
    stored.write_text("".join(line for line in lines if "evaluation/" not in line))
    methods.keep_what_was_reached(asked, Job.parse(job))
    assert not (tmp_path / "results").exists()
