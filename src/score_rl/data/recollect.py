"""Records afresh with the behaviour policy that a D4RL file stores."""

from pathlib import Path

from score_rl.data.catalogue import load_dataset
from score_rl.data.collection.policies import read_policy
from score_rl.data.collection.recorder import collect
from score_rl.data.collection.writing import RECIPE_FORMAT, library_versions, unit_bounds, write_hdf5
from score_rl.data.dataset import Dataset
from score_rl.data.loading import infer_environment
from score_rl.data.progress_bar import row_progress
from score_rl.data.sources.hdf5 import read_hdf5
from score_rl.data.sources.hdf5_file import open_hdf5
from score_rl.data.sources.reader import file_checksum
from score_rl.envs.interface import PHYSICS
from score_rl.envs.tasks import TASKS, task_of
from score_rl.errors import InputError, unknown_name

DEFAULT_ROWS = 1_000_000


def recollect(
    file: Path,
    out: Path,
    *,
    transitions: int = DEFAULT_ROWS,
    seed: int = 0,
    physics: str = "d4rl",
    environment: str | None = None,
    threads: int | None = None,
    progress: bool = True,
) -> Dataset:
    """Record with the policy in `file` and write to `out`. `environment` overrides the task that is inferred."""
    file, out = Path(file), Path(out)
    if transitions < 1:
        raise InputError(f"{transitions} transitions were asked for, but a recording needs at least 1.")
    if physics not in PHYSICS:
        raise unknown_name("physics", physics, PHYSICS)
    if out.exists():
        raise InputError(f"{out} exists already: choose another name, or remove it first.")
    with open_hdf5(file) as opened:
        policy = read_policy(opened, str(file))
    task = _task(file, environment)
    expected = (TASKS[task].observation_dim, TASKS[task].action_dim)
    if (policy.observation_dim, policy.action_dim) != expected:
        raise InputError(
            f"{file}: its policy takes {policy.observation_dim} observations and gives {policy.action_dim} actions, "
            f"but {task} has {expected[0]} and {expected[1]}: name the environment it was recorded in."
        )
    recipe = {
        "format": RECIPE_FORMAT,
        "name": out.stem,
        "environment": task,
        "physics": physics,
        "seed": seed,
        "transitions": transitions,
        "streams": [{"policy": f"metadata/policy of {file.name}", "transitions": transitions}],
        "policies_sha256": file_checksum(file),
        "versions": library_versions(),
    }
    with row_progress(f"recording {out.stem}", transitions, progress) as advance:
        rows = collect(task, [(policy, transitions)], seed=seed, physics=physics, threads=threads, on_rows=advance)
    write_hdf5(out, rows, environment=task, action_bounds=unit_bounds(task), recipe=recipe, policy=policy)
    return load_dataset(out)


def _task(file: Path, environment: str | None) -> str:
    if environment is not None:
        task = task_of(environment)
        if task is None:
            raise unknown_name("locomotion task", environment, TASKS)
        return task
    recorded = read_hdf5(file, "file")
    found = task_of(recorded.environment or "") or infer_environment(recorded.label, recorded.columns)
    if found is None:
        raise InputError(
            f"{file} does not say which task it was recorded in: "
            f"put {', '.join(TASKS)} into its name, or name the environment."
        )
    return found
