"""Do worker processes that play episodes need NumPy alone, or may they import JAX?

    python -m benchmarks.speed.worker_processes --out benchmarks/results/speed/cpu-2-cores-zen4.json

The forms of `worker_forms.py` take turns, so that a busy machine slows all of them. For every form: seconds from
starting a process to its first answer, memory of a process that has played, and seconds for 10 episodes of every
policy. Seconds are given twice: by the clock, and of the cores that the processes used. The second hardly depends on
what else the machine does. Policies are behaviour cloning's, trained for some seconds, so that hopper's episodes last
some hundred steps. The form `jax exported` needs the package flatbuffers and is measured when it is named.
"""

import contextlib
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro

import score_rl
from score_rl.rollout.acting import acting, write_down_acting
from score_rl.rollout.messages import receive, send
from score_rl.rollout.policies import PolicyToPlay

from .arguments import say
from .timing import Results
from .worker_forms import FORMS

EPISODES = 10
HERE = Path(__file__).resolve().parents[2]
# One core to a process, and no accelerator.
ALONE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


@dataclass(frozen=True)
class Arguments:
    tasks: tuple[str, ...] = ("hopper", "halfcheetah")
    policies: tuple[int, ...] = (1, 5, 20)
    processes: tuple[int, ...] = (1, 2)
    rounds: int = 5
    """How often all forms take their turn; the median counts."""
    forms: tuple[str, ...] = tuple(form for form in FORMS if form != "jax exported")
    updates: int = 2_000
    """Of the behaviour cloning whose policies play."""
    out: Path | None = None
    """The JSON file to merge the figures into."""


@dataclass(frozen=True)
class Turn:
    """What one turn of one form took."""

    seconds: float
    core_seconds: float
    steps: int
    returns: float


class Worker:
    """One process."""

    def __init__(self, form: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.speed.worker_forms", form],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | ALONE,
            cwd=HERE,
        )
        self.told = False

    def ask(self, facts: dict[str, Any], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        send(self._process.stdin, facts, arrays)  # type: ignore[arg-type]
        answer = receive(self._process.stdout)  # type: ignore[arg-type]
        if answer is None:
            raise RuntimeError("a worker ended")
        return answer[1]

    def core_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> dict[str, float]:
        """Resident memory, and the part of it that no other process shares."""
        lines = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text().splitlines()
        kilobytes = {line.split(":")[0]: float(line.split()[1]) for line in lines[1:]}
        return {
            "resident": kilobytes["Rss"] / 1024,
            "own": (kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]) / 1024,
        }

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def introduction(form: str, policy: PolicyToPlay) -> tuple[dict[str, Any], list[np.ndarray]]:
    """What a worker is told once: how policies of this kind act."""
    config, treatment, network = policy.acting_inputs()
    leaves, structure = jax.tree.flatten((config, treatment, network))
    if form == "numpy":
        told = write_down_acting(policy.algorithm, config, treatment, network, policy.observation_dim)
        return {"instructions": told.to_json()}, told.constants
    if form == "numpy by hand":
        return {"layers": len(jax.tree.leaves(network)) // 2}, []
    if form == "jax exported":
        seen = jax.ShapeDtypeStruct((EPISODES, policy.observation_dim), np.float32)

        def flat(numbers: list[Any], observations: Any) -> Any:
            return acting(policy.algorithm)(*jax.tree.unflatten(structure, numbers), observations)

        blob = jax.export.export(jax.jit(flat), platforms=["cpu"])(leaves, seen).serialize()
        return {}, [np.frombuffer(blob, np.uint8)]
    settings = {name: list(v) if isinstance(v, tuple) else v for name, v in vars(policy.config).items()}
    actions = int(np.shape(treatment.action_centre)[0])
    return {"algorithm": policy.algorithm.name, "config": settings, "shapes": [policy.observation_dim, actions]}, []


def units(form: str, policies: Sequence[PolicyToPlay], processes: int) -> list[list[PolicyToPlay]]:
    """What a worker plays at once: one policy, or an equal share of all."""
    if form != "jax stacked":
        return [[policy] for policy in policies]
    number = min(processes, len(policies))
    return [list(policies[first::number]) for first in range(number)]


def play(form: str, workers: Sequence[Worker], policies: Sequence[PolicyToPlay]) -> Turn:
    """10 episodes of every policy; a worker takes whatever is next."""
    free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    for worker in workers:
        free.put(worker)

    def one(unit: list[PolicyToPlay]) -> list[np.ndarray]:
        worker = free.get()
        if not worker.told:
            worker.ask(*introduction(form, unit[0]))
            worker.told = True
        numbers = [leaf for policy in unit for leaf in jax.tree.leaves(policy.acting_inputs())]
        seeds = [seed for policy in unit for seed in policy.episode_seeds()]
        found = worker.ask({"environment": unit[0].environment, "policies": len(unit), "seeds": seeds}, numbers)
        free.put(worker)
        return found

    cores, began = sum(worker.core_seconds() for worker in workers), time.perf_counter()
    with ThreadPoolExecutor(len(workers)) as pool:
        found = list(pool.map(one, units(form, policies, len(workers))))
    seconds = time.perf_counter() - began
    returns, lengths, *_ = (np.concatenate(column) for column in zip(*found, strict=True))
    cores = sum(worker.core_seconds() for worker in workers) - cores
    return Turn(seconds, cores, int(lengths.sum()), float(returns.mean()))


@contextlib.contextmanager
def started(form: str, number: int) -> Iterator[list[Worker]]:
    workers = [Worker(form) for _ in range(number)]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.close()


def measure_start(form: str, policy: PolicyToPlay) -> dict[str, float]:
    """Until the first answer of a new process: imports, physics, compilation, and 10 episodes of one policy."""
    began = time.perf_counter()
    with started(form, 1) as workers:
        play(form, workers, [policy])
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "core_seconds": workers[0].core_seconds(), **workers[0].megabytes()}


