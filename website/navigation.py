"""Pages that mkdocs.yml does not place stand under "More", so that no page of docs/ is missing from the site."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add what is missing to the navigation."""
    placed = set(_pages(config.nav))
    folder = Path(config.docs_dir)
    missing = [path.name for path in sorted(folder.glob("*.md")) if path.name not in placed]
    if missing and config.nav is not None:
        config.nav.append({"More": missing})
    return config


def _pages(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for value in nav.values():
            yield from _pages(value)
    elif nav is not None:
        for value in nav:
            yield from _pages(value)
