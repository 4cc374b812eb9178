"""What a result says of the code that produced it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import score_rl
from score_rl.store.provenance import CODE_VERSION, provenance


def test_the_variable_counts_before_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = Path(score_rl.__file__).parent
    commit = subprocess.run(["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True)
    monkeypatch.delenv(CODE_VERSION, raising=False)
    if commit.returncode == 0:
        assert provenance()["code"].startswith(commit.stdout.strip())
    monkeypatch.setenv(CODE_VERSION, "something else")
    assert provenance()["code"] == "something else"


def test_without_git_the_variable_says_it(tmp_path: Path) -> None:
    """As on a machine to which only the files were copied."""
    package = tmp_path / "src" / "score_rl"
    shutil.copytree(Path(score_rl.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "ladders"))
    code = "from score_rl.store.provenance import code_version; print(code_version())"
    environment = {"PYTHONPATH": str(package.parent), "PATH": "/usr/bin:/bin", CODE_VERSION: "abc123"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "abc123", done
