"""Who may know whom: rooms in one direction only, and no two modules each other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import score_rl

SOURCE = Path(score_rl.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
# Each room may use those before it. What a room has no business with is left out, although it comes before.
MAY_USE = {
    "errors": set(),
    "versions": set(),
    "disk": {"errors"},
    "console": {"errors"},
    "live_line": set(),
    "notebook": set(),
    "plugins": {"errors"},
    "envs": {"errors", "plugins"},
    "nets": {"errors"},
    "data": {"errors", "console", "notebook", "versions", "disk", "live_line", "envs"},
    "algorithms": {"errors", "plugins", "nets", "data", "envs"},
    "engine": {"errors", "nets", "data", "algorithms"},
    "store": {"errors", "notebook", "versions", "disk", "nets", "data", "algorithms", "engine"},
    "rollout": {"errors", "nets", "data", "envs", "algorithms", "engine", "store"},
    "deploy": {"errors", "disk", "data", "algorithms"},
    "run": {
        "errors",
        "plugins",
        "console",
        "notebook",
        "disk",
        "live_line",
        "nets",
        "data",
        "envs",
        "algorithms",
        "engine",
        "store",
        "rollout",
        "deploy",
    },
    "judge": {"errors", "live_line", "nets", "data", "algorithms", "engine", "store", "rollout", "run"},
    "report": {"errors", "disk", "envs", "algorithms", "store"},
    "cluster": {
        "errors",
        "disk",
        "live_line",
        "versions",
        "nets",
        "data",
        "algorithms",
        "engine",
        "store",
        "run",
        "judge",
    },
    "paper": {"errors", "disk", "nets", "data", "envs", "algorithms", "engine", "store", "rollout", "run", "report"},
    "cli": {
        "errors",
        "console",
        "plugins",
        "versions",
        "live_line",
        "data",
        "envs",
        "algorithms",
        "store",
        "rollout",
        "deploy",
        "run",
        "judge",
        "report",
        "cluster",
        "paper",
    },
    "__init__": {"errors", "versions", "data", "run", "judge"},
    "__main__": {"cli"},
}


def module_name(path: Path) -> str:
    """Such as `engine.program`; a package is called by its own name."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


NAMES = {module_name(path) for path in MODULES}


def modules_used(path: Path) -> set[str]:
    """All modules of this package that one imports, anywhere in it: inside functions and for type checkers too."""
    return {name for node in ast.walk(ast.parse(path.read_text())) for name in _imported(node)} - {module_name(path)}


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        return
    for name in names:
        if not name.startswith("score_rl."):
            continue
        inside = name.removeprefix("score_rl.")
        while inside and inside not in NAMES:  # a function or class: its module
            inside = inside.rpartition(".")[0]
        if inside:
            yield inside


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_go_one_way(path: Path) -> None:
    room = module_name(path).partition(".")[0]
    assert room in MAY_USE, f"{room} is a new room: say what it may use"
    used = {name.partition(".")[0] for name in modules_used(path)}
    forbidden = used - MAY_USE[room] - {room}
    assert not forbidden, f"{module_name(path)} must not know {', '.join(sorted(forbidden))}"


def test_the_rooms_have_an_order() -> None:
    """No room may use a room that may use it."""
    known: set[str] = set()
    for room, may_use in MAY_USE.items():
        assert may_use <= known, f"{room} may use {may_use - known}, which come after it"
        known.add(room)


def test_no_two_modules_know_each_other() -> None:
    """Also not through others: what needs what it is needed by is one module, or a wrong cut."""
    needs = {module_name(path): modules_used(path) for path in MODULES}
    packages = {module_name(path) for path in MODULES if path.name == "__init__.py"}
    needs = {name: used - packages for name, used in needs.items() if name not in packages}
    while leaves := {name for name, used in needs.items() if not used & needs.keys()}:
        needs = {name: used for name, used in needs.items() if name not in leaves}
    while needs:  # who is only above a cycle goes as well
        used_by_others = set().union(*needs.values())
        above = needs.keys() - used_by_others
        if not above:
            break
        needs = {name: used for name, used in needs.items() if name not in above}
    assert not needs, f"these need each other: {', '.join(sorted(needs))}"


def test_no_room_for_odds_and_ends() -> None:
    names = {path.stem for path in SOURCE.rglob("*")}
    assert not names & {"utils", "util", "common", "helpers", "misc"}
