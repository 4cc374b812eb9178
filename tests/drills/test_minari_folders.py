"""Folders of Minari's from strangers: another library reads them, so all of their files are looked at before."""

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import gymnasium
import h5py
import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.check import check_file
from score_rl.data.sources import file_trial
from score_rl.errors import InputError
from tests.drills.hdf5_files import cut, flip_bytes, set_words, splice
from tests.drills.records import hostile_json

minari = pytest.importorskip("minari")
pytestmark = pytest.mark.filterwarnings("ignore")
SECONDS = 15.0  # of this process's time, for one small file: it takes milliseconds, and a busy machine is no hang


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    file_trial.end_idle()
    monkeypatch.setattr(file_trial, "SECONDS", 1)
    yield
    file_trial.end_idle()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("minari")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(home))
        rng = np.random.default_rng(0)
        buffers = [
            minari.data_collector.EpisodeBuffer(
                id=number, observations=rng.normal(size=(7, 3)).astype(np.float32),
                actions=rng.uniform(-1, 1, (6, 1)).astype(np.float32), rewards=rng.normal(size=6).tolist(),
                terminations=[False] * 6, truncations=[False] * 5 + [True],
            )
            for number in range(4)
        ]  # fmt: skip
        minari.create_dataset_from_buffers(
            dataset_id="plant/logs-v0", buffer=buffers, algorithm_name="none", author="nobody",
            observation_space=gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32),
            action_space=gymnasium.spaces.Box(-1, 1, (1,), np.float32), author_email="n@example.org",
            code_permalink="none",
        )  # fmt: skip
        yield home / "plant" / "logs-v0"


def refused(folder: Path) -> str | None:
    """What `train` says; `check` says the same."""
    said: str | None = None
    try:
        load_dataset(folder, progress=False)
    except InputError as error:
        said = str(error)
    errors = [finding for finding in check_file(folder) if finding.level == "error"]
    assert bool(errors) == (said is not None)
    return said


def external_link(folder: Path) -> None:
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        del file["episode_1/rewards"]
        file["episode_1/rewards"] = h5py.ExternalLink("/etc/passwd", "/rewards")


def external_storage(folder: Path) -> None:
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        del file["episode_1/rewards"]
        file.create_dataset("episode_1/rewards", (6,), "u1", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])


def inner_loop(folder: Path) -> None:
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        file["episode_1/again"] = file["episode_1"]


def link_of_the_system(folder: Path) -> None:
    path = folder / "data" / "main_data.hdf5"
    path.rename(folder.parent / "elsewhere.hdf5")
    path.symlink_to(folder.parent / "elsewhere.hdf5")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (external_link, "episode_1/rewards is a link"),
        (external_storage, "episode_1/rewards has external storage, the file /etc/passwd"),
        (inner_loop, "holds itself"),
        (link_of_the_system, "is a link or no ordinary file"),
    ],
)
def test_nothing_outside_of_the_folder_is_read(
    sound: Path, tmp_path: Path, change: Callable[[Path], None], words: str
) -> None:
    folder = tmp_path / "logs"
    shutil.copytree(sound, folder)
    assert refused(folder) is None
    change(folder)
    assert words in str(refused(folder))


def drill(sound: Path, seeds: range, tmp_path: Path) -> Counter[str]:
    counted: Counter[str] = Counter()
    for seed in seeds:
        rng, folder = random.Random(seed), tmp_path / f"logs-{seed}"
        shutil.copytree(sound, folder)
        if rng.random() < 0.3:
            path = folder / "data" / "metadata.json"
            path.write_bytes(hostile_json(path.read_bytes(), rng))
        else:
            rng.choice([flip_bytes, set_words, cut, splice])(folder / "data" / "main_data.hdf5", rng)
        began = time.process_time()
        try:
            said = refused(folder)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        assert time.process_time() - began < SECONDS, f"seed {seed}"
        assert said is None or said.isprintable(), f"seed {seed}: {said!r}"
        counted["refused" if said else "accepted"] += 1
        shutil.rmtree(folder)
    return counted


def test_hostile_minari_folders(sound: Path, tmp_path: Path) -> None:
    counted = drill(sound, range(12), tmp_path)
    assert counted["refused"] > 3, counted


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_hundred_hostile_minari_folders(sound: Path, tmp_path: Path) -> None:
    counted = drill(sound, range(1_000, 1_300), tmp_path)
    print(counted)
    assert counted["refused"] > 50, counted
