"""Tasks of Ray Core. Nothing but this module and `ray_node.py` imports Ray."""

import os
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from score_rl.cluster.engines import Ended, Task
from score_rl.cluster.mirror import apply, files_of
from score_rl.cluster.orders import DataEntry, Order, Outcome
from score_rl.cluster.ray_node import StopFlag, answer_on_node, train_on_node
from score_rl.errors import InputError, not_installed
from score_rl.run.messages import Announcer

KNOWN = ("gpus", "cpus", "memory", "at_once")
PATIENCE = 10.0  # seconds for an address to answer
SOON = 30.0  # seconds in which nodes answer on which nobody else works
NODE = "ray.io/node-id"  # the label that every node has


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise not_installed("--on ray needs Ray", "ray") from None
    return ray


class RayEngine:
    """One task for each fleet. Ray finds a node for it; the driver tries it again where that is lost."""

    title = "Ray"

    def __init__(self, address: str | None, task: Task, announcer: Announcer) -> None:
        task.refuse_others(KNOWN, "--on ray")
        self._ray = _ray()
        self._task, self._announcer = task, announcer
        self._connected_here = not self._ray.is_initialized()  # else somebody uses Ray in this process already
        if self._connected_here:
            self._connect(address)
        try:
            self._resources = self._wanted()
        except InputError:
            self._let_go()
            raise
        self._flag = self._ray.remote(num_cpus=0, scheduling_strategy=self._here())(StopFlag).remote()
        self._data: dict[str, Any] = {}  # in the object store, by checksum
        self._running: dict[int, tuple[Order, Any]] = {}
        self._node_of: dict[int, str] = {}  # the node of each fleet's newest task
        self._avoided: set[str] = set()
        self._on_node = self._ray.remote(max_retries=0, max_calls=1, num_returns="streaming", **self._resources)(
            train_on_node
        )

    def _connect(self, address: str | None) -> None:
        _refuse_silence(address or os.environ.get("RAY_ADDRESS") or "auto")
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            if address is not None:
                self._ray.init(address=address, **quiet)
                return
            try:
                self._ray.init(address="auto", **quiet)
            except ConnectionError:
                self._ray.init(include_dashboard=False, **quiet)  # a cluster of this machine alone
        except Exception as error:
            raise InputError(_why_not_connected(error, address or "this machine")) from error

    def _here(self) -> Any:
        """On the driver's own node: it lives as long as the driver."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=True)

    # -- machines ------------------------------------------------------------------------------------------------

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0]

    def _wanted(self) -> dict[str, float]:
        """What a task asks for: what was said, else a GPU with its share of cores, else all cores of a node."""
        nodes = self._nodes()
        gpus = self._task.number("gpus")
        if gpus is None:
            gpus = 1.0 if any(node["Resources"].get("GPU", 0) >= 1 for node in nodes) else 0.0
        fitting = [node["Resources"] for node in nodes if node["Resources"].get("GPU", 0) >= gpus]
        cpus = self._task.number("cpus")
        if cpus is None:
            shares = [have["CPU"] // max(1.0, have.get("GPU", 0) / gpus if gpus else 1.0) for have in fitting]
            cpus = max(1.0, min(shares, default=1.0))
        memory = self._task.number("memory")
        asked = {"num_cpus": cpus, "num_gpus": gpus} | ({} if memory is None else {"memory": memory * 2**30})
        if not any(have["CPU"] >= cpus and have.get("GPU", 0) >= gpus for have in fitting):
            raise InputError(
                f"no node of the Ray cluster has {cpus:g} cores and {gpus:g} GPUs (it has {len(nodes)} nodes with "
                "cores); add a node, or ask for less with `task`, such as cpus=1."
            )
        return asked

    def survey(self, question: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Of all nodes that are free soon, and of one of each kind, however long that takes."""
        waiting = {self._on(node, dict(question), ()): node for node in self._nodes() if self._fits(node) >= 1}
        found, kinds, began, told = [], set(), time.monotonic(), False
        while waiting:
            ready, _ = self._ray.wait(list(waiting), num_returns=1, timeout=1.0)
            for asked in ready:
                node, answer = waiting.pop(asked), self._answer(asked)
                if answer is not None:
                    found.append(answer)
                    kinds.add(_kind(node))
            if ready or time.monotonic() - began < SOON:
                continue
            if {_kind(node) for node in waiting.values()} <= kinds:
                break
            if not told:
                self._announcer.say(
                    f"{len(waiting)} nodes of the Ray cluster are busy; the first free one is waited for."
                )
                told = True
        for asked in waiting:
            self._ray.cancel(asked, force=True)
        return found

    def ask(self, question: Mapping[str, Any], needs: Sequence[Any], device: str) -> dict[str, Any]:
        """Of the node that the driver names."""
        nodes = [node for node in self._nodes() if self._fits(node) >= 1]
        nodes.sort(key=lambda node: node["NodeID"] != device)
        for node in nodes:
            answer = self._answer(self._on(node, dict(question), needs))
            if answer is not None:
                return answer
        raise InputError("no node of the Ray cluster answered; look at `ray status`.")

    def _on(self, node: Mapping[str, Any], question: dict[str, Any], needs: Sequence[DataEntry]) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        answering = self._ray.remote(max_retries=0, max_calls=1, scheduling_strategy=here, **self._resources)(
            answer_on_node
        )
        return answering.remote(question, self._put(needs))

    def _answer(self, asked: Any) -> dict[str, Any] | None:
        """None of a node that was lost meanwhile."""
        from ray import exceptions

        try:
            found: dict[str, Any] = self._ray.get(asked)
        except exceptions.RayTaskError as error:
            raise InputError(f"a node of the Ray cluster failed: {str(error.cause)[:300]}.") from error
        except exceptions.RayError:
            return None
        return found

    def _fits(self, node: Mapping[str, Any]) -> int:
        """How many tasks a node can have at once."""
        have, want = node["Resources"], self._resources
        counts = [have.get("CPU", 0) // want["num_cpus"]] if want["num_cpus"] else []
        counts += [have.get("GPU", 0) // want["num_gpus"]] if want["num_gpus"] else []
        return int(min(counts, default=1))

    def places(self) -> int:
        """Of the nodes that are there. More may be asked for: what waits makes Ray's autoscaler add nodes."""
        asked = self._task.number("at_once")
        used = [node for node in self._nodes() if node["NodeID"] not in self._avoided]
        return sum(map(self._fits, used)) if asked is None else int(asked)

    def avoid(self, place: str) -> bool:
        left = [node for node in self._nodes() if node["NodeID"] not in {*self._avoided, place} and self._fits(node)]
        if left:
            self._avoided.add(place)
        return bool(left)

    # -- tasks ---------------------------------------------------------------------------------------------------

    def _put(self, entries: Sequence[DataEntry]) -> dict[str, Any]:
        """References to the files of data sets. Ray moves one to a node when a task there asks for it, once."""
        for entry in entries:
            if entry.checksum not in self._data:
                self._data[entry.checksum] = self._ray.put(np.fromfile(entry.file, np.uint8))
        return {entry.checksum: self._data[entry.checksum] for entry in entries}

    def start(self, order: Order) -> None:
        files = None if order.shared else self._ray.put(files_of(order.path))
        others = {"label_selector": {NODE: f"!in({','.join(sorted(self._avoided))})"}} if self._avoided else {}
        starting = self._on_node.options(**others)
        tasks = starting.remote(order.to_json(), self._put(order.data), {"files": files}, self._flag)
        self._running[order.number] = order, tasks
        self._node_of.pop(order.number, None)

    def adopt(self, order: Order) -> bool:
        return False  # Ray ends a driver's tasks with the driver

    def active(self) -> int:
        return len(self._running)

    def ended(self, seconds: float) -> list[Ended]:
        """Takes what tasks send meanwhile; files go into their attempts."""
        until, over = time.monotonic() + seconds, []
        while self._running:
            waiting = {tasks: number for number, (_, tasks) in self._running.items()}
            left = max(0.0, until - time.monotonic())
            ready, _ = self._ray.wait(list(waiting), num_returns=1, timeout=left, fetch_local=False)
            for tasks in ready:
                found = self._next(waiting[tasks], tasks)
                over += [found] if found is not None else []
            if over or not ready or time.monotonic() >= until:
                return over
        time.sleep(max(0.0, until - time.monotonic()) if not over else 0.0)
        return over

    def _next(self, number: int, tasks: Any) -> Ended | None:
        """Deal with what a task sent next. An error is how its node was lost."""
        order = self._running[number][0]
        try:
            kind, content = self._ray.get(next(tasks))
        except StopIteration:
            return self._over(number, None, "it ended without a word")
        except Exception as error:  # of Ray: there are a dozen kinds of loss
            return self._over(number, None, str(error).splitlines()[0][:200] or type(error).__name__)
        if kind == "node":
            self._node_of[number] = content
            return None
        if kind == "file":
            apply(content, order.path)
            return None
        return self._over(number, Outcome.from_json(content))

    def _over(self, number: int, outcome: Outcome | None, reason: str = "") -> Ended:
        del self._running[number]
        return Ended(number, outcome, reason, self._node_of.pop(number, ""))

    def stop(self) -> None:
        self._flag.put_up.remote()

    def close(self) -> None:
        for _, tasks in self._running.values():
            self._ray.cancel(tasks, force=True)
        self._running = {}
        self._let_go()

    def _let_go(self) -> None:
        if self._connected_here:
            self._ray.shutdown()


def _kind(node: Mapping[str, Any]) -> frozenset[str]:
    """Nodes with the same accelerators are of one kind."""
    return frozenset(name for name in node["Resources"] if name.startswith("accelerator_type:"))


def _refuse_silence(address: str) -> None:
    """Ray itself would try for minutes."""
    if "://" in address:
        raise InputError(
            f"{address} is an address of Ray Client, and training is led from a machine of the cluster: call this "
            "there, with --on ray."
        )
    if address in ("auto", "local"):
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise InputError(f"`on` is ray:{address}; it must be ray:HOST:PORT, such as ray:10.0.0.1:6379.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except OSError as error:
        raise InputError(_why_not_connected(error, address)) from error


def _why_not_connected(error: Exception, where: str) -> str:
    said = " ".join(str(error).split())
    if "ersion mismatch" in said:
        return f"Ray differs between {where} and this machine ({said[:400]}); install the same Ray and Python on both."
    return (
        f"no Ray cluster answers at {where} ({said[:200]}); start one with `ray start --head`, or give its address as "
        "--on ray:HOST:PORT."
    )
