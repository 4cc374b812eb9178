"""The blocks of code in the documents, and what a document says of them.

Each block of Python or shell runs in the tests (`test_blocks.py`), in the order of its document, unless a line above it
says otherwise:

    <!-- block: not run, it needs an NVIDIA GPU -->        with the reason
    <!-- block: run by tests/deploy/test_documented.py --> another test runs it
    <!-- block: shortened with --steps 20 -->              `score train` gets these options instead of its own
    <!-- block: changed with 10_000 to 20 -->              a number is replaced first; several with "and"

`<!-- blocks: run by tests/end_to_end/test_extending.py -->` says it of all blocks of a document.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.documents.sentences import CHECKOUT

RUN = {"python": "python", "bash": "bash", "sh": "bash"}  # languages, and what runs them
SHOWN = {"text", "json", "csv", "toml", "pycon", "http", "yaml"}  # languages that nothing runs
BLOCK = re.compile(
    r"^(?:<!-- block: (?P<mark>[^\n]*?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
ALL = re.compile(r"^<!-- blocks: (run by tests/\S+\.py) -->$", re.MULTILINE)
MARKS = {
    "not run": re.compile(r"not run, (.{8,})"),
    "run by": re.compile(r"run by (tests/\S+\.py)"),
    "shortened": re.compile(r"shortened with (--.*)"),
    "changed": re.compile(r"changed with (.*)"),
}


@dataclass(frozen=True)
class Block:
    """One block of a document."""

    document: str
    line: int
    language: str
    text: str
    kind: str  # of its mark; empty: it runs as it is
    about: str  # what the mark says

    @property
    def where(self) -> str:
        return f"{self.document}:{self.line}"

    def as_run(self) -> str:
        """The text that the tests run."""
        if self.kind == "shortened":
            return "\n".join(shortened(line, self.about) for line in self.text.splitlines())
        if self.kind == "changed":
            text = self.text
            for change in self.about.split(" and "):
                before, after = change.split(" to ")
                assert before in text, f"{self.where} says that {before!r} is changed, but has none"
                text = text.replace(before, after)
            return text
        return self.text


def blocks(document: str) -> Iterator[Block]:
    """All blocks of a document, in order."""
    text = (CHECKOUT / document).read_text()
    of_all = ALL.search(text)
    for match in BLOCK.finditer(text):
        kind, about = understood(
            match["mark"] or (of_all[1] if of_all else ""), f"{document}:{text.count(chr(10), 0, match.start()) + 1}"
        )
        line = text.count("\n", 0, match.start("text"))
        yield Block(document, line, match["language"], match["text"], kind, about)


def understood(mark: str, where: str) -> tuple[str, str]:
    """The kind of a mark, and what it says."""
    for kind, pattern in MARKS.items():
        match = pattern.fullmatch(mark)
        if match:
            return kind, match[1]
    assert not mark, f"{where}: {mark!r} is none of {', '.join(MARKS)} with what belongs to it"
    return "", ""


def shortened(line: str, options: str) -> str:
    """A `score train` with these options, which take the place of its own; any other line stays."""
    if not line.startswith("score train") or "--resume" in line:
        return line
    given = shlex.split(options)
    replaced = {word for word in given if word.startswith("--")}
    kept: list[str] = []
    dropping = False
    for word in shlex.split(line, comments=True):
        if word.startswith("--"):
            dropping = word in replaced
        if not dropping:
            kept.append(word)
    return shlex.join([*kept, *given])


def documents() -> list[str]:
    """All documents with blocks, by path in the repository. README has tests of its own (tests/test_readme.py)."""
    paths = [CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
    return [str(Path(path).relative_to(CHECKOUT)) for path in paths if BLOCK.search(path.read_text())]
