"""Trainings side by side: what is refused before a GPU's time is spent, and what ends with whom."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from benchmarks.training import sharing
from benchmarks.training.queue.conditions import Conditions
from benchmarks.training.queue.packing import Packing, Room
from benchmarks.training.sharing import end_of, refuse_idle_gpu, refuse_nameless_code, told_to_share
from score_rl.errors import InputError
from score_rl.versions import NOT_INSTALLED


def test_a_process_ends_in_good_order_when_the_one_that_started_it_was_killed(tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text(
        "import signal, sys, time, pathlib\n"
        "from benchmarks.training import sharing\n"
        "sharing.SECONDS_BETWEEN_LOOKS = 0.05\n"
        "here = pathlib.Path(sys.argv[1])\n"
        "def end(*_):\n    (here / 'ended').touch()\n    sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "sharing.stop_with_parent()\n"
        "(here / 'ready').touch()\n"
        "while True: time.sleep(0.05)\n"
    )
    start = f"import subprocess, sys; subprocess.Popen([sys.executable, {str(child)!r}, {str(tmp_path)!r}]).wait()"
    root = str(Path(__file__).parents[3])
    with subprocess.Popen([sys.executable, "-c", start], env=os.environ | {"PYTHONPATH": root}) as parent:
        began = appears(tmp_path / "ready")
        assert not (tmp_path / "ended").exists()
        parent.send_signal(signal.SIGKILL)
    assert began
    assert appears(tmp_path / "ended")


def appears(path: Path, seconds: float = 20.0) -> bool:
    limit = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < limit:
        time.sleep(0.02)
    return path.exists()


def test_memory_is_taken_as_it_is_needed() -> None:
    told = told_to_share(0.3)
    assert told["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert told["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.30"


def test_a_gpu_that_jax_does_not_see_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    refuse_idle_gpu()  # no GPU here: the CPU is what there is
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'GPU 0: a made-up one'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(InputError, match="GPU that JAX does not see"):
        refuse_idle_gpu()
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    refuse_idle_gpu()  # it was asked for


def test_results_of_nameless_code_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_nameless_code()
    monkeypatch.setattr(sharing, "code_version", lambda: NOT_INSTALLED)
    with pytest.raises(InputError, match="set SCORE_RL_CODE_VERSION"):
        refuse_nameless_code()


def test_the_account_knows_of_trainings_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "trainings"
    assert sharing.trainings_beside(None) == sharing.trainings_beside(file) == 0
    sharing.tell_trainings(file, 3)
    assert sharing.trainings_beside(file) == 3
    packed = Packing([], Conditions(tmp_path, tmp_path, tmp_path), Room(60.0, 1, 1.0, (0,), beside=file), Console())
    running = SimpleNamespace(gpu_seconds=0.0, process=SimpleNamespace(poll=lambda: None))
    packed._running = [running]  # type: ignore[list-item]
    monkeypatch.setattr(packed, "_has_data", lambda running: True)
    packed._tick(0.01)
    assert running.gpu_seconds == pytest.approx(0.01 / 4)


def test_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {n}\n" for n in range(100)))
    assert end_of(log).splitlines()[0] == f"line {100 - sharing.TOLD_OF_FAILURE}"
    assert end_of(log).endswith("line 99")
