"""A file is read in a process that may fail: what it answers, and what becomes of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from score_rl.data.sources import file_trial
from score_rl.data.sources.file_trial import answers_about
from score_rl.errors import InputError

LINES = "tests.data.sources.answering:lines"


@pytest.fixture(autouse=True)
def no_processes() -> Iterator[None]:
    file_trial.end_idle()
    yield
    file_trial.end_idle()


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("a\nb\nc\n")
    return path


def test_answers_come_in_order_and_the_process_is_kept(text: Path) -> None:
    *answers, process = answers_about(text, "text", LINES, 2)
    assert answers == ["a", "b"]
    assert list(answers_about(text, "text", LINES, 0)) == [process], "another process answered"


def test_two_files_can_be_read_at_the_same_time(text: Path) -> None:
    one, other = answers_about(text, "text", LINES, 3), answers_about(text, "text", LINES, 3)
    *answers, first = [next(one), next(other), *one]
    assert answers == ["a", "a", "b", "c"]
    assert list(other)[-1] != first


def test_what_is_given_up_half_way_is_ended(text: Path) -> None:
    given_up = answers_about(text, "text", LINES, 3)
    assert next(given_up) == "a"
    given_up.close()  # type: ignore[attr-defined]
    assert not file_trial._idle
    assert next(iter(answers_about(text, "text", LINES, 1))) == "a"


def test_a_reader_that_dies_after_an_answer_is_a_damaged_file(text: Path) -> None:
    answers = answers_about(text, "text", "tests.data.sources.answering:crash")
    assert next(answers) == "text"
    with pytest.raises(InputError, match="is damaged, and the text library crashes on it"):
        next(answers)
    assert not file_trial._idle


def test_a_process_that_was_ended_while_it_waited_is_replaced(text: Path) -> None:
    list(answers_about(text, "text", LINES, 0))
    (process,) = file_trial._idle
    process.kill()
    process.wait()
    assert next(iter(answers_about(text, "text", LINES, 1))) == "a"
