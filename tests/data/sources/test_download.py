"""Fetching published files, against a server on this machine."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.sources import d4rl
from score_rl.data.sources.d4rl import D4RLFile, d4rl_path, d4rl_table
from score_rl.data.sources.download import fetch
from score_rl.errors import InputError
from tests.data.recordings import hopper_recording, write

CONTENT = np.random.default_rng(0).bytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves one file, with ranges; may break off, refuse ranges, or answer with an error."""

    content = CONTENT
    break_after: int | None = None  # bytes per answer
    ranges = True
    status: int | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_port}/file.hdf5"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        if self.server.status is not None:
            self.send_error(self.server.status)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.ranges else 0
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.break_after])

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


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
