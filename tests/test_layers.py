"""Who may know whom: one direction only."""

import ast
from pathlib import Path

import pytest

import score_rl

SOURCE = Path(score_rl.__file__).parent
MAY_USE = {
    "errors": set(),
    "versions": set(),
    "envs": {"errors"},
    "nets": {"errors"},
    "data": {"errors", "versions", "envs"},
    "algorithms": {"errors", "nets", "data", "envs"},
    "judge": {"errors", "envs", "data", "algorithms", "nets"},
    "fleet": {"errors", "versions", "envs", "data", "nets", "algorithms", "judge"},
    "drawing": {"errors"},
    "report": {"errors", "envs", "algorithms", "fleet", "drawing"},
    "experiments": {"errors", "envs", "data", "nets", "algorithms", "judge", "fleet", "drawing", "report"},
    "theory": {"errors", "drawing"},
    "cli": {"errors", "versions", "data", "algorithms", "judge", "fleet", "report", "experiments", "theory", "envs"},
    "__init__": {"errors", "data", "fleet"},
}


def packages_used(path: Path) -> set[str]:
    used = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        used |= {name.split(".")[1] for name in names if name.startswith("score_rl.")}
    return used


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path):
    layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert layer in MAY_USE, f"{layer} is a new layer: say what it may use"
    forbidden = packages_used(path) - MAY_USE[layer] - {layer}
    assert not forbidden, f"{path.name} belongs to {layer} and must not know {', '.join(sorted(forbidden))}"


def test_no_room_for_odds_and_ends():
    names = {path.stem for path in SOURCE.rglob("*")}
    assert not names & {"utils", "util", "common", "helpers", "misc"}
