"""A real Ray cluster on this machine: a head without cores, and nodes that are processes with folders of their own.

`python -m tests.cluster.nodes FOLDER NUMBER` starts one. It prints the address, then obeys lines: `kill node-0`, `end`.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


class Nodes:
    """The cluster, in a process of its own: it must outlive drivers, and its nodes inherit nothing from the test."""

    def __init__(self, folder: Path, number: int) -> None:
        self._said = (folder / "nodes.txt").open("w")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.nodes", str(folder), str(number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True, env=dict(os.environ),
        )  # fmt: skip
        self.address = self._answer()

    def __enter__(self) -> "Nodes":
        return self

    def __exit__(self, *of_the_error: object) -> None:
        try:
            self._tell("end")
        finally:
            self._process.wait(60)
            for stream in (self._process.stdin, self._process.stdout, self._said):
                assert stream is not None
                stream.close()

    def _tell(self, line: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("> "):
                return line.removeprefix("> ").strip()
        raise RuntimeError(f"the cluster ended: {Path(self._said.name).read_text()[-2000:]}")

    def kill(self, name: str) -> str:
        """End a node at once, with all that runs on it; another takes its place."""
        return self._tell(f"kill {name}")


def environment(folder: Path, number: int) -> dict[str, str]:
    """A cache of its own for every node; the programs that it compiles are shared, to save time."""
    return {"SCORE_RL_NODE": f"node-{number}", "SCORE_RL_CACHE": str(folder / f"node-{number}")}


def main(folder: Path, number: int) -> None:
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes: list[Any] = []

    def add() -> None:
        nodes.append(cluster.add_node(num_cpus=1, env_vars=environment(folder, len(nodes)), wait=True))

    for _ in range(number):
        add()
    alive = list(range(number))
    print(f"> {cluster.address}", flush=True)
    for line in sys.stdin:
        what, *rest = line.split()
        if what == "end":
            break
        victim = int(rest[0].removeprefix("node-"))
        if victim not in alive:
            print("> dead already", flush=True)
            continue
        cluster.remove_node(nodes[victim], allow_graceful=False)
        alive.remove(victim)
        add()
        alive.append(len(nodes) - 1)
        print(f"> node-{victim}", flush=True)
    cluster.shutdown()
    print("> ended", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(Path(sys.argv[1]), int(sys.argv[2]))
