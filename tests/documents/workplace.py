"""The folder in which the documents' blocks run: what a user would have there."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.documents.sentences import CHECKOUT

ROWS, LENGTH = 1200, 50  # 24 trajectories: some can be held out
BRIEF = ["--steps", "20", "--config.hidden", "16,16", "--config.batch-size", "16", "--eval-episodes", "1", "--quiet"]


def furnish(folder: Path) -> dict[str, str]:
    """Put a user's files into the folder: logs.csv, logs.hdf5, runs/hopper and runs/walker2d. Gives the environment."""
    programs = folder / "bin"
    programs.mkdir()
    for name, words in {"score": '-c "from score_rl.cli import main; main()"', "python": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (programs / name).chmod(0o755)
    environment = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{CHECKOUT / 'src'}{os.pathsep}{CHECKOUT}",
    }
    write_logs(folder)
    for task in ("hopper", "walker2d"):
        data = ["--dataset", f"replica:{task}-medium", "--transitions", "2000"]
        train = [str(programs / "score"), "train", *data, *BRIEF, "--out", f"runs/{task}"]
        subprocess.run(train, cwd=folder, env=os.environ | environment, check=True, capture_output=True)
    return environment


def write_logs(folder: Path) -> None:
    """A plant of three measurements and two actions, as a table and as a file in D4RL's format."""
    import h5py

    rng = np.random.default_rng(0)
    rows = np.arange(ROWS)
    power, fan = rng.uniform(20, 240, ROWS), rng.uniform(700, 2300, ROWS)
    table = {
        "batch": rows // LENGTH, "temperature": 60 + np.cumsum(rng.normal(size=ROWS)) * 0.1, "load": np.sin(rows / 9),
        "ambient": 20 + np.cos(rows / 30), "power": power, "fan": fan, "cost": 1e-3 * power + 1e-4 * fan,
        "time": rows % LENGTH,
    }  # fmt: skip
    lines = [",".join(table), *(",".join(f"{column[row]:.6g}" for column in table.values()) for row in rows)]
    (folder / "logs.csv").write_text("\n".join(lines) + "\n")
    with h5py.File(folder / "logs.hdf5", "w") as file:
        for name, columns in {"observations": ("temperature", "load", "ambient"), "actions": ("power", "fan")}.items():
            file[name] = np.stack([table[column] for column in columns], axis=1).astype(np.float32)
        file["rewards"] = -table["cost"].astype(np.float32)
        file["terminals"] = np.zeros(ROWS, bool)
        file["timeouts"] = rows % LENGTH == LENGTH - 1
        file["metadata/action_low"], file["metadata/action_high"] = [0.0, 600.0], [250.0, 2400.0]
