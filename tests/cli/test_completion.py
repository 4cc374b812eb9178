"""What TAB offers, asked of a real bash."""

import shutil
import subprocess
from pathlib import Path

import pytest

from score_rl.algorithms.registry import algorithm_names
from score_rl.cli import COMMANDS, _completed
from score_rl.cli.completion import script

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
ASK = r"""
source "$1"
COMP_LINE="$2" COMP_POINT=${#2}
read -ra COMP_WORDS <<< "$COMP_LINE"
[[ "$COMP_LINE" == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_score
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "score.sh"
    path.write_text(script(_completed()))
    return path


def offered(written: Path, line: str) -> list[str]:
    done = subprocess.run(["bash", "-c", ASK, "bash", written, line], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_and_their_commands(written: Path) -> None:
    assert offered(written, "score ") == [name for name in COMMANDS if name != "completion"]
    assert offered(written, "score tr") == ["train"]
    assert offered(written, "score data ch") == ["check"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("score train --hold", ["--hold-out"]),
        ("score train --steps 5 --config.expec", ["--config.expectile"]),
        ("score train --algorithm score ", algorithm_names()),
        ("score train --physics ", ["d4rl", "stock"]),
        ("score data import logs.csv --missing f", ["forward"]),
        ("score algorithms td3", ["td3-bc"]),
        ("score report runs --ou", ["--out"]),
        ("score report ", []),
    ],
)
def test_options_and_their_values(written: Path, line: str, words: list[str]) -> None:
    assert offered(written, line) == words


def test_names_with_a_colon_go_on_behind_it(written: Path) -> None:
    """Bash takes what stands behind the colon for the word."""
    assert "hopper-medium-replay" in offered(written, "score train --dataset replica:hopper-medium")
