"""The package runs as the command."""

import subprocess
import sys


def test_python_m_is_the_command() -> None:
    command = [sys.executable, "-m", "score_rl"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert "usage: score COMMAND" in said.stdout
    wrong = subprocess.run([*command, "trian"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "train" in wrong.stderr
