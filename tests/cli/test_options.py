"""Options as people type them, and a help that can be read."""

import dataclasses
import re

import pytest

from score_rl.algorithms.registry import get_algorithm
from score_rl.cli import ABOUT, COMMANDS, MORE, usage
from score_rl.cli.options import documented, in_lines, parse
from score_rl.cli.train import COMMON, TrainArguments
from score_rl.errors import InputError
from score_rl.store.request import whole_number
from tests.end_to_end.conftest import Score, score

__all__ = ["score"]


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a made-up command takes."""

    steps: int = 10
    """Updates of each run,
    over several lines."""
    seeds: tuple[int, ...] = (0,)
    every: int | None = None
    """None unless given."""


@pytest.mark.parametrize(("typed", "steps"), [("1e6", 1_000_000), ("1_000", 1000), ("1.5e3", 1500), ("12", 12)])
def test_whole_numbers_are_understood_as_people_write_them(typed: str, steps: int) -> None:
    assert parse(Asked, ["--steps", typed], "score made-up").steps == steps
    assert parse(Asked, ["--seeds", typed, "3", "--every", typed], "score made-up").seeds == (steps, 3)


@pytest.mark.parametrize("typed", ["1.5", "15e-1", "1e400", "nan", "ten"])
def test_other_numbers_are_refused(typed: str) -> None:
    with pytest.raises(SystemExit) as end:
        parse(Asked, ["--steps", typed], "score made-up")
    assert end.value.code == 2


@pytest.mark.parametrize("value", [1.5, True, float("inf"), float("nan"), "10"])
def test_python_refuses_counts_that_are_not_whole(value: float) -> None:
    with pytest.raises(InputError, match=r"`steps` is .*; it must be a whole number"):
        whole_number("`steps`", value)
    assert whole_number("`steps`", 1e3) == 1000


def test_help_has_no_line_breaks_inside_sentences(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit):
        parse(Asked, ["--help"], "score made-up")
    shown = capsys.readouterr().out
    assert "Updates of each run, over several lines. (default: 10)" in shown
    assert "None unless given." in shown
    assert "default: None" not in shown
    assert "{None}" not in shown


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_list_of_commands_breaks_between_words(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = usage()
    assert max(map(len, shown.splitlines())) <= width
    assert {*" ".join(MORE).split(), *ABOUT.split()} <= {*shown.split()}
    assert all(f"\n  {name} " in shown for name in COMMANDS)
    text = in_lines("A sentence of words. " * 10)
    assert not any(line.startswith(" ") for line in text.splitlines()), "nothing hangs"


def test_a_part_of_the_options_keeps_their_texts() -> None:
    some = documented(documented(Asked), only=["every"])
    assert [field.name for field in dataclasses.fields(some)] == ["every"]
    assert {*COMMON} <= {field.name for field in dataclasses.fields(TrainArguments)} | {"settings_0"}


def test_help_shows_what_most_people_set_and_help_all_the_rest(score: Score) -> None:
    short, whole = score("train", "--help"), score("train", "--help-all")
    assert (short.code, whole.code) == (0, 0)
    assert "--seeds" in short.out
    assert "--checkpoint-minutes" not in short.out
    assert "--config.batch-size" not in short.out
    settings = [field.name.replace("_", "-") for field in dataclasses.fields(get_algorithm("score").Config)]
    options = [field.name.replace("_", "-") for field in dataclasses.fields(TrainArguments)]
    assert all(f"--{option}" in whole.out for option in [*options, *(f"config.{name}" for name in settings)])
    more = sum(not re.search(rf"--{option}\b", short.out) for option in options)
    assert f"`score train --help-all` shows {more} more options, and all settings of SCORE." in short.out


def test_no_line_of_help_is_wider_than_a_narrow_terminal(score: Score, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, score("train", "--help-all").out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("typed", "remedy"),
    [
        (("256", "128"), "write --config.hidden 256,128 for one network, or --config.hidden 256, 128, for networks"),
        (("256", "256"), "write --config.hidden 256,256 for one network"),
        (("256",), "write --config.hidden 256, for one network."),
        (("64,64", "256"), "commas go between layers"),
    ],
)
def test_widths_without_commas_are_refused(score: Score, typed: tuple[str, ...], remedy: str) -> None:
    done = score("train", "--steps", 10, "--config.hidden", *typed)
    assert done.code == 2
    assert remedy in done.err
