"""What is too long to be read in one go."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import score_rl

SOURCE = Path(score_rl.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
LINES, FUNCTION, ARGUMENTS = 350, 60, 6
KERNELS = Path("nets/kernels")  # GPU code: one kernel may take more than a page
COMPILED = (Path("nets"), Path("algorithms"), Path("engine"))  # functions that JAX traces are read as one equation


def relative(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))


def is_in(path: Path, rooms: tuple[Path, ...]) -> bool:
    return any(path.relative_to(SOURCE).is_relative_to(room) for room in rooms)


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_module_is_read_in_one_go(path: Path) -> None:
    if is_in(path, (KERNELS,)):
        return
    lines = len(path.read_text().splitlines())
    assert lines <= LINES, f"{relative(path)} has {lines} lines; {LINES} is the limit"


@pytest.mark.parametrize("path", [path for path in MODULES if not is_in(path, COMPILED)], ids=relative)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    for function in functions(path):
        lines = (function.end_lineno or 0) - function.lineno + 1
        body = lines - _of_documentation(function)
        assert body <= FUNCTION, f"{relative(path)}: {function.name} has {body} lines; {FUNCTION} is the limit"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_constructor_takes_few_arguments(path: Path) -> None:
    for function in functions(path):
        if function.name == "__init__":
            arguments = function.args
            number = len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]) - 1  # without self
            assert number <= ARGUMENTS, f"{relative(path)}:{function.lineno} takes {number}; {ARGUMENTS} is the limit"


def _of_documentation(function: ast.FunctionDef) -> int:
    """Lines of its docstring."""
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return (first.end_lineno or 0) - first.lineno + 1
    return 0
