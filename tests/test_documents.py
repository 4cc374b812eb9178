"""The Python in the documents: what it imports exists, and the practitioner's way from a table to a judgement works."""

import ast
import re
import shlex
from pathlib import Path

import h5py
import numpy as np
import pytest

from score_rl.cli import main

CHECKOUT = Path(__file__).parents[1]
COPIED = {"policy_reader", "my_methods"}  # files that the documents have written before
DOCUMENTS = ["README.md", *sorted(str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "docs").glob("*.md"))]


def blocks(document: str, language: str = "python") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (CHECKOUT / document).read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_the_documents_import_exists(document: str) -> None:
    for block in blocks(document):
        imports = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Import | ast.ImportFrom)]
        for node in imports:
            named = [node.module] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            if set(named) & COPIED:
                continue
            exec(compile(ast.Module([node], []), document, "exec"), {})


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_the_documents_link_to_exists(document: str) -> None:
    path = CHECKOUT / document
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if "//" in link:
            continue
        file, _, section = link.partition("#")
        target = path.parent / file if file else path
        assert target.exists(), link
        if section and target.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert section in slugs, link
    for name in re.findall(r"`((?:benchmarks|src|tests)/[\w./-]+)`", path.read_text()):
        assert (CHECKOUT / name).exists(), name


def test_from_a_table_of_logs_to_a_judgement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/data.md, block after block, on a plant of three measurements and two actions; fewer updates."""
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows, length = 600, 50
    power, fan = rng.uniform(20, 240, rows), rng.uniform(700, 2300, rows)
    temperature = 60 + np.cumsum(rng.normal(size=rows)) * 0.1
    table = {
        "batch": np.arange(rows) // length, "temperature": temperature, "load": np.sin(np.arange(rows) / 9),
        "ambient": 20 + np.cos(np.arange(rows) / 30), "power": power, "fan": fan, "cost": 1e-3 * power + 1e-4 * fan,
        "outcome": np.where(np.arange(rows) % (4 * length) == 4 * length - 1, "failed", "done"),
        "time": np.arange(rows) % length,
    }  # fmt: skip
    pandas.DataFrame(table).sample(frac=1, random_state=0).to_csv("logs.csv", index=False)  # in no order
    write, look = (block for block in blocks("docs/data.md") if "logs.hdf5" in block)
    exec(write, {})
    with h5py.File("logs.hdf5") as file:
        assert file["terminals"][...].sum() == 3
        assert file["trajectory_ends"][...].sum() == rows // length
        np.testing.assert_array_equal(file["observations"][:, 0], temperature.astype(np.float32))
    (commands,) = (block for block in blocks("docs/data.md", "bash") if "logs.hdf5" in block)
    check, train = (shlex.split(line, comments=True) for line in commands.strip().splitlines())
    for command in (
        check,
        [*train, "--steps", "20", "--config.batch-size", "16", "--config.hidden", "16,16", "--quiet"],
    ):
        with pytest.raises(SystemExit) as end:
            main(command[1:])
        assert not end.value.code, capsys.readouterr().err
    capsys.readouterr()
    exec(look, {})
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines() if line[0].isalpha()] == ["moved", "between", "unknown"]
    assert "logs_seed=4" in said
