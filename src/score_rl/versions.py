"""Which versions produced something."""

from importlib import metadata

NOT_INSTALLED = "not installed"  # what runs from its source without an installation


def version_of(package: str) -> str:
    """The installed one, or NOT_INSTALLED."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return NOT_INSTALLED
