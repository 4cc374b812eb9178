"""The notebooks of docs/notebooks run from top to bottom, and hold outputs of such a run.

To run them anew, and store what comes out: python -m tests.documents.test_notebooks
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="score-rl[docs] is not installed")
pytest.importorskip("ipykernel", reason="score-rl[docs] is not installed")

from tests.documents.sentences import CHECKOUT, too_long  # noqa: E402

FOLDER = CHECKOUT / "docs" / "notebooks"
BYTES = 150_000  # of a notebook with its outputs
# What must be true at the end, beside that no cell fails.
AT_THE_END = {
    "logs_to_policy": """
days_cost = {name: rows.cost.sum() for name, rows in played.items()}
for run in experiment:
    if run.record.algorithm == "score":
        assert judgement.runs[run.id].verdict == "better than the behaviour", judgement.runs[run.id]
        assert days_cost[run.id] < days_cost["recorded controller"], days_cost
""",
    "own_method": """
assert {run.status.state for run in experiment} == {"finished"}
assert abs(float(metrics["weight"]) - 1) < 1e-4
ours = [run for run in experiment if "temperature" in run.record.config]
weights = {run.config.temperature: run.metrics.curve("train/weight")[1][-1] for run in ours}
assert len(weights) == 3
assert max(weights.values()) == weights[0.01], weights
""",
}


def notebooks() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_notebook_holds_the_outputs_of_one_run(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "run it from top to bottom"
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]
    text = path.read_text()
    assert len(text) < BYTES
    for private in ("/home/", "/root/", "/tmp/", "site-packages"):
        assert private not in text, f"{path.name} shows a path of the machine it ran on"
    assert path.stem in AT_THE_END


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_its_sentences_are_short(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        assert cell.cell_type != "markdown" or not too_long(cell.source)


def executed(notebook: Any, folder: Path) -> None:
    """Run all cells in a folder."""
    from nbclient import NotebookClient

    about = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=900, kernel_name="python3", record_timing=False, resources=about).execute()


@pytest.mark.slow
@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(CHECKOUT / "src"), before])))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(AT_THE_END[path.stem]))
    executed(notebook, tmp_path)


if __name__ == "__main__":
    for path in notebooks():
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            executed(notebook, Path(folder))
        for name in ("version", "pygments_lexer", "codemirror_mode", "nbconvert_exporter"):
            notebook.metadata.language_info.pop(name, None)  # of the machine, and of no use
        nbformat.write(notebook, path)
