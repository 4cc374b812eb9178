from importlib.metadata import version

from score_rl.versions import version_of


def test_nothing_fails_where_a_package_is_not_installed() -> None:
    """A source tree without an installation can record data and train."""
    assert version_of("numpy") == version("numpy")
    assert version_of("no-such-package") == "not installed"
