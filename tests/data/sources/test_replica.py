"""Replicas: recipes, caching, and returns that stand where they should."""

import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
import pytest

from score_rl.data import catalogue
from score_rl.data.catalogue import load_dataset
from score_rl.data.collection.policies import ladder_catalogue, read_policy
from score_rl.data.sources import replica
from score_rl.data.sources.hdf5_file import open_hdf5
from score_rl.data.sources.registry import get_reader
from score_rl.data.sources.replica import holds_recipe, replica_names, replica_path, replica_recipe, replica_rows
from score_rl.data.sources.sealed_file import seal_path
from score_rl.errors import InputError
from tests.forbidden import forbidden


def test_there_are_fifteen_of_d4rl_s_sizes() -> None:
    names = replica_names()
    assert len(names) == 15
    assert replica_rows("hopper-medium-replay") == 402_000
    assert replica_rows("walker2d-medium-expert") == 2_000_000
    for name in names:
        streams = replica_recipe(name, None, 0)["streams"]
        assert sum(stream["transitions"] for stream in streams) == replica_rows(name)


@pytest.mark.parametrize("name", replica_names())
def test_transitions_shrink_every_part_alike(name: str) -> None:
    recipe = replica_recipe(name, 1003, 5)
    shares = [stream["transitions"] for stream in recipe["streams"]]
    assert sum(shares) == 1003
    assert max(shares) - min(shares) <= 1
    if name.endswith("medium-replay"):
        steps = [int(stream["policy"].split()[1]) for stream in recipe["streams"]]
        assert steps == ladder_catalogue()[recipe["environment"]]["medium_replay_steps"]


def test_too_few_transitions_for_the_parts() -> None:
    with pytest.raises(InputError, match=r"hopper-medium-replay is made of 27 parts, so 20 transitions are too few"):
        replica_recipe("hopper-medium-replay", 20, 0)


def test_a_replica_is_built_once_and_read_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_dataset("replica:hopper-medium", transitions=700, cache=tmp_path, progress=False)
    assert (first.name, first.environment, len(first)) == ("replica:hopper-medium", "hopper", 700)
    assert first.source["kind"] == "replica"
    assert first.source["recipe"]["seed"] == 0
    assert "transitions" not in first.source  # it was recorded so, not shortened
    assert set(first.source["recipe"]["versions"]) >= {"mujoco", "numpy", "score-rl"}
    monkeypatch.setattr(replica, "collect", None)  # nothing is recorded from here on
    again = load_dataset("replica:hopper-medium", transitions=700, cache=tmp_path, progress=False)
    assert again.checksum == first.checksum
    file = replica_path(tmp_path, "hopper-medium", 700, 0)
    assert sorted((tmp_path / "replica").iterdir()) == [file, seal_path(file)]
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("damage", "said"),
    [("rewards", "another checksum"), ("cut", "another checksum"), ("no seal", "no checksum"), ("link", "no ordinary")],
)
def test_a_replica_whose_content_changed_is_said_and_recorded_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str, said: str
) -> None:
    """Its recipe still says what it was: turned rewards were trained on without a word."""
    first = load_dataset("replica:hopper-random", transitions=300, cache=tmp_path, progress=False)
    path = replica_path(tmp_path, "hopper-random", 300, 0)
    if damage == "rewards":
        with h5py.File(path, "a") as file:
            file["rewards"][...] = -file["rewards"][()]
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "no seal":
        seal_path(path).unlink()
    else:
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    again = load_dataset("replica:hopper-random", transitions=300, cache=tmp_path, progress=False)
    assert again.checksum == first.checksum
    assert said in capsys.readouterr().err
    load_dataset("replica:hopper-random", transitions=300, cache=tmp_path, progress=False)
    assert capsys.readouterr().err == ""


def test_a_cache_that_is_somebody_elses_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """Two users with one cache: the first has closed it to the second."""
    cache = tmp_path / "cache"
    load_dataset("replica:hopper-random", transitions=300, cache=cache, progress=False)
    readers = [get_reader(source) for source in ("replica", "d4rl")]
    with forbidden(cache):
        with pytest.raises(InputError, match=r"cache.* cannot be written \(Permission denied\).* with SCORE_RL_CACHE"):
            load_dataset("replica:hopper-random", transitions=300, cache=cache, progress=False)
        assert not any(named.cached for reader in readers for named in reader.names(cache))


