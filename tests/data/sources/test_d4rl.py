"""The published data sets: fetched once, checked, all in the table."""

import hashlib
from pathlib import Path

import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.sources import d4rl
from score_rl.data.sources.d4rl import D4RLFile, d4rl_path, d4rl_table
from score_rl.errors import InputError
from tests.data.recordings import hopper_recording, write
from tests.data.sources.file_server import Server


@pytest.fixture
def published(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A published file of our own making, under a name of its own."""
    path = write(tmp_path / "origin.hdf5", hopper_recording())
    server.content = path.read_bytes()
    facts = D4RLFile(
        url=server.url.replace("file", "hopper_tiny-v2"),
        bytes=len(server.content),
        sha256=hashlib.sha256(server.content).hexdigest(),
        transitions=12,
        episodes=3,
        returns=None,
    )
    monkeypatch.setattr(d4rl, "d4rl_table", lambda: {"hopper-tiny-v2": facts})
    return "d4rl:hopper-tiny-v2"


def test_a_published_data_set_is_fetched_once(server: Server, published: str, tmp_path: Path) -> None:
    first = load_dataset(published, cache=tmp_path, progress=False)
    again = load_dataset(published, cache=tmp_path, progress=False)
    assert (first.name, first.environment, len(first)) == (published, "hopper", 12)
    assert first.source["kind"] == "d4rl"
    assert first.checksum == again.checksum
    assert len(server.asked) == 1


def test_a_cached_file_with_other_contents_is_refused(published: str, tmp_path: Path) -> None:
    path = d4rl_path(tmp_path, "hopper-tiny-v2")
    path.parent.mkdir()
    path.write_bytes(b"something else")
    with pytest.raises(InputError, match=r"is not the published file .14 bytes found.*delete it, or replace it with"):
        load_dataset(published, cache=tmp_path, progress=False)


def test_the_table_holds_all_eighteen() -> None:
    table = d4rl_table()
    kinds = ("random", "medium", "medium-replay", "medium-expert", "expert", "full-replay")
    assert set(table) == {f"{t}-{k}-v2" for t in ("halfcheetah", "hopper", "walker2d") for k in kinds}
    for name, facts in table.items():
        assert facts.url.endswith(f"/{name.removesuffix('-v2').replace('-', '_', 2)}-v2.hdf5")
        assert len(facts.sha256) == 64
        assert 200_000 < facts.transitions <= 2_000_000
        assert facts.bytes > 50_000_000
        if facts.returns is not None:
            assert facts.returns["min"] <= facts.returns["mean"] <= facts.returns["max"]


@pytest.mark.parametrize("name", ["antmaze-umaze-v2", "kitchen-mixed-v0", "pen-human-v1"])
def test_other_suites_are_said_to_be_unknown_here(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"d4rl:{name} belongs to D4RL's suite {name.split('-')[0]}"):
        load_dataset(f"d4rl:{name}", cache=tmp_path, progress=False)
