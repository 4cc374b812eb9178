"""A check that cannot fail is no check: deliberate errors in the theory's code, each caught by its test."""

from pathlib import Path

import pytest

from tests.paper.theory.mutations import CHECKOUT, MUTATIONS, SAMPLE, THEORY, Copy, survivors


def test_every_error_of_the_list_can_still_be_made() -> None:
    """Its old text stands in the code exactly once, its name is its own, and its test exists."""
    assert len(MUTATIONS) >= 40
    assert len({mutation.error for mutation in MUTATIONS}) == len(MUTATIONS)
    for mutation in MUTATIONS:
        text = (CHECKOUT / THEORY / mutation.file).read_text(encoding="utf-8")
        assert text.count(mutation.old) == 1, mutation.error
        assert mutation.new not in (mutation.old, text), mutation.error
        module, _, function = mutation.test.partition("::")
        assert f"def {function.partition('[')[0]}(" in (Path(__file__).parent / module).read_text(encoding="utf-8")


def test_a_sample_of_errors_is_caught(tmp_path: Path) -> None:
    assert survivors([mutation for mutation in MUTATIONS if mutation.error in SAMPLE], tmp_path) == []


@pytest.mark.slow
def test_every_error_is_caught(tmp_path: Path) -> None:
    copy = Copy(tmp_path / "untouched")
    for test in sorted({mutation.test for mutation in MUTATIONS}):
        assert copy.passes(test), f"{test} fails without any error"
    assert survivors(MUTATIONS, tmp_path / "mutated") == []
