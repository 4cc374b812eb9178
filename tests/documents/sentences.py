"""The sentences of a document's prose. To list the longest of all documents: python -m tests.documents.sentences"""

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
MOST_WORDS = 40

GENERATED = re.compile(r"<!-- (evidence:\S+|speed:\S+|theory:\S+|walk) -->.*?<!-- /\1 -->", re.DOTALL)
LEFT_OUT = (
    re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE),  # blocks of code
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"^\|.*$", re.MULTILINE),  # tables
    re.compile(r"!\[[^\]]*\]\([^)]*\)"),
    re.compile(r"^:::.*(?:\n {4}.*)*", re.MULTILINE),  # the site's references
)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"`[^`]*`")
NOT_AN_END = re.compile(r"\b(e\.g|i\.e|cf|vs|al|No|Fig|eq)\.")
UNIT = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)|^#+ .*$", re.MULTILINE)  # paragraphs, items, headings
END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=\S)")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")


def sentences(text: str) -> list[str]:
    """What is prose in a Markdown document, sentence by sentence. A code in backticks counts as one word."""
    text = GENERATED.sub("\n\n", text)
    for pattern in LEFT_OUT:
        text = pattern.sub("\n\n", text)
    text = CODE.sub("`x`", LINK.sub(r"\1", text))
    text = NOT_AN_END.sub(r"\1", text)
    found = []
    for unit in UNIT.split(text):
        prose = " ".join(ITEM.sub("", unit).split())
        if prose:
            found += [sentence for sentence in END.split(prose) if sentence]
    return found


def words(sentence: str) -> int:
    """Signs such as × and numbers count as words too; dashes alone do not."""
    return sum(any(character.isalnum() for character in part) for part in sentence.split())


def too_long(text: str) -> list[str]:
    return [sentence for sentence in sentences(text) if words(sentence) > MOST_WORDS]


def documents() -> list[Path]:
    return [CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
        (CHECKOUT / "docs").glob("*.md")
    )


if __name__ == "__main__":
    for path in documents():
        for sentence in too_long(path.read_text()):
            print(f"{path.relative_to(CHECKOUT)}: {words(sentence)} words: {sentence}")
