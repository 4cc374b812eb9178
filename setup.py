"""The description that a package index shows: README, with links that work there. All else is in pyproject.toml."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<address>[^)\s]+)\)")


def described(readme: str, repository: str | None) -> str:
    """README with absolute links. While the repository has no public address, relative ones lead nowhere: they go."""

    def absolute(found: re.Match[str]) -> str:
        image, text, address = found.groups()
        if re.match(r"https?://|#", address):
            return found[0]
        if repository is None:
            return "" if image else text
        return f"{image}[{text}]({repository}/{'raw' if image else 'blob'}/main/{address})"

    return LINK.sub(absolute, readme)


def repository() -> str | None:
    """Where the repository lies, if [project.urls] says so."""
    about = tomllib.loads((HERE / "pyproject.toml").read_text())
    return about["project"]["urls"].get("Repository")


if __name__ == "__main__":
    setup(
        long_description=described((HERE / "README.md").read_text(), repository()),
        long_description_content_type="text/markdown",
    )
