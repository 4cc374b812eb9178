"""What the source must not contain: ways in which a file could run code, and errors that vanish."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
SOURCES = sorted(path for room in ("src", "benchmarks") for path in (CHECKOUT / room).rglob("*.py"))
CALLS = {"eval", "exec", "os.system", "os.popen", "yaml.load", "np.fromregex", "torch.load", "joblib.load"}
MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "shelve", "marshal"}
TRUE_ARGUMENTS = {"allow_pickle", "shell"}
# Modules are imported by name where a user or this package names them, see docs/security.md.
MAY_IMPORT = {
    "src/score_rl/__init__.py", "src/score_rl/plugins.py", "src/score_rl/algorithms/registry.py",
    "src/score_rl/data/sources/registry.py", "src/score_rl/data/sources/file_trial_process.py",
    "src/score_rl/envs/gymnasium_slots.py", "src/score_rl/paper/theory/studies/__init__.py",
}  # fmt: skip


def unsafe(source: str, path: str = "") -> Iterator[tuple[int, str]]:
    """Every line that should not be there, and why."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in CALLS:
                yield node.lineno, name
            if (name.endswith("import_module") or name == "__import__") and path not in MAY_IMPORT:
                yield node.lineno, f"{name} outside of the modules that may"
            for argument in node.keywords:
                if argument.arg in TRUE_ARGUMENTS and not _is_false(argument.value):
                    yield node.lineno, f"{argument.arg} that is not False"
            if name in ("np.load", "numpy.load") and not any(each.arg == "allow_pickle" for each in node.keywords):
                yield node.lineno, "np.load that does not say allow_pickle=False"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            for name in names:
                if name.partition(".")[0] in MODULES:
                    yield node.lineno, f"import of {name}"
        elif isinstance(node, ast.ExceptHandler):
            caught = "" if node.type is None else ast.unparse(node.type)
            if caught in ("", "Exception", "BaseException") and all(isinstance(each, ast.Pass) for each in node.body):
                yield node.lineno, f"except {caught}: pass"


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def test_the_source_has_no_unsafe_pattern() -> None:
    names = [str(path.relative_to(CHECKOUT)) for path in SOURCES]
    assert len(names) > 300
    found = {name: list(unsafe((CHECKOUT / name).read_text(), name)) for name in names}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "eval(text)", "exec(text)", "np.load(path)", "np.load(path, allow_pickle=True)", "import pickle",
        "from pickle import loads", "subprocess.run(text, shell=True)", "importlib.import_module(name)",
        "try:\n    f()\nexcept Exception:\n    pass", "try:\n    f()\nexcept:\n    pass", "os.system(text)",
        "np.load(path, allow_pickle=asked)",
    ],
)  # fmt: skip
def test_each_of_them_is_found(source: str) -> None:
    assert list(unsafe(source))


def test_what_is_in_order_is_left_alone() -> None:
    assert not list(unsafe("np.load(path, allow_pickle=False)\ntry:\n    f()\nexcept OSError:\n    pass"))
