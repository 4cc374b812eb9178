"""What a machine says of itself, and what it is asked before a training: how many runs fit, and how fast they are."""

import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from score_rl.algorithms.registry import algorithm_names, get_algorithm
from score_rl.cluster.data import Fetch, copy_shared
from score_rl.cluster.orders import Order
from score_rl.cluster.speed import measured_pace
from score_rl.cluster.work import machine_name, runs_of
from score_rl.disk import write_file
from score_rl.engine.memory import free_memory
from score_rl.engine.runs import group_fleets
from score_rl.errors import InputError, MachineError
from score_rl.run.compiled_programs import keep_compiled_programs
from score_rl.run.fleets import form_fleets
from score_rl.run.messages import Announcer
from score_rl.run.precision import choose_precision
from score_rl.store.provenance import provenance

ANSWER = "answer.json"  # beside a question in a file


@dataclasses.dataclass(frozen=True)
class Machine:
    """What the driver knows of one kind of machine."""

    name: str
    platform: str  # cpu, gpu or tpu
    device: str  # the kind of it
    devices: int  # that one task has
    cores: int
    free: int | None  # bytes of a device
    precisions: dict[str, str]  # what `auto` is, for each algorithm
    provenance: dict[str, Any]


def survey() -> dict[str, Any]:
    """This machine, with the devices that a task has here."""
    import jax

    devices = jax.local_devices()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return dataclasses.asdict(
        Machine(
            name=machine_name(),
            platform=devices[0].platform,
            device=devices[0].device_kind,
            devices=len(devices),
            cores=cores,
            free=free_memory(devices[0]),
            precisions={name: choose_precision(get_algorithm(name), "auto") for name in algorithm_names()},
            provenance=provenance(),
        )
    )


def divide(order: Order, gibibytes: float | None, widths: bool, fetch: Fetch = copy_shared) -> dict[str, Any]:
    """Which runs fit together here, and with `widths` how long an update of fewer and of more of them takes."""
    keep_compiled_programs()
    runs = runs_of(order, fetch)
    said: list[str] = []

    class Collecting(Announcer):
        def insist(self, message: str) -> None:
            said.append(message)

    fleets = form_fleets(runs, order.request, gibibytes, Collecting(Console(quiet=True)))
    precisions = {asked.name: asked.precision for asked in order.request.algorithms}
    paces = []
    for fleet in group_fleets(runs) if widths else []:
        largest = max((part for part in fleets if part[0].fleet_key == fleet[0].fleet_key), key=len)
        pace = measured_pace(largest, order.request.log_every, precisions[fleet[0].algorithm.name])
        paces.append({"runs": [run.id for run in fleet], **dataclasses.asdict(pace)})
    return {"fleets": [[run.id for run in fleet] for fleet in fleets], "said": said, "paces": paces}


def judged(question: dict[str, Any]) -> dict[str, Any]:
    """Judge an experiment's policies here; what was found is stored in its folder, which this machine shares."""
    from score_rl.judge.judging import judge

    if Path(question["began_in"]).is_dir():
        os.chdir(question["began_in"])  # relative to it data are named
    asked = {name: question[name] for name in ("runs", "effort", "discount")}
    judge(Path(question["folder"]), question["data"], **asked, quiet=True)
    return {"machine": machine_name()}


def answer(question: dict[str, Any], fetch: Fetch = copy_shared) -> dict[str, Any]:
    """What is asked, as JSON has it. What a user did wrong is an answer too, and what is wrong with this machine."""
    try:
        if question["kind"] == "survey":
            return survey()
        if question["kind"] == "divide":
            order = Order.from_json(json.dumps(question["order"]))
            return divide(order, question["gibibytes"], question["widths"], fetch)
        if question["kind"] == "judge":
            return judged(question)
        if question["kind"] == "sees":
            return {"machine": machine_name(), "sees": Path(question["file"]).is_file()}
    except MachineError as error:
        return {"broken": str(error)}
    except InputError as error:
        return {"refused": str(error)}
    raise ValueError(f"a question of the kind {question['kind']!r}")


def main(arguments: Sequence[str]) -> int:
    """The question in a file on shared storage; the answer is written beside it."""
    file = Path(arguments[0])
    write_file(file.with_name(ANSWER), json.dumps(answer(json.loads(file.read_text()))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
