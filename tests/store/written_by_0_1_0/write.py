"""Write the folders beside this file with version 0.1.0, whose source must be on PYTHONPATH:

    XLA_FLAGS="--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false" python write.py FOLDER

score-stopped    two settings, two seeds; stopped in the middle of a window
score-finished   the same, gone on with to its end
mopo-stopped     stopped in the middle of an epoch of its stage
mopo-finished    the same, gone on with to its end
odd              a run that diverged, and one whose values are impossible
machine.json     which JAX and which kind of processor wrote them
actions.npz      what the policies of the stopped and the odd experiment answer to some observations

A stopped folder is what a test resumes; a finished one is what it must then come to.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import h5py
import jax
import numpy as np

import score_rl

STEPS, EVAL_EVERY, LOG_EVERY = 40, 20, 10
COMMON: dict[str, Any] = {
    "steps": STEPS, "eval_every": EVAL_EVERY, "log_every": LOG_EVERY, "eval_episodes": 2, "precision": "float32",
    "tensorboard": False, "quiet": True, "checkpoint_minutes": 1000.0,
}  # fmt: skip
SCORE = {"hidden": (8, 8), "critics": 2, "batch_size": 16, "beta": [0.1, 0.5]}
MOPO: dict[str, Any] = {
    "hidden": (8, 8), "batch_size": 16, "models": 2, "elites": 1, "dynamics_hidden": (8, 8), "dynamics_epochs": 3,
    "dynamics_decay": (2.5e-5, 5e-5, 7.5e-5), "rollouts": 4, "rollout_every": 10, "retain": 1, "held_out": 20,
}  # fmt: skip


def write_data(path: Path) -> None:
    """Noise in hopper's shapes, without next observations: rows that only timed out are dropped."""
    rng, rows = np.random.default_rng(0), 240
    number = np.arange(1, rows + 1)
    with h5py.File(path, "w") as file:
        file["observations"] = rng.normal(1, 2, (rows, 11)).astype(np.float32)
        file["actions"] = rng.uniform(-1, 1, (rows, 3)).astype(np.float32)
        file["rewards"] = rng.normal(size=rows).astype(np.float32)
        file["terminals"] = number % 50 == 0
        file["timeouts"] = (number % 80 == 0) & (number % 50 != 0)
        file["metadata/environment"] = "hopper"


def stopped(patched: Any, name: str, value: Any, train: Callable[[], Any]) -> None:
    """Train with something of 0.1.0 replaced, and expect a stop."""
    before = getattr(patched, name)
    setattr(patched, name, value)
    try:
        train()
    except import_module("score_rl.errors").Stopped:
        return
    finally:
        setattr(patched, name, before)
    raise SystemExit("it was not stopped")


def write_score(data: str) -> None:
    trainer = import_module("score_rl.fleet.training").FleetTrainer
    program = import_module("score_rl.fleet.program").FleetProgram
    piece, wait = program.piece, trainer._wait_for

    def stop_at_24(self: Any, window: Any) -> None:
        wait(self, window)
        self.stop.asked |= window.step == 24

    program.piece = lambda self, window: 2  # of the 10 updates of a window
    stopped(trainer, "_wait_for", stop_at_24, lambda: score_rl.train(
        data, algorithm="score", seeds=[0, 1], config=SCORE, out="score-stopped", **COMMON
    ))  # fmt: skip
    program.piece = piece
    shutil.copytree("score-stopped", "score-finished")
    score_rl.resume("score-finished", tensorboard=False, quiet=True)


def write_mopo(data: str) -> None:
    stages = import_module("score_rl.fleet.stages")
    program = import_module("score_rl.fleet.stage_program").StageProgram
    original, piece = stages.FleetStages._part, program.piece

    def part(self: Any, *arguments: Any) -> Any:
        found = original(self, *arguments)
        _, cut, _ = found
        self.stop.asked |= arguments[1] == 1 and cut is not None  # in the second epoch
        return found

    program.piece = 5
    stopped(stages.FleetStages, "_part", part, lambda: score_rl.train(
        data, algorithm="mopo", config=MOPO, environment="none", out="mopo-stopped", **COMMON
    ))  # fmt: skip
    program.piece = piece
    shutil.copytree("mopo-stopped", "mopo-finished")
    score_rl.resume("mopo-finished", tensorboard=False, quiet=True)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    os.environ["SCORE_RL_CACHE"] = str(folder / "cache")
    write_data(Path("noise.hdf5"))
    write_score("noise.hdf5")
    write_mopo("noise.hdf5")
    rates = {"critic_learning_rate": [1e30, 1e3]}
    score_rl.train("noise.hdf5", config={**SCORE, "beta": 0.2} | rates, environment="none", out="odd", **COMMON)
    observations = np.random.default_rng(1).normal(1, 2, (5, 11)).astype(np.float32)
    actions: dict[str, Any] = {
        run.id: run.policy(observations) for name in ("score-stopped", "odd") for run in score_rl.load(name)
    }
    np.savez("actions.npz", observations=observations, **actions)
    machine = {"jax": jax.__version__, "processor": import_module("score_rl.fleet.compilation")._kind_of_processor()}
    Path("machine.json").write_text(json.dumps(machine) + "\n")
    for name in ("score-finished", "mopo-finished"):  # the last checkpoint is what counts
        for older in sorted(Path(name, "fleet-0").glob("step-*"))[:-1]:
            older.unlink()
    for lock in Path().glob("*/training.lock"):
        lock.unlink()
    shutil.rmtree("cache")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
