"""Methods trained on the paper's data sets, kept, and found again."""

import json
from pathlib import Path

import methods
import pytest

from score_rl.report.grouping import gather


def test_what_a_job_trains_on():
    assert len(methods.chosen("table")) == 15
    assert methods.chosen("medium") == ["halfcheetah-medium", "hopper-medium", "walker2d-medium"]
    assert methods.chosen("hopper-expert+walker2d-medium") == ["hopper-expert", "walker2d-medium"]
    assert methods.with_settings("uwac,dropout_masks=pass,passes=50") == (
        "uwac",
        {"dropout_masks": "pass", "passes": 50},
    )
    assert methods.spelled("uwac,dropout_masks=pass:20:2:medium") == "uwac-dropout-masks-pass-20-2-medium"
    assert methods.called("hopper-medium") == "hopper-medium-recollected"
    assert methods.called("hopper-medium-replay") == "replica:hopper-medium-replay"


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
    jobs = ("bc:40:2:hopper-random+hopper-expert", "iql:40:1:hopper-expert")
    methods.main(methods.Arguments(tmp_path, tmp_path / "out", jobs, transitions=1_000, collect=True))
    recorded = sorted(path.name for path in (tmp_path / "cache").rglob("*.hdf5"))
    assert len(recorded) == 2
    assert not any((tmp_path / "out").iterdir())
