"""The real command line, in this process where that is enough and in its own where signals are involved."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from score_rl.cli import main

# Small enough for seconds, with everything on: judging, checkpoints, TensorBoard.
SMALL = (
    "--transitions", "3000", "--steps", "60", "--eval-every", "20", "--log-every", "10", "--eval-episodes", "2",
    "--config.hidden", "16,16", "--config.batch-size", "16", "--checkpoint-minutes", "0",
)  # fmt: skip


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Score = Callable[..., Outcome]


@pytest.fixture
def score(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Score:
    """Call the command as a user in an empty folder would."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(int(end.value.code or 0), captured.out, captured.err)

    return call


def start_process(*arguments: object, **environment: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", "from score_rl.cli import main; main()", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment
    )


def wait_for(condition: Callable[[], object], process: "subprocess.Popen[str]", seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.01)
