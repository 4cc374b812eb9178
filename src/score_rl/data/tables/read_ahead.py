"""The next block of a table is read while the one before is converted: two cores then share the work."""

import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import TypeVar

Item = TypeVar("Item")
WAITING = 2  # items that are read and not yet taken
END = object()


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items in their order, made in a thread of their own; what fails there fails here."""
    ready: queue.Queue[object] = queue.Queue(WAITING)
    stopped = threading.Event()

    def put(item: object) -> None:
        while not stopped.is_set():
            with suppress(queue.Full):
                ready.put(item, timeout=0.1)
                return

    def read() -> None:
        try:
            for item in items:
                put(item)
                if stopped.is_set():
                    return
        except BaseException as error:
            put(_Failed(error))
        else:
            put(END)

    thread = threading.Thread(target=read, name="reading ahead", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not END:
            if isinstance(item, _Failed):
                raise item.error
            yield item  # type: ignore[misc]
    finally:
        stopped.set()
        thread.join()


class _Failed:
    def __init__(self, error: BaseException) -> None:
        self.error = error
