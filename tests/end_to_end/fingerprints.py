"""What a short training of every method comes to, as hashes and as a few numbers.

`fingerprints.json` holds what version 0.1.0 gave, before its modules were moved. Its commit is in the file. To see that
it still is so on a machine of your own, let that commit train there too, and compare:

    git worktree add ../before 2a3adbc
    PYTHONPATH=../before/src python -m tests.end_to_end.fingerprints before.json
    python -m tests.end_to_end.fingerprints now.json before.json

The last line names the methods that differ in a bit. What version 0.1.0 did not have is only in `now.json`.
"""

import dataclasses
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import h5py
import jax
import numpy as np

import score_rl
from score_rl.algorithms.registry import algorithm_names, get_algorithm
from tests import conftest  # noqa: F401 - for how tests compile

STORED = Path(__file__).with_suffix(".json")
STEPS = 24
# Whatever costs time and changes no arithmetic that matters here, where a method has such a setting.
SMALL = {
    "hidden": (32, 32), "vae_hidden": (32, 32), "batch_size": 32, "critics": 3, "ood_actions": 3, "target_samples": 3,
    "acting_samples": 10, "passes": 5, "dropout_passes": 3, "warmup_steps": 5, "sampled_actions": 3,
    "rollouts": 16, "rollout_every": 6, "models": 3, "elites": 2, "dynamics_hidden": (16, 16, 16, 16), "paths": 4,
    "horizon": 6, "fisher_iterations": 4, "model_epochs": 2, "behaviour_epochs": 2,
}  # fmt: skip
ABLATIONS: dict[str, dict[str, Any]] = {
    "score (fix)": {"constraint": "fix"},
    "score (mmd, both penalties)": {"constraint": "mmd", "penalty": "here+next", "next_beta": 0.2},
    "score (dropout)": {"uncertainty": "dropout"},
    "score (min-q, no constraint)": {"uncertainty": "min-q", "constraint": "none"},
    "score (spectral)": {"spectral_norm": True},
    "score (bootstrap)": {
        "bootstrap_keep": 0.8, "critic_divisor": "mask+1", "bc_norm": "sum", "first_actor_step": "delay",
    },
}  # fmt: skip


def names() -> list[str]:
    return [*algorithm_names(), *ABLATIONS]


def write_data(path: Path) -> None:
    """Noise in hopper's shapes."""
    rng, rows = np.random.default_rng(0), 400
    number = np.arange(1, rows + 1)
    with h5py.File(path, "w") as file:
        file["observations"] = rng.normal(1, 2, (rows, 11)).astype(np.float32)
        file["actions"] = rng.uniform(-1, 1, (rows, 3)).astype(np.float32)
        file["rewards"] = rng.normal(size=rows).astype(np.float32)
        file["next_observations"] = rng.normal(1, 2, (rows, 11)).astype(np.float32)
        file["terminals"] = number % 50 == 0
        file["timeouts"] = (number % 80 == 0) & (number % 50 != 0)
        file["metadata/environment"] = "hopper"


def fingerprint(name: str, folder: Path) -> list[dict[str, Any]]:
    """Of two runs: one hash of all parameters and moments, one of all metrics, and numbers to compare elsewhere."""
    method = "score" if name in ABLATIONS else name
    settings = {field.name for field in dataclasses.fields(get_algorithm(method).Config)}
    config = {key: value for key, value in SMALL.items() if key in settings} | ABLATIONS.get(name, {})
    data = folder / "noise.hdf5"
    write_data(data)
    experiment = score_rl.train(
        data, algorithm=method, seeds=[0, 1], config=config, steps=STEPS, eval_every=12, log_every=12, eval_episodes=2,
        out=folder / "run", precision="float32", tensorboard=False, quiet=True,
    )  # fmt: skip
    return [_of_run(run) for run in experiment]


def _of_run(run: Any) -> dict[str, Any]:
    leaves = [leaf for leaf in jax.tree.leaves(run.state) if not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)]
    arrays = [array for array in map(np.asarray, leaves) if array.dtype == np.float32 and array.ndim > 0]
    measured = [row for row in run.metrics if not row.name.startswith("speed/")]
    rows = sorted((row.run, row.step, row.name, repr(row.value)) for row in measured)
    return {
        "parameters": _digest(arrays),
        "numbers": sum(array.size for array in arrays),
        "absolute_sum": float(sum(np.abs(array.astype(np.float64)).sum() for array in arrays)),
        "metrics": hashlib.sha256(json.dumps(rows).encode()).hexdigest(),
        "measured": {row.name: row.value for row in measured if row.step == STEPS},
    }


def _digest(arrays: list[np.ndarray]) -> str:
    """Whatever the arrays are called and wherever they stand."""
    each = [f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes() for array in arrays]
    return hashlib.sha256("".join(sorted(hashlib.sha256(one).hexdigest() for one in each)).encode()).hexdigest()


def about() -> dict[str, str]:
    """Whose bits these are: they hold for one processor, one compiler and one way to compile."""
    try:
        from score_rl.engine.compilation import processor_fingerprint as processor
    except ImportError:  # before 0.2.0
        processor = platform.processor
    source = Path(score_rl.__file__).parents[2]
    code = subprocess.run(["git", "-C", source, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return {
        "code": code.stdout.strip() or "unknown",
        "jax": jax.__version__,
        "processor": processor(),
        "compiled": "as tests compile, see tests/conftest.py",
    }


def different(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """The methods of both whose parameters or metrics differ in a bit."""
    bits = [
        {name: [(run["parameters"], run["metrics"]) for run in runs] for name, runs in found["methods"].items()}
        for found in (now, before)
    ]
    return [name for name in bits[1] if name in bits[0] and bits[0][name] != bits[1][name]]


def main(out: Path, before: Path | None = None) -> int:
    """The exit code: 1 where a method differs."""
    found: dict[str, Any] = {"about": about(), "methods": {}}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SCORE_RL_CACHE"] = f"{folder}/cache"
        for number, name in enumerate(names()):
            method = Path(folder) / str(number)
            method.mkdir()
            found["methods"][name] = fingerprint(name, method)
            out.write_text(json.dumps(found, indent=1) + "\n")
    if before is None:
        return 0
    changed = different(found, json.loads(before.read_text()))
    print(f"Not the same to the bit: {', '.join(changed)}" if changed else "The same to the bit.")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
