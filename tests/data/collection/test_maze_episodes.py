"""OGBench's mazes: the shortest ways are the package's own, and what is recorded reads as its loader reads it."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from score_rl.data.collection.maze_episodes import NOISE, STITCHED, MazeEpisodes, distances_from, free_cells, is_hall
from score_rl.data.collection.oracle_episodes import OracleTask

pytest.importorskip("ogbench", reason="score-rl[ogbench] is not installed")
from score_rl.data.catalogue import load_dataset
from score_rl.data.sources.ogbench import SIZES, ogbench_names, taken_apart

NAVIGATE = OracleTask("pointmaze-medium", "navigate", steps=301, random_actions=0.0)
STITCH = OracleTask("pointmaze-large", "stitch", steps=101, random_actions=0.0)
CORNER = np.array([[1, 1, 1, 1], [1, 0, 0, 1], [1, 1, 0, 1], [1, 1, 0, 1], [1, 1, 1, 1]])


def test_the_way_is_that_of_the_package() -> None:
    episodes = MazeEpisodes(OracleTask("pointmaze-giant", "navigate", 3, 0.0), 0)
    maze = episodes._maze
    episodes.record(0)
    places = np.random.default_rng(0).choice(len(episodes._free), (200, 2))
    for start, goal in ((episodes._free[a], episodes._free[b]) for a, b in places):
        maze.set_xy(np.array(maze.ij_to_xy(start)) + 0.7)
        maze.set_goal(goal_xy=maze.ij_to_xy(goal))
        away = maze.get_oracle_subgoal(maze.get_xy(), maze.cur_goal_xy)[0] - maze.get_xy()
        np.testing.assert_allclose(episodes._direction(), away / np.linalg.norm(away), atol=1e-5)


def test_halls_and_distances() -> None:
    assert free_cells(CORNER) == [(1, 1), (1, 2), (2, 2), (3, 2)]
    assert [is_hall(CORNER, cell) for cell in free_cells(CORNER)] == [False, False, True, False]
    assert distances_from(CORNER, (1, 1)) == {(1, 1): 0, (1, 2): 1, (2, 2): 2, (3, 2): 3}


def test_an_episode_depends_on_its_number_alone() -> None:
    episodes = MazeEpisodes(NAVIGATE, 7)
    first, other = episodes.record(0), episodes.record(5)
    for name, column in MazeEpisodes(NAVIGATE, 7).record(0).items():
        np.testing.assert_array_equal(column, first[name], err_msg=name)
    assert not np.array_equal(first["actions"], other["actions"])
    assert first["terminals"].nonzero()[0].tolist() == [300]


def test_the_point_goes_from_goal_to_goal_or_stays() -> None:
    """To navigate it crosses the maze; to stitch it ends four cells from its start."""
    walked = [np.ptp(MazeEpisodes(NAVIGATE, 1).record(n)["observations"], axis=0).max() for n in range(3)]
    assert max(walked) > 12
    stitch = MazeEpisodes(STITCH, 1)
    for number in range(4):
        seen = stitch.record(number)["observations"]
        start, end = (stitch._maze.xy_to_ij(row) for row in (seen[0], seen[-20:].mean(axis=0)))
        assert stitch._distances(start)[end] == STITCHED
    clipped = np.abs(stitch.record(9)["actions"])
    assert clipped.max() == 1
    assert 0.3 * NOISE < stitch.record(9)["actions"][-40:].std() < 1.5 * NOISE


def test_a_name_is_recorded_and_labelled(tmp_path: Path) -> None:
    data = load_dataset(
        "ogbench:pointmaze-medium-stitch-singletask-task3", transitions=800, cache=tmp_path, progress=False
    )
    assert (len(data), data.observations.shape[1], data.actions.shape[1]) == (800, 2, 2)
    assert np.diff(data.trajectories, axis=1).tolist() == [[200]] * 4
    assert data.environment == "ogbench.locomaze:pointmaze-medium-singletask-task3-v0"
    goal = np.array([4 * 2 - 4, 4 * 4 - 4])  # of task 3: cell (4, 2)
    solved = np.linalg.norm(data.observations - goal, axis=1) <= 1
    np.testing.assert_array_equal(data.terminals, solved)
    np.testing.assert_array_equal(data.rewards, solved - 1.0)


def test_every_recording_has_a_name() -> None:
    names = ogbench_names()
    assert {taken_apart(name).recording for name in names} == set(SIZES)
    assert len(names) == len(SIZES) == 18 + 8
    rows = {name: size.episodes * (size.steps - 1) for name, size in SIZES.items() if name.startswith("pointmaze")}
    assert set(itertools.chain(rows.values())) == {1_000_000}
