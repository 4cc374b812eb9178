"""The folders that hold results, and the runs of one folder, whatever kind it is."""

from pathlib import Path

from score_rl.errors import InputError
from score_rl.report.results import RunResult, read_experiment
from score_rl.report.stored_results import read_stored


def find_folders(path: Path) -> list[Path]:
    """The folders with results at this path or below it."""
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise InputError(f"{path} {what}; give the folders that training wrote, or one above them.")
    if holds_results(path):
        return [path]
    found = sorted(below for below in path.rglob("*") if below.is_dir() and holds_results(below))
    for below in found:
        if below.is_symlink() and not below.resolve().is_relative_to(path.resolve()):
            raise InputError(f"{below} is a link to a folder elsewhere; name {below.resolve()} itself, or remove it.")
    if not found:
        raise InputError(
            f"{path} holds no results, nor does any folder below it (no experiment.json, no summary.json with "
            "curves.csv); give the folders that training wrote."
        )
    return found


def holds_results(folder: Path) -> bool:
    return (folder / "experiment.json").is_file() or (
        (folder / "summary.json").is_file() and (folder / "curves.csv").is_file()
    )


def read_folder(folder: Path) -> list[RunResult]:
    """The runs of one folder, of either kind."""
    return read_experiment(folder) if (folder / "experiment.json").is_file() else read_stored(folder)
