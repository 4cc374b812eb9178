"""Tasks as processes of this machine, which share its GPUs."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from score_rl.cluster.engines import Ended, Task
from score_rl.cluster.orders import Order, Outcome
from score_rl.errors import InputError
from score_rl.store.parts import ORDER, OUTCOME, read_json

GRACE = 60.0  # seconds in which a process may write its last checkpoint


class ProcessEngine:
    """So many processes at once; each is a machine of its own to the driver."""

    title = "processes"

    def __init__(self, at_once: int, task: Task) -> None:
        task.refuse_others((), "--on processes")
        self._free = list(range(at_once))
        self._at_once = at_once
        self._gpus: list[str] = []  # that processes share; none where they need not
        self._running: dict[int, tuple[int, Order, subprocess.Popen[bytes]]] = {}

    def survey(self, question: Mapping[str, Any]) -> list[dict[str, Any]]:
        answer = self.ask(question, (), "")
        if self._at_once > 1 and answer.get("platform") == "gpu":
            self._share(answer["devices"])
            answer["devices"] //= self._at_once
        return [answer]

    def _share(self, gpus: int) -> None:
        """Each process gets GPUs that no other has: two could not have the memory of one."""
        seen = os.environ.get("CUDA_VISIBLE_DEVICES")
        self._gpus = seen.split(",") if seen else list(map(str, range(gpus)))
        if len(self._gpus) < self._at_once:
            raise InputError(
                f"`on` is processes:{self._at_once} and there are {len(self._gpus)} GPUs, of which each process needs "
                f"one; give processes:{len(self._gpus)}, or set CUDA_VISIBLE_DEVICES to more."
            )

    def ask(self, question: Mapping[str, Any], needs: Sequence[Any], device: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "question.json"
            file.write_text(json.dumps(question))
            command = [sys.executable, "-m", "score_rl.cluster.survey", str(file)]
            done = subprocess.run(command, env=self._environment(0), capture_output=True, text=True)
            answer = read_json(file.with_name("answer.json"))
        if not answer:
            raise InputError(f"a process of this machine did not answer: {done.stderr.strip()[-500:]}")
        return answer

    def places(self) -> int:
        return self._at_once

    def avoid(self, place: str) -> bool:
        return False  # all processes are on this machine

    def start(self, order: Order) -> None:
        place = self._free.pop(0)
        command = [sys.executable, "-m", "score_rl.cluster.work", str(order.path / ORDER)]
        with (order.path / "process.txt").open("ab") as said:
            process = subprocess.Popen(
                command, env=self._environment(place), stdout=said, stderr=said, start_new_session=True
            )
        self._running[order.number] = place, order, process

    def adopt(self, order: Order) -> bool:
        return False  # processes end with their driver

    def active(self) -> int:
        return len(self._running)

    def ended(self, seconds: float) -> list[Ended]:
        until = time.monotonic() + seconds
        while True:
            over = [number for number, (_, _, process) in self._running.items() if process.poll() is not None]
            if over or time.monotonic() >= until:
                return [self._ended(number) for number in over]
            time.sleep(0.05)

    def stop(self) -> None:
        """The driver's file among the parts is enough."""

    def close(self) -> None:
        for _, _, process in self._running.values():
            process.terminate()
        for _, _, process in self._running.values():
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running = {}

    def _ended(self, number: int) -> Ended:
        place, order, process = self._running.pop(number)
        self._free.append(place)
        outcome = Outcome.from_json(read_json(order.path / OUTCOME))
        return Ended(number, outcome, f"its process ended with status {process.returncode}")

    def _environment(self, place: int) -> dict[str, str]:
        own = {"SCORE_RL_NODE": f"{os.uname().nodename}/{place}"} if hasattr(os, "uname") else {}
        if self._gpus:
            own["CUDA_VISIBLE_DEVICES"] = ",".join(self._gpus[place :: self._at_once])
        return os.environ | own
