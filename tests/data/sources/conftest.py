"""A server on this machine."""

import threading
from collections.abc import Iterator

import pytest

from tests.data.sources.file_server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()
