"""The documents show what is stored, and the commands that make them."""

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from score_rl.cli import main
from score_rl.errors import InputError
from score_rl.paper.evidence import __main__ as command
from score_rl.paper.evidence import cells, companies, figures, main_table, reading, tables
from score_rl.paper.evidence.records import Evidence
from score_rl.report.results import algorithm_title
from score_rl.report.statistics import aggregates
from tests.paper.evidence.made_up import complete, runs

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def stored() -> Evidence:
    return reading.read(CHECKOUT)


# -- the documents ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", command.DOCUMENTS)
def test_documents_show_what_is_stored(document: str, stored: Any) -> None:
    path = CHECKOUT / document
    text = path.read_text()
    assert "<!-- evidence:" in text
    assert command.rewritten(text, stored, path.parent) == text, "run: make evidence"


def test_every_table_stands_in_a_document() -> None:
    text = "".join((CHECKOUT / document).read_text() for document in command.DOCUMENTS)
    assert all(f"<!-- evidence:{name} -->" in text for name in tables.TABLES)


def test_figures_are_drawn_from_what_is_stored(stored: Evidence) -> None:
    found = sorted((CHECKOUT / main_table.FIGURES).glob("*.svg"))
    assert "score.svg" in [path.name for path in found]
    for path in found:
        assert figures.numbers_in(path) == figures.drawn_numbers(stored), "run: make evidence"


def test_the_command_writes_and_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a project of its own: empty at first, with results later."""
    for name in command.DOCUMENTS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before\n<!-- evidence:main -->\nout of date\n<!-- /evidence:main -->\nafter\n")
    with pytest.raises(InputError, match="has no benchmarks/results; run this in a checkout"):
        command.main(command.Arguments(checkout=tmp_path))
    (tmp_path / reading.RESULTS).mkdir(parents=True)
    for scores in ([], [90.0, 92.0]):
        made_up = reading.collect(runs("score", "replica:hopper-expert", scores))
        monkeypatch.setattr(command, "read", lambda root, made_up=made_up: dataclasses.replace(made_up, checkout=root))
        assert command.main(command.Arguments(check=True, checkout=tmp_path)) == 1
        assert command.main(command.Arguments(checkout=tmp_path)) == 0
        assert command.main(command.Arguments(check=True, checkout=tmp_path)) == 0
    drawn = figures.numbers_in(tmp_path / main_table.FIGURES / "score.svg")
    assert drawn == {"score hopper-expert": [90.0, 92.0]}
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "out of date" not in text
    assert "| hopper-expert | replica | 112.0 ± 0.3 | [91.0 ± 1.0](" in text
    assert "(**1 M × 2**) | 91.0 | – | -21.0 | too few seeds | – | – | – |" in text
    assert text.count("not run yet") == 14
    with pytest.raises(ValueError, match="no table is called 'nonsense'"):
        command.rewritten("<!-- evidence:nonsense --> <!-- /evidence:nonsense -->", made_up, tmp_path)


def test_figures_are_the_same_bytes_again(tmp_path: Path, stored: Evidence) -> None:
    for folder in ("a", "b"):
        figures.draw(stored, tmp_path / folder)
    assert (tmp_path / "a" / "score.svg").read_bytes() == (tmp_path / "b" / "score.svg").read_bytes()


@pytest.mark.usefixtures("hastily")
def test_tables_work_with_nothing_and_with_everything(tmp_path: Path) -> None:
    nothing = reading.collect([])
    everything = reading.collect(complete())
    for table in tables.TABLES.values():
        assert table(nothing, tmp_path)
        assert table(everything, tmp_path)
    assert main_table.main_table(nothing, tmp_path).count("not run yet") == 15
    text = main_table.main_table(everything, tmp_path)
    assert "not run yet" not in text
    assert "mean of these 15" in text
    assert tables.aggregate(everything, tmp_path).count("Over ") == 1


# -- the command that shows all methods ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_main_table_from_stored_has_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stored: Evidence
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(CHECKOUT)
    with pytest.raises(SystemExit) as end:
        main(["experiment", "run", "main-table", "aggregates", "profiles", "--out", str(tmp_path), "--from-stored"])
    shown = capsys.readouterr().out
    assert not end.value.code
    assert "…" not in shown, "no name is cut"
    with (tmp_path / "main-table" / "stored" / "table.csv").open() as file:
        rows = {(row["method"], row["dataset"]): row for row in csv.DictReader(file) if row["dataset"] != "overall"}
    titles = {(algorithm_title(algorithm), dataset): r for (algorithm, dataset), r in stored.results.items()}
    assert rows.keys() == titles.keys()
    for key, result in titles.items():
        assert float(rows[key]["mean"]) == pytest.approx(np.mean(result.scores))
        assert float(rows[key]["std"]) == pytest.approx(np.std(result.scores))
        assert int(rows[key]["seeds"]) == result.protocol.seeds
    with (tmp_path / "main-table" / "stored" / "chosen.csv").open() as file:
        *chosen, both = csv.DictReader(file)
    assert [row["data set"] for row in chosen] == list(stored.chosen)
    for row in chosen:
        assert row["here"] == cells.spread(stored.chosen[row["data set"]].scores)
        assert row["one for all"] == cells.spread(stored.results["score", row["data set"]].scores)
    ours = list(stored.with_choices().values())
    assert both["here"] == cells.overall(ours)[1], "as the last line of docs/results.md's first table has it"
    first, again = tmp_path / "main-table" / "stored" / "runs", tmp_path / "again"
    with pytest.raises(SystemExit):
        main(["experiment", "run", "main-table", "--out", str(again), "--from-stored", str(first), "--quiet"])
    for name in ("table.csv", "chosen.csv", "runs/curves.csv"):
        made = [folder / "main-table" / "stored" / name for folder in (tmp_path, again)]
        assert made[0].read_text() == made[1].read_text(), "what it keeps is enough to rebuild it"
    about = json.loads((tmp_path / "main-table" / "stored" / "result.json").read_text())
    assert set(about["source"]) == {result.data for result in stored.results.values()}, "what the data are"
    assert about["trained_by"], "and who trained, not only who drew"
    together, _ = companies.in_companies(stored)
    numbers = json.loads((tmp_path / "aggregates" / "stored" / "result.json").read_text())["numbers"]["companies"]
    assert [(c["datasets"], list(c["aggregates"])) for c in numbers] == [
        (c.datasets, list(c.matrices)) for c in together
    ]
    for written, company in zip(numbers, together, strict=True):
        for method, found in aggregates(company.matrices).items():
            assert written["aggregates"][method]["iqm"]["mean"] == pytest.approx(found["iqm"].value)
    assert (tmp_path / "profiles" / "stored" / "profiles.svg").exists()
