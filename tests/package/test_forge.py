"""What a public forge reads: the workflow, hooks, templates and the citation agree with the package."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).parents[2]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
PYTHONS = [line.split()[-1] for line in PROJECT["classifiers"] if re.search(r"Python :: \d\.\d+$", line)]


def read(name: str) -> Any:
    return yaml.safe_load((CHECKOUT / name).read_text())


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))


def test_every_python_that_is_promised_is_tested_on_each_change() -> None:
    jobs = read(".github/workflows/tests.yml")["jobs"]
    assert jobs["fast"]["strategy"]["matrix"]["python"] == PYTHONS
    lowest, highest = PYTHONS[0], PYTHONS[-1]
    assert PROJECT["requires-python"] == f">={lowest},<3.{int(highest.split('.')[1]) + 1}"
    assert f"not (3, {lowest.split('.')[1]}) <=" in (CHECKOUT / "Makefile").read_text()


def test_the_workflow_runs_what_the_makefile_has() -> None:
    jobs = read(".github/workflows/tests.yml")["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert len(commands) == 3
    for command in commands:
        made = re.fullmatch(r"make ([a-z-]+) PYTHON=python", command)
        assert made, command
        assert made[1] in targets()


def test_hooks_run_what_make_install_dev_installs() -> None:
    installed = {re.split(r"[<>=\[]", need)[0] for need in PROJECT["optional-dependencies"]["dev"]}
    (source,) = read(".pre-commit-config.yaml")["repos"]
    for hook in source["hooks"]:
        tool = hook["entry"].split()[0]
        assert tool.startswith(".venv/bin/")
        assert Path(tool).name in installed


def test_the_citation_is_of_this_version() -> None:
    citation = read("CITATION.cff")
    newest = re.search(r"^## (\S+) \((\S+)\)", (CHECKOUT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert citation["version"] == PROJECT["version"] == newest[1]
    assert str(citation["date-released"]) == newest[2]
    assert citation["preferred-citation"]["doi"] in PROJECT["urls"]["Paper"]


@pytest.mark.parametrize(
    "template", sorted((CHECKOUT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda p: p.stem
)
def test_a_template_asks_for_something(template: Path) -> None:
    form = read(str(template.relative_to(CHECKOUT)))
    assert form["name"]
    assert form["description"]
    assert any(field.get("validations", {}).get("required") for field in form["body"])
