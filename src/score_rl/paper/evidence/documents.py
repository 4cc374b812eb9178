"""Tables in documents: each stands between `<!-- TOPIC:NAME -->` and `<!-- /TOPIC:NAME -->`, the rest is left alone."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from score_rl.disk import write_file

Table = Callable[[], str]


def with_tables(text: str, topic: str, tables: Mapping[str, Table]) -> str:
    """The text with the tables of a topic as they are now.

    Where a blank line follows the first marker, one stays at both ends. No marker may stand in a list: forges split it.
    """

    def replace(match: re.Match[str]) -> str:
        name, space = match.group(1), match.group(2)[:2]
        if name not in tables:
            raise ValueError(f"no table is called {name!r}; there are {', '.join(tables)}")
        return f"<!-- {topic}:{name} -->{space}{tables[name]()}{space}<!-- /{topic}:{name} -->"

    return re.sub(rf"<!-- {topic}:(\w+) -->(\s*).*?<!-- /{topic}:\1 -->", replace, text, flags=re.DOTALL)


def refresh(paths: Sequence[Path], current: Callable[[str, Path], str], *, change: bool) -> list[Path]:
    """The documents that were out of date; with `change` they are rewritten.

    `current` is given a document's text and its folder, and returns the text as it should be.
    """
    stale = []
    for path in paths:
        text = path.read_text()
        new = current(text, path.parent)
        if new != text:
            stale.append(path)
            if change:
                write_file(path, new)
    return stale


def report_stale(stale: Sequence[Path], root: Path, remedy: str | None) -> int:
    """Print which documents were out of date. The exit code is 1 if they still are; then `remedy` is printed too."""
    for path in stale:
        print(f"{path.relative_to(root)} {f'differs from what is stored: run {remedy}' if remedy else 'rewritten'}")
    return int(remedy is not None and bool(stale))
