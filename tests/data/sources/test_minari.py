"""Minari's data sets, made by Minari itself: by ID, by folder, and as a file of ours, all the same."""

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset, named_datasets
from score_rl.data.check import check_file
from score_rl.data.ownership import is_own
from score_rl.errors import InputError
from tests.end_to_end.conftest import Score, score

__all__ = ["score"]  # a fixture

minari = pytest.importorskip("minari")
pytestmark = pytest.mark.filterwarnings("ignore")
LENGTHS = (5, 1, 7)
ENDED = (True, False, False)  # whether the last step is terminal


def episodes(observe: Any) -> list[Any]:
    """Buffers of random steps; `observe` makes an observation of five numbers."""
    rng = np.random.default_rng(0)
    buffers = []
    for number, (length, ended) in enumerate(zip(LENGTHS, ENDED, strict=True)):
        buffer = minari.data_collector.EpisodeBuffer(
            id=number, observations=observe(rng.normal(size=(length + 1, 5)).astype(np.float32)),
            actions=rng.uniform(-2, 2, (length, 1)).astype(np.float32), rewards=rng.normal(size=length).tolist(),
            terminations=[False] * (length - 1) + [ended], truncations=[False] * (length - 1) + [not ended],
        )  # fmt: skip
        buffers.append(buffer)
    return buffers


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def made(name: str, buffers: list[Any], observed: Any, acted: Any, env: Any = None) -> None:
    minari.create_dataset_from_buffers(
        dataset_id=name, buffer=buffers, env=env, observation_space=observed, action_space=acted,
        algorithm_name="none", author="nobody", author_email="n@example.org", code_permalink="none",
    )  # fmt: skip


PLAIN = gymnasium.spaces.Box(-np.inf, np.inf, (5,), np.float32)
ACTION = gymnasium.spaces.Box(-2, 2, (1,), np.float32)


def test_by_id_by_folder_and_as_a_file(home: Path, score: Score) -> None:
    buffers = episodes(lambda numbers: numbers)
    made("plant/logs-v0", buffers, PLAIN, ACTION)
    dataset = load_dataset("minari:plant/logs-v0", progress=False)
    seen = [np.asarray(buffer.observations) for buffer in buffers]
    np.testing.assert_array_equal(dataset.observations, np.concatenate([one[:-1] for one in seen]))
    np.testing.assert_array_equal(dataset.next_observations, np.concatenate([one[1:] for one in seen]))
    np.testing.assert_array_equal(dataset.trajectories, [[0, 5], [5, 6], [6, 13]])
    assert np.flatnonzero(dataset.terminals).tolist() == [4]
    assert np.flatnonzero(dataset.timeouts).tolist() == [5, 12]
    assert (dataset.action_low[0], dataset.action_high[0], dataset.environment) == (-2, 2, None)
    folder = load_dataset(home / "plant" / "logs-v0", progress=False)
    assert folder.checksum == dataset.checksum
    assert (is_own(dataset), is_own(folder)) == (False, True)
    assert not [finding for finding in check_file(home / "plant" / "logs-v0") if finding.level == "error"]
    assert "minari:plant/logs-v0" in [entry.name for entry in named_datasets()]
    for table in ("minari:plant/logs-v0", str(home / "plant" / "logs-v0")):
        done = score("data", "import", table, "--out", "logs.hdf5")
        assert done.code == 0, done.err
        assert load_dataset("logs.hdf5", progress=False).checksum == dataset.checksum
    assert "leave --reward out" in score("data", "import", "minari:plant/logs-v0", "--reward", "r").err


def test_dictionaries_stand_side_by_side(home: Path) -> None:
    space = gymnasium.spaces.Dict(
        {"goal": gymnasium.spaces.Box(-9, 9, (2,), np.float32), "arm": gymnasium.spaces.Box(-9, 9, (3,), np.float32)}
    )
    made("plant/goals-v0", episodes(lambda n: {"goal": n[:, :2], "arm": n[:, 2:]}), space, ACTION)
    dataset = load_dataset("minari:plant/goals-v0", progress=False)
    assert dataset.observation_names == ("arm_0", "arm_1", "arm_2", "goal_0", "goal_1")
    made("plant/plain-v0", episodes(lambda n: n), PLAIN, ACTION)
    plain = load_dataset("minari:plant/plain-v0", progress=False)
    np.testing.assert_array_equal(dataset.observations, np.roll(plain.observations, 3, axis=1))


def test_the_environment_is_named_where_gymnasium_knows_it(home: Path) -> None:
    rng = np.random.default_rng(0)
    buffers = episodes(lambda n: rng.uniform(-1, 1, (len(n), 3)).astype(np.float32))
    made("plant/swing-v0", buffers, None, None, env="Pendulum-v1")
    assert load_dataset("minari:plant/swing-v0", progress=False).environment == "Pendulum-v1"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("minari:no/such-v0", "cannot be had", marks=pytest.mark.slow),  # Minari asks the network for long
        ("minari:hopper-medium", "they end with a version, such as minari:mujoco/hopper/medium-v0"),
        ("minari:plant/pixels-v0", "has the action space Discrete"),
    ],
)
def test_what_cannot_be_used(home: Path, name: str, words: str) -> None:
    buffers = [
        dataclasses.replace(buffer, actions=np.zeros(len(buffer.rewards), np.int64)) for buffer in episodes(lambda n: n)
    ]
    made("plant/pixels-v0", buffers, PLAIN, gymnasium.spaces.Discrete(3))
    with pytest.raises(InputError, match=words):
        load_dataset(name, progress=False)


def test_a_folder_of_something_else(tmp_path: Path, score: Score) -> None:
    (tmp_path / "other").mkdir()
    assert "is a folder without Minari's data" in score("data", "import", "other").err
    assert score("data", "info", "other").code == 2
