"""README is what people see first: its Python runs, its commands exist, and it stays short."""

import re
import shlex
from pathlib import Path

import pytest

from score_rl.cli import COMMANDS, main

README = Path(__file__).parents[1] / "README.md"
LONGEST = 90  # characters of a line of code: forges cut off what is longer


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)


def commands() -> list[list[str]]:
    lines = "".join(blocks("bash")).splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("score ")]


def test_it_is_short_and_its_code_is_narrow() -> None:
    assert len(README.read_text().splitlines()) <= 90
    wide = [line for block in blocks("bash") + blocks("python") for line in block.splitlines() if len(line) > LONGEST]
    assert not wide


def test_its_python_runs_when_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it stands, but for fewer rows and updates."""
    (text,) = blocks("python")
    assert len(text.splitlines()) == 10
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path))
    text = text.replace("100_000", "3_000").replace("10_000", '20, eval_episodes=1, config={"hidden": (16, 16)}')
    names: dict[str, object] = {}
    exec(text, names)
    assert re.search(r"doubt \d\.\d{3}, of recorded actions \d\.\d{3}", capsys.readouterr().out)
    assert names["action"].shape == (3,)  # type: ignore[attr-defined]
    assert list(names["steps"]) == [20]  # type: ignore[call-overload]


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_its_commands_exist_with_these_options(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    name = arguments[0]
    assert name in COMMANDS
    group = arguments[:2] if name in ("data", "experiment") else arguments[:1]
    with pytest.raises(SystemExit) as end:
        main([*group, "--help-all" if name == "train" else "--help"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    for option in (argument for argument in arguments if argument.startswith("--")):
        assert f"{option} " in said, option
