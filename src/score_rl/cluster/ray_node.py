"""What runs on a node of Ray: a question is answered, a fleet is trained. `ray_engine.py` starts both."""

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from score_rl.cluster.mirror import Mirror
from score_rl.cluster.orders import BROKEN, DataEntry, Order, Outcome
from score_rl.errors import InputError

TICK = 1.0  # seconds between two looks of a task at its training
Item = tuple[str, Any]  # "node" with its id, "file" with what changed, or "outcome"


class StopFlag:
    """An actor that tasks ask whether they should end."""

    def __init__(self) -> None:
        self._is_up = False

    def put_up(self) -> None:
        self._is_up = True

    def is_up(self) -> bool:
        return self._is_up


def _fetching(references: Mapping[str, Any]) -> Any:
    """From Ray's object store. It is asked only where the node's cache lacks a data set."""

    def fetch(entry: DataEntry, target: Path) -> None:
        import ray

        ray.get(references[entry.checksum]).tofile(target)

    return fetch


def answer_on_node(question: dict[str, Any], references: Mapping[str, Any]) -> dict[str, Any]:
    import ray

    from score_rl.cluster.survey import answer

    said = answer(question, _fetching(references))
    return said | {"node": ray.get_runtime_context().get_node_id()}


def train_on_node(
    order_text: str, references: Mapping[str, Any], given: Mapping[str, Any], flag: Any
) -> Iterator[Item]:
    """Train beside this thread. What changes in a folder that the driver cannot see is sent to it."""
    import ray

    from score_rl.cluster.work import machine_name, perform, sees
    from score_rl.run.signals import StopRequest

    yield "node", ray.get_runtime_context().get_node_id()
    order, stop = Order.from_json(order_text), StopRequest()
    _keep_to_own_cores()
    if order.shared and not sees(order):
        blind = (
            f"{machine_name()} does not see {order.attempt}; give `storage=driver`, and files go through the driver."
        )
        yield "outcome", vars(Outcome(BROKEN, blind, machine_name()))
        return
    try:
        mirror = Mirror(order, None if order.shared else ray.get(given["files"]))
    except InputError as error:
        yield "outcome", vars(Outcome(BROKEN, str(error), machine_name()))
        return
    with mirror:
        outcome: list[Outcome] = []
        training = threading.Thread(
            target=lambda: outcome.append(perform(order, mirror.folder, stop, _fetching(references))), name="training"
        )
        training.start()
        while training.is_alive():
            training.join(TICK)
            if not order.shared:
                yield from (("file", change) for change in mirror.changes())
            stop.asked = stop.asked or _is_up(flag)
        if not order.shared:
            yield from (("file", change) for change in mirror.changes(last=True))
        yield (
            "outcome",
            {"state": BROKEN, "error": "training ended without a word"} if not outcome else vars(outcome[0]),
        )


def _is_up(flag: Any) -> bool:
    """False too where the flag is lost: then the driver is, and Ray ends this task."""
    import ray

    try:
        return bool(ray.get(flag.is_up.remote(), timeout=10 * TICK))
    except ray.exceptions.RayError:
        return False


def _keep_to_own_cores() -> None:
    """Of a machine with several GPUs each task takes its share of the cores, by the number of its GPU."""
    import ray

    context = ray.get_runtime_context()
    gpus = [int(gpu) for gpu in ray.get_gpu_ids() if str(gpu).isdecimal()]
    share = int(context.get_assigned_resources().get("CPU", 0))
    if not gpus or share < 1 or not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    mine = cores[min(gpus) * share : (min(gpus) + len(gpus)) * share][:share]
    if len(mine) == share:
        os.sched_setaffinity(0, mine)
