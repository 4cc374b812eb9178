"""`score select` as a stranger uses it: on logs of a plant whose simulator it does not see."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import score_rl
from score_rl.data.saving import save_dataset
from score_rl.judge.selection.grid import variants_of
from score_rl.judge.selection.plan import one_stage, two_stages
from score_rl.store.selections import Plan, Size, read_selection
from tests.end_to_end.conftest import Score
from tests.judge.heating_logs import logs
from tests.plants import heating

SMALL = Size((64, 64), 128)


def test_what_is_wrong_is_said_before_anything_is_trained(score: Score, tmp_path: Path) -> None:
    save_dataset(logs(0, 12), tmp_path / "logs.hdf5")
    for arguments, said in (
        ((), "no data is given"),
        (("logs.hdf5", "--budget", "soon"), "--budget is 'soon'; it must be a time such as 90s, 10m or 2h"),
        (("logs.hdf5", "--budget", "5s"), "it must be 30 s or more"),
        (("logs.hdf5", "--seeds", "0"), "--seeds is 0"),
        (("logs.hdf5", "--methods", "scores"), "did you mean 'score'"),
        (("logs.hdf5", "--hold-out", "0.01"), "give another share, or data with at least"),
        (("--resume", "nothing"), "holds no selection"),
    ):
        done = score("select", *arguments)
        assert done.code == 2, done.out
        assert said in " ".join(done.err.split()), done.err
    assert [path.name for path in tmp_path.iterdir()] == ["logs.hdf5"]


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_a_selection_ends_with_a_policy_that_is_truly_better(score: Score, tmp_path: Path) -> None:
    """A minute or two: of 8 variants one is chosen by data alone, exported, shown again and put on a page."""
    save_dataset(logs(0), tmp_path / "logs.hdf5")
    plan = Plan(tuple(variants_of(("score", "bc"))[:8]), SMALL, two_stages(4_000, 8, 1_500))
    selection = score_rl.select(tmp_path / "logs.hdf5", plan=plan, seeds=1, out=tmp_path / "out", quiet=True)
    assert selection.choice.better, selection.choice
    own = heating.returns(heating.behaviour).mean()
    assert heating.returns(selection.run.policy).mean() > own
    assert len(selection.choice.table) == 8
    shown = score("select", "--resume", "out")
    assert shown.code == 0, shown.err
    text = " ".join(shown.out.split())
    for part in (
        "Recommended: ",
        "Why: ",
        "How sure: ",
        f"Next: score export out/stage-2 --run {selection.choice.run}",
    ):
        assert part in text
    exported = score("export", "out/stage-2", "--run", str(selection.choice.run), "--format", "numpy", "--out", "p.npz")
    assert exported.code == 0, exported.err
    assert score("report", "out/stage-2", "--out", "page").code == 0


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_a_killed_selection_goes_on_where_it_stood(tmp_path: Path) -> None:
    """Killed while its second stage trains, it ends with the choice of an undisturbed one."""
    script = tmp_path / "selecting.py"
    script.write_text(
        "import sys, score_rl\n"
        "from score_rl.judge.selection.grid import variants_of\n"
        "from score_rl.judge.selection.plan import two_stages\n"
        "from score_rl.store.selections import Plan, Size\n"
        "from tests.judge.heating_logs import logs\n"
        "plan = Plan(tuple(variants_of(('score', 'bc'))[:6]), Size((16, 16), 32), two_stages(8_000, 6, 100))\n"
        "score_rl.select(logs(0, 40), plan=plan, seeds=1, out=sys.argv[1])\n"
    )
    subprocess.run([sys.executable, script, tmp_path / "whole"], check=True)
    killed = subprocess.Popen([sys.executable, script, tmp_path / "killed"])
    metrics = tmp_path / "killed" / "stage-2" / "metrics.csv"
    while killed.poll() is None and not metrics.exists():
        time.sleep(0.02)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL, "it ended before it was killed"
    before = read_selection(tmp_path / "killed")
    assert len(before.stages) == 1
    assert before.choice is None
    resumed, whole = score_rl.select(resume=tmp_path / "killed", quiet=True), score_rl.select(resume=tmp_path / "whole")
    assert [one.variant.label for one in resumed.choice.table] == [one.variant.label for one in whole.choice.table]
    assert resumed.choice.run == whole.choice.run
    assert resumed.record.spent > before.spent


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_a_budget_is_kept_or_refused_within_it(score: Score, tmp_path: Path) -> None:
    """Plans are made from measured speeds. A machine on which not even the smallest fits says so in time."""
    save_dataset(logs(0), tmp_path / "logs.hdf5")
    began = time.monotonic()
    done = score("select", "logs.hdf5", "--budget", "5m", "--seeds", "1", "--methods", "score", "bc", "--out", "out")
    took = time.monotonic() - began
    assert took < 1.3 * 300
    if done.code == 2:
        assert "the smallest plan takes" in " ".join(done.err.split())
        assert not (tmp_path / "out").exists()
        return
    assert done.code == 0, done.err
    record = json.loads((tmp_path / "out" / "selection.json").read_text())
    assert record["plan"]["seconds"] <= 300
    assert record["choice"]["table"]
    assert "Plan: " in done.err


def test_one_stage_is_a_plan_too() -> None:
    (stage,) = one_stage(100, 3, 10)
    assert (stage.steps, stage.variants) == (100, 3)
