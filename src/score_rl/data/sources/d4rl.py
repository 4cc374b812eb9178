"""`d4rl:` data sets: the published v2 files, fetched into the cache and checked for their known contents."""

import json
from dataclasses import dataclass
from functools import cache as remember
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from score_rl.data.sources.download import fetch
from score_rl.data.sources.hdf5 import read_hdf5
from score_rl.data.sources.reader import NamedDataset, Reader, Recording, Request, file_checksum
from score_rl.disk import is_there
from score_rl.envs.tasks import task_of
from score_rl.errors import InputError, unknown_name

OTHER_SUITES = (
    "antmaze", "maze2d", "minigrid", "kitchen", "pen", "door", "hammer", "relocate", "carla", "flow", "bullet", "ant",
)  # fmt: skip


@dataclass(frozen=True)
class D4RLFile:
    """What is known about a published file."""

    url: str
    bytes: int
    sha256: str
    transitions: int
    episodes: int  # with a partial one at the end
    returns: dict[str, float] | None  # mean, std, min and max over complete episodes, where published


@remember
def d4rl_table() -> dict[str, D4RLFile]:
    """The published files by name, such as "hopper-medium-v2"."""
    text = (resources.files("score_rl.data.sources") / "d4rl_v2.json").read_text(encoding="utf-8")
    table = json.loads(text)
    return {
        name: D4RLFile(
            url=table["base_url"] + facts["file"],
            bytes=facts["bytes"],
            sha256=facts["sha256"],
            transitions=facts["transitions"],
            episodes=facts["episodes"],
            returns=facts.get("returns"),
        )
        for name, facts in table["datasets"].items()
    }


def d4rl_path(cache: Path, name: str) -> Path:
    """Where the published file of this name is cached."""
    return cache / "d4rl" / d4rl_facts(name).url.rpartition("/")[2]


def d4rl_facts(name: str) -> D4RLFile:
    """What is known about the published file of this name."""
    table = d4rl_table()
    suite = next((suite for suite in OTHER_SUITES if name.startswith(suite)), None)
    if suite is not None:
        raise InputError(
            f"d4rl:{name} belongs to D4RL's suite {suite}, of which neither files nor simulators are known here; give "
            "the path of its HDF5 file to train on it, with `environment=none` unless Gymnasium has its task."
        )
    if name not in table:
        raise unknown_name("data set", f"d4rl:{name}", [f"d4rl:{known}" for known in table])
    return table[name]


def ready_d4rl(name: str, cache: Path, progress: bool) -> Path:
    """The cached file of this name. It is fetched if it is not there, and checked if somebody put it there."""
    facts, path = d4rl_facts(name), d4rl_path(cache, name)
    if not is_there(path):
        fetch(facts.url, path, facts.bytes, facts.sha256, label=f"fetching d4rl:{name}", progress=progress)
    elif not _verified(path, facts):
        raise InputError(
            f"{path} is not the published file ({path.stat().st_size} bytes found, {facts.bytes} and another SHA-256 "
            f"expected): delete it, or replace it with {facts.url}"
        )
    return path


def _verified(path: Path, facts: D4RLFile) -> bool:
    return path.stat().st_size == facts.bytes and file_checksum(path) == facts.sha256


def _read(name: str, request: Request) -> Recording:
    return read_hdf5(ready_d4rl(name, request.cache, request.progress), "d4rl")


def _names(cache: Path) -> list[NamedDataset]:
    found = []
    for name, facts in d4rl_table().items():
        path, server = d4rl_path(cache, name), urlsplit(facts.url).netloc
        found.append(NamedDataset(f"d4rl:{name}", task_of(name) or "", facts.transitions, server, path, is_there(path)))
    return found


READER = Reader(_read, _names)
