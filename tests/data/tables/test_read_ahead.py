"""Reading ahead changes nothing but who waits."""

import threading
from collections.abc import Iterator

import pytest

from score_rl.data.tables.read_ahead import WAITING, read_ahead


def counted(upto: int, made: list[int], fails_at: int | None = None) -> Iterator[int]:
    for number in range(upto):
        if number == fails_at:
            raise ValueError("a broken block")
        made.append(number)
        yield number


def test_the_same_items_in_their_order() -> None:
    assert list(read_ahead(counted(100, []))) == list(range(100))
    assert list(read_ahead(iter([]))) == []


def test_what_fails_there_fails_here_after_what_came_before() -> None:
    seen: list[int] = []
    with pytest.raises(ValueError, match="a broken block"):
        seen.extend(read_ahead(counted(10, [], fails_at=4)))
    assert seen == [0, 1, 2, 3]


def test_whoever_stops_early_leaves_no_thread_and_reads_little() -> None:
    made: list[int] = []
    before = threading.active_count()
    items = read_ahead(counted(1_000, made))
    assert next(items) == 0
    items.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
    assert len(made) <= WAITING + 3
