"""No sentence of the documents must be read twice: none has over 40 words."""

from pathlib import Path

import pytest

from tests.documents.sentences import CHECKOUT, MOST_WORDS, documents, sentences, too_long, words


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_no_sentence_is_too_long(path: Path) -> None:
    found = too_long(path.read_text())
    assert not found, f"{path.relative_to(CHECKOUT)} has {words(found[0])} words in one sentence: {found[0]}"


def test_what_counts_as_a_sentence() -> None:
    long = "Word " * MOST_WORDS
    assert too_long(f"- A short one. {long}and more.\n- Another.") == [f"{long}and more."]
    assert not too_long(f"{long.strip()}. {long.strip()}.")
    assert not too_long(f"```\n{long * 2}\n```\n\n| {long * 2} |\n\n<!-- evidence:a -->{long * 2}<!-- /evidence:a -->")
    assert len(too_long(f"A list:\n\n  - {long * 2}")) == 1, "also within a list"


def test_where_sentences_end() -> None:
    text = (
        "## A heading\nHopper ends at 101.4 ± 0.2, as in [the table](a.md#b). It `acts. Now`. 75 runs do, e.g. here!\n"
    )
    assert sentences(text) == ["Hopper ends at 101.4 ± 0.2, as in the table.", "It `x`.", "75 runs do, e.g here!"]
    assert words("mean ± std – of `x`") == 4
