"""One episode of OGBench's pointmaze data: the point follows the shortest way, with noise on every action.

The point needs no learned expert: an action moves it straight into a direction, and the package knows the next cell of
the shortest way. Ants and humanoids need one, so their data are read from files only.

- *navigate*: it starts in any cell. Whenever it is at its goal, a new goal is drawn among all cells but those of halls.
- *stitch*: its goal lies four cells from its start, and it stays there. Episodes are short.
"""

import functools
from typing import Any

import numpy as np

from score_rl.data.collection.oracle_episodes import COLUMNS as ORACLE_COLUMNS
from score_rl.data.collection.oracle_episodes import OracleTask, Rows, make_for_recording, seeded

NOISE = 0.5  # deviation of the noise on actions, in all published pointmaze data
STITCHED = 4  # cells from start to goal
COLUMNS = {name: kind for name, kind in ORACLE_COLUMNS.items() if name != "button_states"}  # a maze has none
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1))
Cell = tuple[int, int]


class MazeEpisodes:
    """Records episodes of a maze, each from its number alone."""

    def __init__(self, task: OracleTask, seed: int) -> None:
        self._task, self._seed = task, seed
        self._environment = make_for_recording(task)
        self._maze = self._environment.unwrapped
        self._free = free_cells(self._maze.maze_map)
        self._goals = [cell for cell in self._free if not is_hall(self._maze.maze_map, cell)]

    def record(self, number: int) -> Rows:
        draws = seeded((self._seed, number, 0))
        start = self._free[draws.integers(len(self._free))]
        goal = self._first_goal(start, draws)
        observation, _ = self._environment.reset(
            seed=int(draws.integers(2**31)), options={"task_info": {"init_ij": start, "goal_ij": goal}}
        )
        recorded: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        ended = False
        while not ended:
            action = np.clip(self._direction() + draws.normal(0, NOISE, 2), -1, 1)
            following, _, terminated, truncated, info = self._environment.step(action)
            ended = terminated or truncated
            if info["success"] and self._task.kind == "navigate":
                self._move_goal(self._goals[draws.integers(len(self._goals))])
            row = (observation, action, ended, info["prev_qpos"], info["prev_qvel"])
            for column, value in zip(recorded.values(), row, strict=True):
                column.append(value)
            observation = following
        return {name: np.array(column, COLUMNS[name]) for name, column in recorded.items()}

    def _first_goal(self, start: Cell, draws: np.random.Generator) -> Cell:
        among = self._goals
        if self._task.kind == "stitch":
            among = [cell for cell, steps in self._distances(start).items() if steps == STITCHED] or [start]
        return among[draws.integers(len(among))]

    def _move_goal(self, cell: Cell) -> None:
        self._maze.set_goal(goal_xy=self._maze.add_noise(self._maze.ij_to_xy(cell)))

    def _direction(self) -> np.ndarray:
        """Of length 1, to the next cell of the shortest way to the goal; within the goal's cell to its middle."""
        here, there = (self._maze.xy_to_ij(xy) for xy in (self._maze.get_xy(), self._maze.cur_goal_xy))
        left = self._distances(there)
        steps = [here, *((here[0] + down, here[1] + right) for down, right in NEIGHBOURS)]
        known = [cell for cell in steps if cell in left]
        following = min(known, key=lambda cell: left[cell]) if here in left else here  # else it is pressed into a wall
        away = np.array(self._maze.ij_to_xy(following)) - self._maze.get_xy()
        return away / (np.linalg.norm(away) + 1e-6)

    @functools.cached_property
    def _ways(self) -> dict[Cell, dict[Cell, int]]:
        return {cell: distances_from(self._maze.maze_map, cell) for cell in self._free}

    def _distances(self, cell: Cell) -> dict[Cell, int]:
        """From this cell to all that can be reached; none from within a wall."""
        return self._ways.get(cell, {})


def free_cells(maze: np.ndarray) -> list[Cell]:
    return [(int(row), int(column)) for row, column in np.argwhere(maze == 0)]


def is_hall(maze: np.ndarray, cell: Cell) -> bool:
    """Whether one can go on straight from here in two directions, with walls at both sides."""
    row, column = cell
    upright = [bool(maze[row - 1, column]), bool(maze[row + 1, column])]
    across = [bool(maze[row, column - 1]), bool(maze[row, column + 1])]
    return sorted((upright, across)) == [[False, False], [True, True]]


def distances_from(maze: np.ndarray, start: Cell) -> dict[Cell, int]:
    """The number of steps to each free cell, by breadth first search."""
    found, edge = {start: 0}, [start]
    while edge:
        edge = [
            cell
            for row, column in edge
            for down, right in NEIGHBOURS
            if (cell := (row + down, column + right)) not in found
            and maze[cell] == 0
            and found.setdefault(cell, found[row, column] + 1)
        ]
    return found
