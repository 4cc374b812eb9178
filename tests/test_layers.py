"""Who may know whom, module by module: one direction only."""

import ast
from pathlib import Path

import pytest

import score_rl

SOURCE = Path(score_rl.__file__).parent
# Each room may use those before it. What a room may not use although it comes before is left out.
MAY_USE = {
    "errors": set(),
    "versions": set(),
    "disk": {"errors"},
    "envs": {"errors"},
    "nets": {"errors"},
    "data": {"errors", "versions", "disk", "envs"},
    "algorithms": {"errors", "nets", "data", "envs"},
    "engine": {"errors", "nets", "data", "envs", "algorithms"},
    "store": {"errors", "versions", "disk", "nets", "data", "envs", "algorithms", "engine"},
    "rollout": {"errors", "nets", "data", "envs", "algorithms", "engine", "store"},
    "run": {"errors", "disk", "nets", "data", "envs", "algorithms", "engine", "store", "rollout"},
    "report": {"errors", "disk", "envs", "algorithms", "store"},
    "paper": {"errors", "disk", "nets", "data", "envs", "algorithms", "engine", "store", "rollout", "run", "report"},
    "cli": {"errors", "versions", "data", "envs", "algorithms", "store", "rollout", "run", "report", "paper"},
    "__init__": {"errors", "data", "run"},
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