def trained_policies(task: str, updates: int, number: int) -> list[PolicyToPlay]:
    """Policies of five seeds; where more are wanted, the same ones with other episodes."""
    with tempfile.TemporaryDirectory() as folder:
        experiment = score_rl.train(
            f"replica:{task}-medium", algorithm="bc", steps=updates, seeds=range(5), eval_every=updates,
            eval_episodes=1, transitions=20_000, out=Path(folder) / "bc", quiet=True,
        )  # fmt: skip
        return [experiment[n % 5].to_play(EPISODES, seed=n // 5) for n in range(number)]


def figures(turns: Sequence[Turn]) -> dict[str, Any]:
    return {
        "seconds": statistics.median(turn.seconds for turn in turns),
        "core_seconds": statistics.median(turn.core_seconds for turn in turns),
        "steps": turns[0].steps,
        "mean_return": turns[0].returns,
        "core_microseconds_per_step": statistics.median(1e6 * turn.core_seconds / turn.steps for turn in turns),
        "rounds": len(turns),
    }


def measure_starts(asked: Arguments, results: Results) -> None:
    """Hopper's policies before they have learned: their episodes end at once, so that starting is what takes time."""
    policy = trained_policies("hopper", 2, 1)[0]
    found: dict[str, list[dict[str, float]]] = {form: [] for form in asked.forms}
    for _ in range(asked.rounds):
        for form in asked.forms:
            found[form].append(measure_start(form, policy))
    for form, starts in found.items():
        medians = {name: statistics.median(start[name] for start in starts) for name in starts[0]}
        results.keep("workers", {"what": "one process until its first answer", **medians}, f"start, {form}")
        say(f"{form}: {medians}")


def measure_playing(asked: Arguments, results: Results, task: str) -> None:
    """Processes that have played before; all forms in turns."""
    all_policies = trained_policies(task, asked.updates, max(asked.policies))
    with contextlib.ExitStack() as stack:
        pools = {form: stack.enter_context(started(form, max(asked.processes))) for form in asked.forms}
        for processes in asked.processes:
            for number in asked.policies:
                policies = all_policies[:number]
                for form, workers in pools.items():  # compiles and makes environments
                    play(form, workers[:processes], policies)
                turns: dict[str, list[Turn]] = {form: [] for form in asked.forms}
                for _ in range(asked.rounds):
                    for form, workers in pools.items():
                        turns[form].append(play(form, workers[:processes], policies))
                for form in asked.forms:
                    about = {"task": task, "policies": number, "processes": processes, "form": form}
                    mine = figures(turns[form])
                    results.keep("workers", about | mine, f"{task}, {number} policies, {processes} processes, {form}")
                    say(f"{about}: {mine}")
        for form, workers in pools.items():
            memory = {"what": "a process that has played", "form": form, **workers[0].megabytes()}
            results.keep("workers", memory, f"memory, {task}, {form}")
            say(f"{memory}")


def main(asked: Arguments) -> None:
    results = Results(asked.out)
    measure_starts(asked, results)
    for task in asked.tasks:
        measure_playing(asked, results, task)


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
