from importlib.metadata import version

import pytest

import score_rl
from score_rl.versions import version_of


def test_nothing_fails_where_a_package_is_not_installed() -> None:
    """A source tree without an installation can record data and train."""
    assert version_of("numpy") == version("numpy")
    assert version_of("no-such-package") == "not installed"


def test_the_package_says_its_version_and_its_public_names() -> None:
    assert score_rl.__version__ == version("score-rl")
    assert {*score_rl.__all__, "__version__"} <= set(dir(score_rl))
    for name in score_rl.__all__:
        assert getattr(score_rl, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = score_rl.trian
