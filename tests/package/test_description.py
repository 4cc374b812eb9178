"""What a package index shows of README: links that work there."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TEXT = "See [all](docs/a.md), [the paper](https://b.org/c) and [here](#d).\n\n![A picture](docs/e.svg)"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """setup.py, not run."""
    specification = importlib.util.spec_from_file_location("setup_script", Path(__file__).parents[2] / "setup.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_links_are_absolute_once_the_repository_has_an_address(script: ModuleType) -> None:
    shown = script.described(TEXT, "https://forge.org/x")
    assert "[all](https://forge.org/x/blob/main/docs/a.md)" in shown
    assert "![A picture](https://forge.org/x/raw/main/docs/e.svg)" in shown
    assert "[the paper](https://b.org/c) and [here](#d)" in shown


def test_without_an_address_nothing_leads_nowhere(script: ModuleType) -> None:
    assert script.described(TEXT, None) == "See all, [the paper](https://b.org/c) and [here](#d).\n\n"
