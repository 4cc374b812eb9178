"""A process that records episodes: `python -m score_rl.data.collection.oracle_worker`, started by `oracle_recording`.

It reads one line of JSON that says what to record, and then a line for each part: the file and the numbers of its
episodes. It says a line when an episode is recorded and its part is written. It ends when its lines end.
"""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np

from score_rl.data.collection.maze_episodes import MazeEpisodes
from score_rl.data.collection.oracle_episodes import OracleEpisodes, OracleTask
from score_rl.disk import replacing


def main() -> None:
    said = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints must not print into what is said
    warnings.simplefilter("ignore")
    about = json.loads(sys.stdin.readline())
    task, starter = OracleTask(**about["task"]), os.getppid()
    recorder = MazeEpisodes if task.environment.startswith("pointmaze") else OracleEpisodes
    episodes = recorder(task, about["seed"])
    for line in sys.stdin:
        part = json.loads(line)
        recorded = []
        for number in part["episodes"]:
            if os.getppid() != starter:  # nobody waits for it any more
                return
            recorded.append(episodes.record(number))
        rows = {name: np.concatenate([one[name] for one in recorded]) for name in recorded[0]}
        with replacing(Path(part["file"])) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **rows)
        said.write(f"{len(rows['terminals'])}\n")
        said.flush()


if __name__ == "__main__":
    main()
