"""docs/architecture.md names modules that exist, and walks one batch from line to line as the code stands.

To put the present lines into the document: python -m tests.test_architecture
"""

import ast
import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
DOCUMENT = CHECKOUT / "docs" / "architecture.md"
SOURCE = CHECKOUT / "src" / "score_rl"
# What happens to a batch, in order: the module, the function or class, and what it does.
WALK = (
    ("data/sources/hdf5.py", "read_hdf5", "a file becomes columns"),
    ("data/dataset.py", "make_dataset", "columns become a checked data set"),
    ("data/treatment.py", "fit_treatment", "the scales of observations, rewards and actions"),
    ("engine/inputs.py", "stacked_inputs", "settings, treatments and keys of all runs, side by side"),
    ("engine/batches.py", "pack_rows", "each transition becomes one row, for the device"),
    ("engine/window.py", "train_window", "a window of updates of one run, as it is traced"),
    ("engine/batches.py", "draw_batch", "rows drawn at random become a batch in treated units"),
    ("algorithms/score.py", "update", "one round of Algorithm 1"),
    ("algorithms/score.py", "critic_loss", "the equation of the critics, and `target` above it"),
    ("nets/optimiser.py", "adam_step", "gradients become new parameters"),
)


def line_of(module: str, name: str) -> int:
    tree = ast.parse((SOURCE / module).read_text())
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == name]
    assert found, f"{module} has no {name}"
    return found[0].lineno


def walk() -> str:
    stations = [
        f"{number}. [`{module}:{line_of(module, name)}`](../src/score_rl/{module}#L{line_of(module, name)}) "
        f"`{name}`: {what}"
        for number, (module, name, what) in enumerate(WALK, 1)
    ]
    return "<!-- walk -->\n" + "\n".join(stations) + "\n<!-- /walk -->"


def with_walk(text: str) -> str:
    return re.sub(r"<!-- walk -->.*<!-- /walk -->", lambda found: walk(), text, flags=re.DOTALL)


def test_the_walk_of_a_batch_is_as_the_code_stands() -> None:
    text = DOCUMENT.read_text()
    assert with_walk(text) == text, "lines have moved: python -m tests.test_architecture"


def test_the_walk_is_short_and_enters_no_room_twice() -> None:
    assert len(WALK) <= 10
    rooms = [module.partition("/")[0] for module, _, _ in WALK]
    entered = [room for number, room in enumerate(rooms) if number == 0 or rooms[number - 1] != room]
    assert len(entered) == len(set(entered))


def test_every_module_it_names_exists() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    for name in re.findall(r"`([a-z_]+/[\w/]+\.py)`", DOCUMENT.read_text()):
        where = SOURCE if name.partition("/")[0] in rooms else CHECKOUT
        assert (where / name).exists(), name


def test_every_room_is_in_it() -> None:
    text = DOCUMENT.read_text()
    for path in SOURCE.iterdir():
        if path.is_dir() and path.name != "__pycache__":
            assert f"| `{path.name}/` |" in text, path.name


if __name__ == "__main__":
    DOCUMENT.write_text(with_walk(DOCUMENT.read_text()))
