"""How far a training is, read from its folder alone."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import score_rl
from score_rl.cli import main
from score_rl.report.standing import read_standing
from score_rl.store.folder import Folder
from score_rl.store.lock import FILE
from score_rl.store.metrics import MetricsWriter, Row, newest_rows
from score_rl.store.parts import PROGRESS, Part
from score_rl.store.records import RunStatus

OPTIONS: dict[str, Any] = {
    "transitions": 3000, "steps": 20, "log_every": 10, "environment": "none", "quiet": True, "tensorboard": False,
    "config": {"hidden": (8, 8), "batch_size": 8}, "precision": "float32",
}  # fmt: skip
HOLDING = "import sys, time; from pathlib import Path; from score_rl.store.lock import held\nwith held(Path(sys.argv[1])): print(1, flush=True); time.sleep(60)"  # noqa: E501


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    score_rl.train("replica:hopper-medium", algorithm=["bc", "td3-bc"], seeds=[0, 1], out=tmp_path / "out", **OPTIONS)
    return Folder(tmp_path / "out")


def test_a_finished_one_and_one_that_somebody_trains_and_one_that_was_killed(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    standing = read_standing(folder.path)
    assert (standing.state, standing.finished, standing.runs, standing.share) == ("finished", 4, 4, 1.0)
    status = folder.status()
    status.state = "running"
    second = [run.id for run in folder.experiment().runs if run.fleet == 1]
    status.runs |= {run: RunStatus("training", 5) for run in second}
    folder.write_status(status)
    metrics = MetricsWriter(folder.path, tensorboard=False)
    metrics.write([Row(run, 5, "speed/updates_per_second", 3.0) for run in second])
    metrics.close()
    killed = read_standing(folder.path)
    assert (killed.state, killed.finished, killed.rate, killed.seconds_left) == ("silent", 2, 0.0, None)
    holder = subprocess.Popen([sys.executable, "-c", HOLDING, str(folder.path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        going = read_standing(folder.path)
    finally:
        holder.kill()
        holder.communicate()
    assert (going.state, going.finished, going.share) == ("training", 2, (2 * 20 + 2 * 5) / 80)
    assert (going.rate, going.seconds_left) == (6.0, 2 * 15 / 6.0)
    with pytest.raises(SystemExit) as end:
        main(["status", str(folder.path)])
    assert end.value.code == 0
    assert "silent, 2 of 4 runs done, 62% of 20 updates each" in " ".join(capsys.readouterr().out.split())


def test_machines_of_a_cluster_are_seen_from_another_machine(folder: Folder) -> None:
    status, runs = folder.status(), folder.experiment().runs
    status.state = "running"
    status.runs = {run.id: status.runs[run.id] for run in runs if run.fleet == 0}
    folder.write_status(status)
    (folder.path / FILE).write_text(json.dumps({"process": 1, "machine": "another"}))
    attempt = Part(folder, 1, [run.id for run in runs if run.fleet == 1]).begin()
    assert read_standing(folder.path).fleets[1].state == "waiting"
    said = {"step": 8, "updates_per_second": 2.0, "machine": "gpu-7", "device": "H200", "at": time.time()}
    (attempt / PROGRESS).write_text(json.dumps(said))
    standing = read_standing(folder.path)
    fleet = standing.fleets[1]
    assert (fleet.state, fleet.step, fleet.machine, fleet.device, fleet.tries) == ("training", 8, "gpu-7", "H200", 1)
    assert (standing.rate, standing.seconds_left) == (4.0, 6.0)
    (attempt / PROGRESS).write_text(json.dumps(said | {"at": time.time() - 1000}))
    assert read_standing(folder.path).fleets[1].state == "silent"
    (attempt / PROGRESS).write_text('{"step": 8, "mach')
    assert read_standing(folder.path).fleets[1].state == "waiting", "cut by a kill: as if nothing were said"


def test_the_newest_rows_are_read_from_the_end_alone(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path, tensorboard=False)
    rows = [Row("run", step, "train/q", float(step)) for step in range(100)]
    writer.write(rows)
    writer.close()
    assert newest_rows(tmp_path) == rows
    assert newest_rows(tmp_path, 60) == rows[-2:]
    assert newest_rows(tmp_path / "nowhere") == []
