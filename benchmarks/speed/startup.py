"""How fast the command starts, and how soon it has done its first update."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import jax

from .arguments import Arguments, say
from .timing import Clock, Results


def _process(arguments: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    code = "from score_rl.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _seconds_of_help() -> float:
    began = time.perf_counter()
    if _process(["--help"], {}).wait() != 0:
        raise RuntimeError("score --help failed")
    return time.perf_counter() - began


def _seconds_to_first_update(place: Path, environment: Mapping[str, str]) -> float:
    """From starting the command to the first stored metrics, which come after two updates here."""
    options = (
        "--dataset replica:hopper-medium --transitions 20000 --steps 2 --eval-every 2 --log-every 2 --environment none "
        f"--no-tensorboard --quiet --out {place}"
    )
    began = time.perf_counter()
    process = _process(["train", *options.split()], environment)
    metrics = place / "metrics.csv"
    while not (metrics.exists() and "train/" in metrics.read_text()):
        if process.poll() not in (None, 0):
            raise RuntimeError(f"score train ended with {process.returncode}")
        time.sleep(0.02)
    seconds = time.perf_counter() - began
    process.wait()
    return seconds


def measure_startup(asked: Arguments, results: Results, clock: Clock) -> None:
    with tempfile.TemporaryDirectory(prefix="score-speed-") as folder:
        place = Path(folder)
        helps = [_seconds_of_help() for _ in range(3)]
        environment = {"SCORE_RL_CACHE": str(place / "cache")}
        if jax.default_backend() != "cpu":
            # This process holds most of the device's memory; the ones it starts must do with the rest.
            environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        # Collects the data; its own compiled programs are forgotten again.
        _seconds_to_first_update(place / "collected", environment)
        shutil.rmtree(place / "cache" / "compiled", ignore_errors=True)
        cold = _seconds_to_first_update(place / "cold", environment)
        warm = [_seconds_to_first_update(place / f"warm-{n}", environment) for n in range(2)]
    figures = {
        "what": "from starting the process; first update of one SCORE run, data already collected",
        "help_seconds": min(helps),
        "first_update_cold_seconds": cold,
        "first_update_warm_seconds": min(warm),
    }
    results.keep("startup", figures)
    say(f"score --help {min(helps):.2f} s; first update {cold:.1f} s, with a warm cache {min(warm):.1f} s")
