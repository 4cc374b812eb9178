"""Which versions produced something."""

from importlib import metadata


def version_of(package: str) -> str:
    """The installed one; what runs from its source without an installation is called not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
