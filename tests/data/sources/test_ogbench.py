"""OGBench's data: recorded alike in any order, and read exactly as the package's own loader reads them."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.collection import oracle_recording
from score_rl.data.collection.oracle_episodes import OracleEpisodes, OracleTask, cube_stays_visible
from score_rl.data.collection.oracle_recording import read_oracle_recipe, record_oracles
from score_rl.data.sources import ogbench as source
from score_rl.data.sources.ogbench import published_file, taken_apart
from score_rl.errors import InputError

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("ogbench", reason="score-rl[ogbench] is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting")  # the package's, in every reset

TASK = OracleTask("cube-single", "play", steps=21, random_actions=0.0)
EPISODES = 3


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three short episodes, recorded by one process."""
    path = tmp_path_factory.mktemp("ogbench") / "cube-single-play-v0.npz"
    record_oracles(path, TASK, EPISODES, 7, label="", progress=False, processes=1)
    return path


@pytest.fixture(scope="module")
def solved(recording: Path) -> Iterator[Path]:
    """The same file, with the cube where task 2 wants it in some rows: also in last rows of trajectories."""
    environment = gymnasium.make("cube-single-singletask-task2-v0")
    environment.reset()
    with np.load(recording) as file:
        rows = {name: file[name] for name in file.files if name != "recipe"}
    for row in (4, 5, 19, 20, 41, 50, 62):
        rows["qpos"][row, 14:17] = environment.unwrapped._data.mocap_pos[0]
    path = recording.parent / "solved" / recording.name
    path.parent.mkdir()
    np.savez(path, **rows)
    yield path
    environment.close()


def test_an_episode_depends_on_its_number_alone(recording: Path) -> None:
    episodes = OracleEpisodes(TASK, 7)
    with np.load(recording) as file:
        for number in (2, 0):  # in another order, in another process, after other episodes
            for name, column in episodes.record(number).items():
                np.testing.assert_array_equal(file[name][number * 21 : (number + 1) * 21], column, err_msg=name)
        assert not np.array_equal(file["actions"][:21], file["actions"][21:42])
        assert file["terminals"].nonzero()[0].tolist() == [20, 41, 62]


def test_the_recording_says_how_it_was_made(recording: Path) -> None:
    recipe = read_oracle_recipe(recording)
    assert recipe is not None
    assert recipe["task"] == {"environment": "cube-single", "kind": "play", "steps": 21, "random_actions": 0.0}
    assert {"mujoco", "ogbench", "dm_control", "numpy"} <= set(recipe["versions"])
    assert not list(recording.parent.glob("*.parts"))


