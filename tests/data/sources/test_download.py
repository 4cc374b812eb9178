"""Fetching published files, against a server on this machine."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from score_rl.data.sources.download import fetch
from score_rl.errors import InputError
from tests.data.sources.file_server import CONTENT, Server

SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def fetched(server: Server, tmp_path: Path) -> Callable[[], bytes]:
    def run() -> bytes:
        path = tmp_path / "cache" / "file.hdf5"
        fetch(server.url, path, len(CONTENT), SHA256, label="test", progress=False)
        assert [entry.name for entry in path.parent.iterdir()] == ["file.hdf5"]
        return path.read_bytes()

    return run


def part_of(tmp_path: Path, contents: bytes) -> Path:
    part = tmp_path / "cache" / "file.hdf5.part"
    part.parent.mkdir()
    part.write_bytes(contents)
    return part


def test_a_file_is_fetched(server: Server, fetched: Callable[[], bytes]) -> None:
    assert fetched() == CONTENT
    assert server.asked == [None]


def test_a_partial_file_is_resumed(server: Server, fetched: Callable[[], bytes], tmp_path: Path) -> None:
    part_of(tmp_path, CONTENT[:123_456])
    assert fetched() == CONTENT
    assert server.asked == ["bytes=123456-"]


def test_a_server_without_ranges_starts_again(server: Server, fetched: Callable[[], bytes], tmp_path: Path) -> None:
    server.ranges = False
    part_of(tmp_path, CONTENT[:1000])
    assert fetched() == CONTENT


def test_a_complete_part_needs_no_network(server: Server, fetched: Callable[[], bytes], tmp_path: Path) -> None:
    part_of(tmp_path, CONTENT)
    assert fetched() == CONTENT
    assert server.asked == []


def test_a_part_that_is_too_long_is_no_beginning(server: Server, fetched: Callable[[], bytes], tmp_path: Path) -> None:
    part_of(tmp_path, CONTENT + b"more")
    assert fetched() == CONTENT
    assert server.asked == [None]


def test_a_connection_that_breaks_off_is_resumed(server: Server, fetched: Callable[[], bytes]) -> None:
    server.break_after = 120_000
    assert fetched() == CONTENT
    assert server.asked == [None, "bytes=120000-", "bytes=240000-"]


def test_one_that_keeps_breaking_off_leaves_its_part(
    server: Server, fetched: Callable[[], bytes], tmp_path: Path
) -> None:
    server.break_after = 50_000
    with pytest.raises(InputError, match=r"broke off after 150000 of 300000 bytes: run the same command again"):
        fetched()
    assert (tmp_path / "cache" / "file.hdf5.part").stat().st_size == 150_000
    assert fetched() == CONTENT


def test_wrong_contents_are_removed(server: Server, fetched: Callable[[], bytes], tmp_path: Path) -> None:
    server.content = CONTENT[:-1] + b"?"
    with pytest.raises(InputError, match=r"is not the file it should be .300000 bytes with another SHA-256"):
        fetched()
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_corrupt_part_is_found_out_and_the_next_try_starts_clean(
    server: Server, fetched: Callable[[], bytes], tmp_path: Path
) -> None:
    part_of(tmp_path, b"x" * 1000)
    with pytest.raises(InputError, match="so it was removed: try again"):
        fetched()
    assert fetched() == CONTENT


def test_more_than_was_published_is_not_kept(server: Server, fetched: Callable[[], bytes], tmp_path: Path) -> None:
    """A server that never ends would fill the disk."""
    server.content = CONTENT + b"x" * 10_000_000
    with pytest.raises(InputError, match="sends more than the 300000 bytes published"):
        fetched()
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_part_that_is_a_link_is_not_written_through(
    server: Server, fetched: Callable[[], bytes], tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "file.hdf5.part").symlink_to(precious)
    with pytest.raises(InputError, match="is no ordinary file, and nothing is written through it"):
        fetched()
    assert precious.read_text() == "keep"


def test_a_missing_page(server: Server, fetched: Callable[[], bytes]) -> None:
    server.status = 404
    with pytest.raises(InputError, match=r"could not be fetched .Not Found."):
        fetched()
    assert len(server.asked) == 1


def test_offline_says_which_file_to_put_where(tmp_path: Path) -> None:
    server = Server()
    server.server_close()  # nobody listens at its port now
    path = tmp_path / "d4rl" / "file.hdf5"
    with pytest.raises(InputError) as caught:
        fetch(server.url, path, 10, SHA256, label="test", progress=False)
    message = str(caught.value)
    assert server.url in message
    assert f"put the file at {path} yourself" in message
    assert "\n" not in message
