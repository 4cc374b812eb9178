"""What it costs to judge policies: physics, acting, Python."""

import contextlib
import os
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from score_rl.data.catalogue import load_dataset
from score_rl.engine.program import FleetProgram
from score_rl.envs import TASKS, available_cores
from score_rl.rollout import episodes as rollouts
from score_rl.rollout.acting import FleetActor

from .arguments import Arguments, say
from .timing import Clock, Results
from .whole_training import EPISODES, score_runs


def measure_evaluation(asked: Arguments, results: Results, clock: Clock) -> None:
    """Untrained policies: halfcheetah's episodes have 1,000 steps all the same, the others' are short."""
    for task in TASKS:
        data = load_dataset(f"replica:{task}-medium", transitions=min(asked.transitions, 20_000))
        for runs in (3 * asked.seeds, 15 * asked.seeds):
            if clock.over():
                say(f"no time left for {runs} runs on {task}")
                continue
            fleet, spec = score_runs([data], runs, 2, 2)
            program = FleetProgram(fleet)
            policies = jax.device_get(program.policies(program.init()))
            actor = FleetActor(program, spec)
            ids = {run.id for run in fleet}
            actor.judge(jax.tree.map(np.zeros_like, policies), 0, ids)  # compiles
            wall, cpu = time.perf_counter(), _cpu_seconds(actor)
            rows = actor.judge(policies, 0, ids)
            wall, cpu = time.perf_counter() - wall, _cpu_seconds(actor) - cpu
            groups = len(actor.pids) or len(rollouts.policy_groups(runs, EPISODES, available_cores()))
            steps = EPISODES * sum(row.value for row in rows if row.name == "evaluation/episode_length")
            figures = {
                "what": "10 episodes of every run, untrained SCORE policies",
                "task": task,
                "runs": runs,
                "cores": available_cores(),
                "groups": groups,
                "processes": len(actor.pids),
                "environment_steps": steps,
                "seconds": wall,
                "cpu_seconds": cpu,
                "environment_steps_per_second": steps / wall,
                "policy_cpu_seconds": _seconds_of_acting(actor, policies, runs) * steps / (runs * EPISODES),
            }
            results.keep("evaluation", figures, f"{task}-{runs}")
            say(
                f"{task}, {runs} × {EPISODES} episodes: {steps:,.0f} steps in {wall:.2f} s ({cpu:.2f} s of cores), "
                f"{steps / wall:,.0f} steps/s; of it acting {figures['policy_cpu_seconds']:.2f} s; {groups} groups"
            )
            actor.close()


def _cpu_seconds(actor: FleetActor) -> float:
    """Of this process and those that judge for it."""
    ticks = 0
    for pid in actor.pids:
        with contextlib.suppress(FileNotFoundError):  # Linux alone says so of another process
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return time.process_time() + (ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0)


def _seconds_of_acting(actor: FleetActor, policies: Any, runs: int) -> float:
    """One action of every episode, on one core."""
    config, treatment = actor._fixed
    width = treatment.observation_mean.shape[-1]
    observations = np.zeros((runs, EPISODES, width), np.float32)
    np.asarray(actor._act(config, treatment, policies, observations))
    began = time.process_time()
    for _ in range(50):
        np.asarray(actor._act(config, treatment, policies, observations))
    return (time.process_time() - began) / 50