def test_two_processes_may_record_the_same(tmp_path: Path) -> None:
    """There is no lock, since some disks have none. Whoever looks finds nothing, or a file with its checksum."""
    script = (
        "import sys; from pathlib import Path; from score_rl.data.catalogue import load_dataset\n"
        "for _ in range(3): print(load_dataset('replica:hopper-random', transitions=400, cache=Path(sys.argv[1]),"
        " progress=False).checksum)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate() for process in both]
    assert [err for _, err in said] == ["", ""]
    assert len({line for out, _ in said for line in out.split()}) == 1
    file = replica_path(tmp_path, "hopper-random", 400, 0)
    assert sorted(file.parent.iterdir()) == [file, seal_path(file)]


def test_seeds_and_sizes_have_files_of_their_own(tmp_path: Path) -> None:
    paths = {replica_path(tmp_path, "hopper-medium", n, seed) for n in (None, 100, 200) for seed in (0, 1)}
    assert len(paths) == 6
    full = replica_path(tmp_path, "hopper-medium", None, 0)
    assert full == replica_path(tmp_path, "hopper-medium", 1_000_000, 0)


@pytest.mark.parametrize("damage", ["other recipe", "truncated", "not HDF5"])
def test_a_file_that_does_not_hold_the_recipe_is_rebuilt(tmp_path: Path, damage: str) -> None:
    first = load_dataset("replica:hopper-random", transitions=300, cache=tmp_path, progress=False)
    path = replica_path(tmp_path, "hopper-random", 300, 0)
    if damage == "other recipe":
        with h5py.File(path, "a") as file:
            text = file["metadata/recipe"][()].decode()
            del file["metadata/recipe"]
            file["metadata/recipe"] = text.replace('"format": 1', '"format": 0')
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:5000])
    else:
        path.write_text("nonsense")
    assert not holds_recipe(path, replica_recipe("hopper-random", 300, 0))
    again = load_dataset("replica:hopper-random", transitions=300, cache=tmp_path, progress=False)
    assert again.checksum == first.checksum
    assert holds_recipe(path, replica_recipe("hopper-random", 300, 0))


def test_an_interrupted_build_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("h5py.Group.create_group", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_dataset("replica:hopper-random", transitions=100, cache=tmp_path, progress=False)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_policy_is_stored_where_there_is_one(tmp_path: Path) -> None:
    for name, stored in (("walker2d-expert", True), ("walker2d-random", False), ("walker2d-medium-expert", False)):
        load_dataset(f"replica:{name}", transitions=60, cache=tmp_path, progress=False)
        with open_hdf5(replica_path(tmp_path, name, 60, 0)) as file:
            assert ("metadata/policy" in file) == stored
            if stored:
                policy = read_policy(file, "test")
                assert policy.log_std_clip == (-5.0, 2.0)
                assert (policy.observation_dim, policy.action_dim) == (17, 6)


def test_a_mixture_is_made_of_its_parts(tmp_path: Path) -> None:
    dataset = load_dataset("replica:halfcheetah-medium-expert", transitions=4000, cache=tmp_path, progress=False)
    values, complete = dataset.returns()
    assert complete.sum() == 4
    assert values[:2].max() < 6000 < 9000 < values[2:].min()


MEASURED = {  # mean, standard deviation and number of complete episodes, recorded with other seeds
    "hopper-medium": (1292.2, 322.9, 2470),
    "halfcheetah-medium": (4667.9, 295.7, 200),
    "walker2d-medium": (2967.7, 1506.0, 276),
    "hopper-expert": (3304.3, 89.4, 201),
    "halfcheetah-expert": (10326.3, 111.2, 200),
    "walker2d-expert": (4329.4, 1447.9, 221),
}
CATALOGUE_EPISODES = 16  # assumed: the catalogue does not say how many its figures are from


@pytest.mark.parametrize(
    ("name", "transitions"),
    [
        ("hopper-medium", 20_000),
        ("halfcheetah-medium", 10_000),
        *(pytest.param(name, 60_000, marks=pytest.mark.slow) for name in MEASURED),
    ],
)
def test_returns_stand_where_they_should(name: str, transitions: int) -> None:
    values, complete = load_dataset(f"replica:{name}", transitions=transitions, seed=1, progress=False).returns()
    found, (mean, spread, episodes) = values[complete], MEASURED[name]
    error = spread * np.sqrt(1 / len(found) + 1 / episodes)
    assert abs(found.mean() - mean) < 4.5 * error, (found.mean(), error)
    task, kind = name.split("-")
    facts = ladder_catalogue()[task]
    expected, _ = facts["stochastic_return"][str(facts[f"{kind}_step"])]
    error = spread * np.sqrt(1 / len(found) + 1 / CATALOGUE_EPISODES)
    assert abs(found.mean() - expected) < 4.5 * error, (found.mean(), error)


def test_the_names_for_the_command_line(tmp_path: Path) -> None:
    load_dataset("replica:hopper-random", transitions=50, cache=tmp_path, progress=False)
    entries = catalogue.named_datasets(tmp_path)
    named = Counter(entry.name.partition(":")[0] for entry in entries)
    assert (named["replica"], named["d4rl"]) == (15, 18)
    assert len({entry.name for entry in entries}) == len(entries)
    assert not any(entry.cached for entry in entries)  # the small one is not the one of this name
    locomotion = [entry for entry in entries if not entry.name.startswith("ogbench:")]
    assert {entry.environment for entry in locomotion} == {"hopper", "halfcheetah", "walker2d"}
    assert all(entry.rows > 0 and entry.origin for entry in entries)
