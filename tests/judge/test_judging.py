"""The judge on folders as they are: several data sets, runs that diverged or have not begun, and odd policies."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import score_rl
from score_rl.cli.export import export_command
from score_rl.data.dataset import Dataset
from score_rl.errors import InputError
from score_rl.judge import judging
from score_rl.judge.evidence import Evidence
from score_rl.judge.fitting import Effort, work
from score_rl.judge.judging import judge_policies, usual_discount
from score_rl.judge.sources import Parts
from score_rl.store.judgements import (
    DOUBTFUL,
    FITTED,
    MODEL,
    Estimate,
    JudgementRecord,
    read_judgement,
    write_judgement,
)
from score_rl.store.records import StatusRecord
from tests.judge import linear_plant as plant
from tests.judge.test_evidence import recording

TINY = Effort(
    updates=20, behaviour_updates=30, critics=2, hidden=(8,), density_updates=20, models=2, model_hidden=(8,),
    model_epochs=1, model_updates=10,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    datasets = [dataclasses.replace(plant.logs(20, seed=seed), name=f"logs-{seed}") for seed in range(2)]
    config = {"hidden": (8,), "batch_size": 16}
    for number, dataset in enumerate(datasets):
        score_rl.train(dataset, algorithm="bc", seeds=[0, 1, 2], steps=20, config=config, hold_out=0.2, quiet=True,
                       tensorboard=False, out=out / str(number))  # fmt: skip
    return out / "0"


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "EFFORTS", {"quick": TINY, "normal": TINY})


def with_status(folder: Path, change: Any) -> None:
    experiment = score_rl.load(folder)
    status = experiment.folder.status()
    experiment.folder.write_status(StatusRecord(status.state, status.error, change(dict(status.runs))))


def test_a_folder_is_judged_by_what_training_held_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = score_rl.judge(folder)
    assert "fitting evaluators" in capsys.readouterr().err, "it takes minutes on real data"
    (data,) = found.data
    assert data.held_out
    assert data.trajectories == 4
    assert len(data.runs) == 3
    assert {run.step for run in data.runs.values()} == {20}
    assert {run.seeds_apart is not None for run in data.runs.values()} == {True}, "they differ in the seed alone"
    assert "Only 4 trajectories: intervals" in data.remarks[0]
    assert f"The behaviour earned {data.recorded:.4g} per step, and is worth" in data.remarks[1]
    stored = read_judgement(folder)
    assert isinstance(stored, JudgementRecord)
    assert stored.to_json() == found.to_json()


def test_a_policy_that_is_not_to_be_trusted_says_so_where_it_is_put_to_work(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, run = score_rl.judge(folder, quiet=True), score_rl.load(folder)[0]
    (data,) = record.data
    ruined = dataclasses.replace(data.runs[run.id], verdict=DOUBTFUL, reasons=("It sticks to a bound.",))
    write_judgement(folder, JudgementRecord((dataclasses.replace(data, runs={run.id: ruined}),), {}, {}))
    with pytest.warns(UserWarning, match=r"calls it not to be trusted\. It sticks to a bound"):
        run.policy(np.zeros(1))
    assert export_command([str(folder), "--run", run.id, "--no-flags", "--out", str(tmp_path / "policy.npz")]) == 0
    assert "Careful: " in (said := capsys.readouterr().out)
    assert "not to be trusted" in said
    trained_on = dataclasses.replace(ruined, step=10)
    write_judgement(folder, JudgementRecord((dataclasses.replace(data, runs={run.id: trained_on}),), {}, {}))
    score_rl.load(folder)[0].policy(np.zeros(1))  # another policy than the one that was judged: it warns of nothing


@pytest.mark.slow
def test_quiet_is_quiet(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    score_rl.judge(folder, runs=["logs-0_seed=0"], quiet=True)
    shown = capsys.readouterr()
    assert not shown.err
    assert not shown.out


@pytest.mark.slow
def test_a_run_that_diverged_or_has_not_begun_stops_nobody(folder: Path) -> None:
    names = [run.id for run in score_rl.load(folder)]
    before = score_rl.load(folder).folder.status().runs

    def broken(runs: Any) -> Any:
        return {names[0]: dataclasses.replace(runs[names[0]], state="diverged"), names[1]: runs[names[1]]}

    with_status(folder, broken)
    try:
        (data,) = score_rl.judge(folder, quiet=True).data
    finally:
        with_status(folder, lambda runs: dict(before))
    assert data.runs[names[0]].verdict == DOUBTFUL
    assert "diverged" in data.runs[names[0]].reasons[0]
    assert data.runs[names[1]].distance is not None
    assert names[2] not in data.runs
    assert any(names[2] in remark and "not judged" in remark for remark in data.remarks)


@pytest.mark.slow
def test_other_data_are_asked_about_where_they_are_given(folder: Path) -> None:
    other = folder.parent / "1" / "data"
    (file,) = other.iterdir()
    (data,) = score_rl.judge(folder, file, quiet=True).data
    assert data.held_out
    assert data.trajectories == 20


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"effort": "huge"}, "`effort` is 'huge'"),
        ({"discount": 1.0}, "`discount` is 1"),
        ({"runs": ["nobody"]}, "nobody"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, options: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        score_rl.judge(folder, quiet=True, **options)


def judged(dataset: Dataset, **policies: Any) -> Any:
    return judge_policies(Parts(dataset, dataset, False), policies, effort=TINY, discount=0.9)


def test_actions_that_are_no_numbers_are_not_to_be_trusted() -> None:
    dataset = plant.logs(8)
    found = judged(dataset, sound=plant.linear(0.3), broken=lambda s: np.full_like(s, np.nan))
    assert found.runs["broken"].verdict == DOUBTFUL
    assert "not finite" in found.runs["broken"].reasons[0]
    assert np.isfinite(found.runs["sound"].estimates[FITTED].value)


def test_a_model_that_strays_with_the_behaviour_is_said_to_know_little() -> None:
    estimate = Estimate(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    evidence, columns = Evidence(plant.logs(8), 0.9), {FITTED: [estimate], MODEL: [estimate]}
    assert len(judging._of_behaviour(evidence, columns, 0.1)) == 1
    assert "69% of the imagined steps" in judging._of_behaviour(evidence, columns, 0.69)[1]


def test_a_function_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(InputError, match="the policy odd gave actions of shape"):
        judged(plant.logs(8), odd=lambda s: s[:, 0])


@pytest.mark.slow
def test_one_long_recording_can_be_judged() -> None:
    rewards = np.random.default_rng(0).normal(size=300).tolist()
    found = judged(recording([300], rewards=rewards), still=lambda s: np.zeros_like(s))
    assert found.trajectories == 1
    assert "Only 1 trajectory, cut into 20 pieces" in found.remarks[0]
    assert np.isfinite(found.runs["still"].estimates[FITTED].value)


def test_the_horizon_is_no_longer_than_recordings_that_stopped() -> None:
    config = [type("Config", (), {"discount": 0.99})()]
    assert usual_discount(recording([20, 30]), config) == pytest.approx(1 - 1 / 25)
    assert usual_discount(recording([500]), config) == 0.99
    assert usual_discount(recording([3]), config) == 0.9
    assert usual_discount(recording([4], terminal_rows=(3,)), config) == 0.99, "what ended tells the whole future"


def test_the_bar_counts_all_work() -> None:
    dataset = plant.logs(100)
    assert work(dataset, 2, TINY) == 30 + 20 * 3 + 20 + 10
    assert work(dataset, 2, dataclasses.replace(TINY, model_updates=1)) == 30 + 20 * 3 + 20 + 7
