"""Record OGBench's data, train the methods of docs/ogbench.md on them, and store the results.

    python -m benchmarks.training.ogbench --out runs/ogbench --seconds 560
    python -m benchmarks.training.ogbench --out runs/ogbench --families scene puzzle-3x3 --seeds 2 --steps 200000
    python -m benchmarks.training.ogbench --out runs/field --protocol field
    python -m benchmarks.training.ogbench --out runs/trial --families cube-single --methods bc iql --tasks 2 \\
      --transitions 150000 --hidden 256 256 --seeds 1 --steps 60000 --at-once 1        # two CPU cores: a trial

Data are recorded on all cores, one family after the other. A family's jobs begin when its data are there; those of
earlier families first. Each job is a process, and several use the device at once. After `--seconds` what trains is
stopped, and stored as the shorter training it is. Called again, everything goes on where it stands.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import jax
import tyro

from benchmarks.training.ogbench_one import (
    CHOSEN,
    GRID,
    Arguments,
    is_stored,
    log_of,
    mark_of,
    record,
    store_reached,
    train,
)
from benchmarks.training.sharing import (
    end_of,
    end_when_told,
    gpu_for_many,
    refuse_nameless_code,
    stop_with_parent,
    tell_trainings,
    told_to_share,
)
from score_rl.errors import InputError

SECONDS_TO_STOP = 50  # in which a training ends its evaluations and writes its checkpoint
SECONDS_TO_STORE = 10  # what was reached then
CORES_EACH = {GRID: 9}  # of a training: its own, and others for the processes that judge
MOST_CORES = 5  # of all others
NICENESS = 19  # of recording while something trains
STOPPED = 3  # exit code
TRAININGS = "trainings"  # the file that says how many there are now


@dataclass
class Task:
    """Something to do in a process of its own, and the process when it runs."""

    name: str  # as `--only` takes it
    needs: tuple[str, ...] = ()  # other tasks, which come first
    process: "subprocess.Popen[bytes] | None" = None
    before: bool = False  # whether it ended in an earlier call
    is_stopped: bool = False  # it was asked to end

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def ended(self) -> bool:
        return self.before or (self.process is not None and self.process.poll() == 0)

    @property
    def has_failed(self) -> bool:
        """Whether it ended in an error, by itself."""
        code = None if self.process is None else self.process.poll()
        return code not in (None, 0, STOPPED) and not self.is_stopped

    @property
    def trains(self) -> bool:
        return self.name.startswith("train:")


def tasks_of(asked: Arguments) -> list[Task]:
    """Everything that is asked for, in order."""
    tasks: list[Task] = []
    for family in asked.families:
        before = tuple(task.name for task in tasks if not task.trains)
        tasks.append(Task(f"record:{family}", before[-1:]))  # all cores record one family at a time
        for method in () if asked.record_only else asked.methods:
            grid = (f"train:{family}:{GRID}",) if method == CHOSEN else ()
            tasks.append(Task(f"train:{family}:{method}", (f"record:{family}", *grid)))
    return tasks


def main(asked: Arguments) -> None:
    if asked.only is not None:
        stop_with_parent()
        do_one(asked, asked.only)
        return
    refuse_nameless_code()
    end_when_told()
    began = time.monotonic()
    asked.out.mkdir(parents=True, exist_ok=True)
    tasks = tasks_of(asked)
    note_what_is_done(asked, tasks)
    with gpu_for_many(), ending(tasks):
        while time.monotonic() - began < asked.seconds - SECONDS_TO_STOP - SECONDS_TO_STORE:
            start_what_is_ready(asked, tasks)
            tell_trainings(asked.out / TRAININGS, sum(task.trains and task.running for task in tasks))
            if not any(task.running for task in tasks):
                break
            time.sleep(0.5)
    tell_trainings(asked.out / TRAININGS, 0)
    jax.config.update("jax_platforms", "cpu")  # the GPU is for training
    for task in tasks:
        if task.trains and task.process is not None and not task.ended:
            store_reached(asked, *task.name.split(":")[1:])
    failed = [task for task in tasks if task.has_failed]
    for task in failed:
        print(f"{task.name} failed:\n{end_of(log_of(asked, task.name))}", flush=True)
    begun = [task.name for task in tasks if task.process is not None and not task.ended]
    print(f"{time.monotonic() - began:.0f} s; not ended: {', '.join(begun) or 'nothing that began'}", flush=True)
    if failed:
        sys.exit(1)


def do_one(asked: Arguments, name: str) -> None:
    what, family, *method = name.split(":")
    if what == "record":
        record(asked, family)
    elif not train(asked, family, method[0]):
        sys.exit(STOPPED)
    mark_of(asked, name).touch()


def note_what_is_done(asked: Arguments, tasks: Sequence[Task]) -> None:
    """What ended here before, or is stored from elsewhere. Data that nothing needs any more are not recorded."""
    for task in tasks:
        what, family, *method = task.name.split(":")
        task.before = mark_of(asked, task.name).exists() or (what == "train" and is_stored(asked, family, *method))
    for task in tasks:
        needed = any(task.name in other.needs and not other.before for other in tasks)
        task.before |= not (task.trains or asked.record_only or needed)


def start_what_is_ready(asked: Arguments, tasks: Sequence[Task]) -> None:
    ended = {task.name for task in tasks if task.ended}
    for task in tasks:
        training = [other for other in tasks if other.trains and other.running]
        if (
            task.process is None
            and not task.before
            and ended.issuperset(task.needs)
            and (not task.trains or len(training) < asked.at_once)
        ):
            task.process = start(asked, task.name, len(training) if task.trains else None)


def start(asked: Arguments, name: str, place: int | None) -> "subprocess.Popen[bytes]":
    """Start a process for a task. Trainings get cores by their place among those that run; recording gets all."""
    told = replace(asked, out=asked.out.absolute(), only=name)
    command = [sys.executable, "-m", "benchmarks.training.ogbench", *flags_of(told)]
    cores = sorted(os.sched_getaffinity(0))

    def settle() -> None:
        if place is None:
            os.nice(NICENESS)
        else:
            number = CORES_EACH.get(name.split(":")[-1], MOST_CORES)
            os.sched_setaffinity(0, {cores[(2 * place + n) % len(cores)] for n in range(number)})

    with log_of(asked, name).open("ab") as log:
        environment = os.environ | told_to_share(asked.memory_share)
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, preexec_fn=settle)


def flags_of(asked: Arguments) -> Iterator[str]:
    """The command line that gives these arguments."""
    for name, value in vars(asked).items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            yield flag if value else f"--no-{flag[2:]}"
        elif isinstance(value, tuple):
            yield from (flag, *map(str, value))
        elif value is not None:
            yield from (flag, str(value))


@contextmanager
def ending(tasks: Sequence[Task]) -> Iterator[None]:
    """End what still runs afterwards: trainings write checkpoints."""
    try:
        yield
    finally:
        deadline = time.monotonic() + SECONDS_TO_STOP
        for task in tasks:
            if task.process is not None and task.running:
                task.is_stopped = True
                task.process.send_signal(signal.SIGTERM)
        for task in tasks:
            if task.process is not None:
                try:
                    task.process.wait(max(0.1, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    task.process.kill()
                    task.process.wait()


if __name__ == "__main__":
    try:
        main(tyro.cli(Arguments, description=__doc__))
    except InputError as mistake:
        sys.exit(str(mistake))