def test_a_broken_off_recording_goes_on(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "again.npz"
    asked: list[list[int]] = []

    def record(parts: list[tuple[Path, list[int]]], *about: object) -> None:
        asked.extend(numbers for _, numbers in parts)
        raise KeyboardInterrupt

    monkeypatch.setattr(oracle_recording, "_record_parts", record)
    with pytest.raises(KeyboardInterrupt):
        record_oracles(path, TASK, EPISODES, 7, label="", progress=False)
    assert asked == [[0, 1], [2]]
    with np.load(recording) as file:  # the first part is there now, as if a process had written it
        first = {name: file[name][:42] for name in file.files if name != "recipe"}
    np.savez(path.with_name("again.npz.parts") / "000000.npz", **first)
    with pytest.raises(KeyboardInterrupt):
        record_oracles(path, TASK, EPISODES, 7, label="", progress=False)
    assert asked[2:] == [[2]]
    with pytest.raises(KeyboardInterrupt):  # a part of another seed is of no use
        record_oracles(path, TASK, EPISODES, 8, label="", progress=False)
    assert asked[3:] == [[0, 1], [2]]


def test_rows_rewards_and_masks_are_those_of_the_package(solved: Path, tmp_path: Path) -> None:
    from ogbench import make_env_and_datasets

    shutil.copy(solved, solved.with_name("cube-single-play-v0-val.npz"))
    name = "cube-single-play-singletask-task2"
    _, theirs, _ = make_env_and_datasets(f"{name}-v0", dataset_path=str(solved))
    (tmp_path / "ogbench").mkdir()
    shutil.copy(solved, tmp_path / "ogbench")
    mine = load_dataset(f"ogbench:{name}", cache=tmp_path, progress=False)
    for column in ("observations", "actions", "next_observations", "rewards"):
        np.testing.assert_array_equal(getattr(mine, column), theirs[column], err_msg=column)
    np.testing.assert_array_equal(mine.terminals, theirs["masks"] == 0)
    np.testing.assert_array_equal(mine.trajectories[:, 1] - 1, np.flatnonzero(theirs["terminals"]))
    # Rows 20, 41 and 62 of the file have no next observation; a solved state goes on inside its trajectory.
    assert np.flatnonzero(mine.terminals).tolist() == [4, 5, 19, 48]
    assert mine.environment == "ogbench.manipspace:cube-single-singletask-task2-v0"
    assert mine.source["recorded"] == "published"


@pytest.mark.parametrize("environment", ["puzzle-3x3", "scene"])
def test_buttons_drawers_and_windows_are_labelled_as_the_package_does(environment: str, tmp_path: Path) -> None:
    """Environments with buttons store their states; all parts of a scene must be right at once."""
    from ogbench import make_env_and_datasets

    name = f"{environment}-play-singletask-task1"
    episodes = OracleEpisodes(OracleTask(environment, "play", steps=11, random_actions=0.0), 0)
    recorded = [episodes.record(number) for number in range(2)]
    rows: dict[str, Any] = {column: np.concatenate([each[column] for each in recorded]) for column in recorded[0]}
    task = gymnasium.make(f"{environment}-singletask-task1-v0")
    task.reset()
    inner = task.unwrapped
    for row in (3, 10, 15):
        rows["button_states"][row] = inner._target_button_states
        if environment == "scene":
            rows["qpos"][row, 14:17] = inner._data.mocap_pos[0]
            rows["qpos"][row, -2:] = inner._target_drawer_pos, inner._target_window_pos
    rows["button_states"][5] = inner._target_button_states  # in a scene the rest is not right
    task.close()
    (tmp_path / "ogbench").mkdir()
    path = tmp_path / "ogbench" / f"{environment}-play-v0.npz"
    for file in (path, path.with_name(f"{environment}-play-v0-val.npz")):
        np.savez(file, **rows)
    _, theirs, _ = make_env_and_datasets(f"{name}-v0", dataset_path=str(path))
    mine = load_dataset(f"ogbench:{name}", cache=tmp_path, progress=False)
    for column in ("observations", "actions", "next_observations", "rewards"):
        np.testing.assert_array_equal(getattr(mine, column), theirs[column], err_msg=column)
    np.testing.assert_array_equal(mine.terminals, theirs["masks"] == 0)
    assert np.flatnonzero(mine.terminals).tolist() == ([3, 14] if environment == "scene" else [3, 5, 14])
    assert mine.trajectories.tolist() == [[0, 10], [10, 20]]


def test_fewer_transitions_are_recorded_when_asked_for(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def record(path: Path, task: OracleTask, episodes: int, seed: int, parts: Path, **about: object) -> None:
        asked.append((parts.name, task.kind, task.random_actions, episodes, seed))
        path.parent.mkdir(exist_ok=True)
        shutil.copy(recording, path)

    monkeypatch.setattr(source, "record_oracles", record)
    data = load_dataset(
        "ogbench:cube-single-noisy-singletask-task1", transitions=50, seed=3, cache=tmp_path, progress=False
    )
    assert asked == [("cube-single-noisy-recorded-1-seed3.npz.parts", "noisy", 0.1, 1, 3)]
    assert len(data) == 50
    assert data.trajectories.tolist() == [[0, 20], [20, 40], [40, 50]]
    assert data.source["recorded"] == "here"


def test_published_files_are_taken_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PACKAGE_FOLDER", tmp_path / "package")
    assert published_file("scene-play", tmp_path) is None
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "scene-play-v0.npz").touch()
    assert published_file("scene-play", tmp_path) == tmp_path / "package" / "scene-play-v0.npz"


def test_what_needs_an_expert_is_read_from_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PACKAGE_FOLDER", tmp_path)
    with pytest.raises(InputError, match=r"needs? a learned expert.*put the published antmaze-large-navigate-v0.npz"):
        load_dataset("ogbench:antmaze-large-navigate-singletask-task1", cache=tmp_path, progress=False)


@pytest.mark.parametrize("name", ["cube-single", "cube-single-play-singletask-task6", "cube-simple-play-singletask"])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"did you mean 'ogbench:cube-\w+-play-singletask-task\d'"):
        taken_apart(name)


def test_names_are_understood() -> None:
    assert taken_apart("scene-noisy-singletask-task3-v0") == ("scene-noisy", "scene", 3)
    assert taken_apart("puzzle-4x4-play-singletask").gymnasium_id == "ogbench.manipspace:puzzle-4x4-singletask-v0"


def test_scenes_whose_cube_is_out_of_sight() -> None:
    qpos = np.zeros((4, 20))
    qpos[:, 16] = 0.07
    assert cube_stays_visible(qpos)
    qpos[2, 15] = -0.31  # in the drawer
    assert cube_stays_visible(qpos)
    qpos[2, 16] = 0.02  # beside it
    assert not cube_stays_visible(qpos)
    qpos[2, 15] = 0.29
    assert not cube_stays_visible(qpos)
