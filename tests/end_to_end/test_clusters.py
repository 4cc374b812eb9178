"""`--on` of every command that trains or judges, by submitit's debug executor: jobs run in this process."""

import json
import shutil
from pathlib import Path

import pytest

import score_rl
from score_rl.judge import judging
from score_rl.judge.selection.grid import variants_of
from score_rl.judge.selection.plan import two_stages
from score_rl.store.selections import Plan, Size
from tests.cluster.test_cluster import debug
from tests.end_to_end.conftest import Score
from tests.judge import linear_plant
from tests.judge.test_judging import TINY

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # submitit's debug executor leaves its logs open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "EFFORTS", {"quick": TINY, "normal": TINY})


def engines(folder: Path) -> list[str]:
    """What trained the experiments below a folder."""
    made = [json.loads(path.read_text()) for path in folder.rglob("experiment.json")]
    return [record["provenance"].get("cluster", {}).get("engine", "this machine") for record in made]


@pytest.mark.parametrize(
    "command",
    [
        ("train",),
        ("train", "--resume", "out"),
        ("judge", "out"),
        ("select", "logs.hdf5"),
        ("experiment", "run", "sweep-beta"),
    ],
)
def test_every_command_reads_the_flag(score: Score, command: tuple[str, ...]) -> None:
    done = score(*command, "--on", "moon")
    assert done.code == 2
    assert "--on is 'moon'; it must be ray, ray:ADDRESS, slurm or processes:N" in " ".join(done.err.split())
    done = score(*command, "--task", "gpus=1")
    assert done.code == 2
    assert "say which by --on" in " ".join(done.err.split())


def test_judging_on_a_machine_of_a_cluster_finds_what_judging_here_finds(score: Score, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    score_rl.train(
        linear_plant.logs(20), algorithm="bc", steps=20, config={"hidden": (8,), "batch_size": 16}, hold_out=0.2,
        quiet=True, tensorboard=False, out=out,
    )  # fmt: skip
    shutil.copytree(out, other)
    score_rl.judge(other, quiet=True)
    done = score("judge", "out", "--quiet", "--on", "slurm:debug", "--task", "logs=jobs")
    assert done.code == 0, done.err
    assert "behaviour" in done.out
    here, there = (json.loads((folder / "judgement.json").read_text())["data"] for folder in (other, out))
    assert there == here


@pytest.mark.slow
def test_a_selection_trains_both_of_its_stages_on_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(tuple(variants_of(("bc", "td3-bc"))), Size((8,), 16), two_stages(40, 5, 20))
    made = score_rl.select(
        linear_plant.logs(20), plan=plan, seeds=1, hold_out=0.2, out=tmp_path / "out", quiet=True,
        on=debug(tmp_path, "at-once=1"),
    )  # fmt: skip
    assert len(made.record.stages) == 2
    assert engines(tmp_path / "out") == ["SLURM"] * 2


@pytest.mark.slow
def test_an_experiment_of_the_paper_trains_on_a_cluster(score: Score, tmp_path: Path) -> None:
    done = score("experiment", "run", "sweep-beta", "--scale", "smoke", "--quiet", "--on", "slurm:debug")
    assert done.code == 0, done.err
    assert set(engines(tmp_path / "experiments")) == {"SLURM"}
