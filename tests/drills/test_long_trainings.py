"""What days bring: memory, a disk that is away, a machine that sleeps, a clock that is set."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import score_rl
from score_rl.report.results import read_experiment
from score_rl.store import presence
from score_rl.store.checkpoints import checkpoints
from tests.drills.kills import Training
from tests.end_to_end.test_interruption import assert_same_result

OPTIONS: dict[str, Any] = {
    "transitions": 3000, "log_every": 10, "eval_every": 20, "eval_episodes": 2, "seeds": [0, 1], "tensorboard": True,
    "precision": "float32", "checkpoint_minutes": 0, "config": {"hidden": (16, 16), "batch_size": 16},
}  # fmt: skip
WINDOWS, EARLY = 1_200, 400
MOST_GROWTH = 16 << 20  # bytes in 800 windows, each with a checkpoint; decided before anything was measured
SCRIPT = f"""
import os, sys
import score_rl
from score_rl.store import metrics
sizes = []
write = metrics.MetricsWriter.write
def measured(self, rows):
    rows = list(rows)
    write(self, rows)
    if any(row.name.startswith("train/") for row in rows):
        sizes.append(int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
metrics.MetricsWriter.write = measured
score_rl.train("replica:hopper-medium", steps={10 * WINDOWS}, out=sys.argv[1], quiet=True, transitions=3000,
    log_every=10, eval_every=400, eval_episodes=1, checkpoint_minutes=0,
    config={{"hidden": (16, 16), "batch_size": 16}})
print(len(sizes), *(max(sizes[at - 100:at]) for at in ({EARLY}, {WINDOWS})))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_stays_flat_over_windows(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "out")], capture_output=True, text=True, check=True
    )
    windows, early, late = map(int, done.stdout.split())
    print(f"{windows} windows: {early / 1e6:.1f} MB at {EARLY}, {late / 1e6:.1f} MB at {WINDOWS}")
    assert windows == WINDOWS
    assert late - early < MOST_GROWTH


@pytest.mark.slow
def test_a_disk_that_is_away_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder is taken away in the middle of a training and comes back after three seconds."""
    monkeypatch.setattr(presence, "PAUSE", 0.05)
    score_rl.train("replica:hopper-medium", steps=400, out=tmp_path / "undisturbed", quiet=True, **OPTIONS)
    folder, gone = tmp_path / "out", threading.Event()

    def take_away() -> None:
        while not checkpoints(folder / "fleet-0"):
            time.sleep(0.01)
        folder.rename(tmp_path / "away")
        time.sleep(3)
        assert not folder.exists(), "nothing was made in its place"
        (tmp_path / "away").rename(folder)
        gone.set()

    thread = threading.Thread(target=take_away)
    thread.start()
    score_rl.train("replica:hopper-medium", steps=400, out=folder, quiet=True, **OPTIONS)
    thread.join()
    assert gone.is_set()
    said = capsys.readouterr().err
    assert "is away (No such file or directory); training waits for it, 10 minutes." in said
    assert "is back." in said
    assert_same_result(folder, tmp_path / "undisturbed")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="judges are found in /proc")
def test_a_machine_that_sleeps_changes_nothing(tmp_path: Path) -> None:
    """The training and its judges stop at once, are away for a while, and go on."""
    request = [
        "--dataset", "replica:hopper-medium", "--seeds", 0, 1, "--transitions", 3000, "--steps", 8000,
        "--log-every", 20, "--eval-every", 100, "--eval-episodes", 2, "--config.hidden", "16,16",
        "--config.batch-size", 16, "--checkpoint-minutes", 0, "--precision", "float32",
    ]  # fmt: skip
    Training(*request, "--out", tmp_path / "undisturbed").end()
    training, folder = Training(*request, "--out", tmp_path / "out"), tmp_path / "out"
    for pause in (3.0, 1.0, 0.2):
        assert training.wait_for(lambda: checkpoints(folder / "fleet-0") and training.judges())
        asleep = [training.process.pid, *training.judges()]
        for number in asleep:
            os.kill(number, signal.SIGSTOP)
        before = (folder / "metrics.csv").stat().st_size
        time.sleep(pause)
        assert (folder / "metrics.csv").stat().st_size == before, "all of it sleeps"
        for number in asleep:
            os.kill(number, signal.SIGCONT)
        time.sleep(0.5)
    training.end()
    assert_same_result(folder, tmp_path / "undisturbed")


@pytest.mark.slow
@pytest.mark.parametrize("day", [86_400, -86_400])
def test_a_clock_that_is_set_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, day: int) -> None:
    score_rl.train("replica:hopper-medium", steps=60, out=tmp_path / "undisturbed", quiet=True, **OPTIONS)
    real, calls = time.time, []

    def jumping() -> float:
        """A day later or earlier at every look: a machine that slept, or whose clock is set back."""
        calls.append(1)
        return real() + day * len(calls)

    monkeypatch.setattr(time, "time", jumping)
    score_rl.train("replica:hopper-medium", steps=40, out=tmp_path / "out", quiet=True, **OPTIONS)
    score_rl.resume(tmp_path / "out", steps=60, quiet=True)
    assert_same_result(tmp_path / "out", tmp_path / "undisturbed")
    assert {run.status for run in read_experiment(tmp_path / "out")} == {"finished"}
