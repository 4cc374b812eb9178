"""docs/theory.md: its table names what exists, and what it says of a study is what the study finds."""

import importlib
import re
import time
from pathlib import Path
from typing import Any

import pytest

from score_rl.paper.evidence.theory_tour import FIGURES, TABLES, block_of, blocks_in, blocks_of, same
from score_rl.paper.theory.corrections import all_corrections
from score_rl.paper.theory.studies import STUDIES, run_study
from score_rl.paper.theory.studies.findings import StudyResult
from tests.paper.theory.mutations import CHECKOUT, MUTATIONS

TEXT = (CHECKOUT / "docs" / "theory.md").read_text(encoding="utf-8")
TESTS = Path(__file__).parent
KINDS = ("exact", "bound", "corrected", "measured")
SECONDS = 60.0


def statements() -> list[list[str]]:
    """The rows of the table of statements."""
    table = TEXT.partition("| statement |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def function_of(name: str) -> Any:
    """A function of the package by the name that the page gives it, as `rate.zeta`."""
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"score_rl.paper.theory.{module}"), function)


@pytest.mark.parametrize("row", statements(), ids=lambda row: row[0])
def test_every_statement_names_a_function_a_kind_and_a_test_that_exist(row: list[str]) -> None:
    _, place, functions, kind, test = row
    assert place
    assert kind.startswith(KINDS)
    for name in re.findall(r"`([\w.]+)`", functions):
        assert callable(function_of(name)), name
    module, _, function = test.strip("`").partition("::")
    text = (TESTS / module).read_text(encoding="utf-8")
    assert f"def {function}(" in text, test
    for name in re.findall(r"`\w+\.(\w+)`", functions):
        assert re.search(rf"\b{name}\b", text), f"{module} does not touch {name}"


def test_every_place_of_the_corrections_is_one_of_a_statement() -> None:
    named = " ".join(row[1] for row in statements())
    for correction in all_corrections():
        kind, _, labels = correction.label.partition(" ")
        assert kind in ("eq.", "lemma", "theorem"), correction.label
        for label in labels.partition(", end")[0].split(", "):
            assert label in re.split(r"[ ,]+", named), correction.label


def test_every_study_has_its_findings_its_picture_and_its_section() -> None:
    blocks = blocks_in(TEXT)
    assert set(blocks) == {block_of(name) for name in STUDIES} | set(TABLES.values())
    for name in STUDIES:
        assert blocks[block_of(name)].startswith("- "), name
        assert not re.search("FAIL|NOT", blocks[block_of(name)]), name
        assert f"(figures/theory/{name}.svg)" in TEXT
        assert (CHECKOUT / FIGURES / f"{name}.svg").is_file()
        (section,) = [line for line in TEXT.splitlines() if line.startswith("## ") and f"(`{name}`)" in line]
        told = TEXT.partition(section)[2].partition("\n## ")[0]
        assert name == "corrections" or ("**Statement**" in told and "**Verdict: " in told)
        functions = re.findall(r"`(\w+\.\w+)`", told.partition("**Computed by**")[2].partition("\n\n")[0])
        assert functions, name
        assert all(callable(function_of(function)) for function in functions), functions


def test_the_number_of_deliberate_errors_is_the_one_that_is_said() -> None:
    assert f"lists {len(MUTATIONS)} deliberate errors" in TEXT


def test_numbers_that_machines_round_differently_are_the_same() -> None:
    assert same("holds: within 3.4e-15 of 1,000", "holds: within 9.1e-16 of 1000")
    assert not same("holds: within 3.4e-15", "FAILS: within 3.4e-15")
    assert not same("within 1e-3", "within 2e-3")
    assert not same("0.50 of 3", "0.50 of 4")


def test_findings_and_tables_become_blocks() -> None:
    result = StudyResult("corrections", "title", ("a", "b"), [("|x|", "1")], ["One.", "Two."], [], {})
    assert blocks_of({"corrections": result}) == {
        "corrections": "- One.\n- Two.",
        "corrections_table": "| a | b |\n| --- | --- |\n| \\|x\\| | 1 |",
    }


@pytest.mark.slow
def test_the_page_says_what_every_study_finds_within_a_minute_each(tmp_path: Path) -> None:
    there, results = blocks_in(TEXT), {}
    for name in STUDIES:
        began = time.process_time()
        results[name] = run_study(name, tmp_path / name)
        assert time.process_time() - began < SECONDS, name
    for block, content in blocks_of(results).items():
        assert same(content, there[block]), block
