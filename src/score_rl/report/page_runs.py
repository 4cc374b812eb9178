"""What a page says of single runs: how each stands, how fast it trained, and what produced it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.report.grouping import short_names
from score_rl.report.page_files import PageFiles
from score_rl.report.page_text import as_time, device_name, flat_facts
from score_rl.report.results import FINISHED, RETURN, SCORE, SPEED, RunResult

STATES = (FINISHED, "training", "waiting", "silent", "interrupted", "diverged", "failed", "missing")
MEANING = {
    "training": "still training",
    "waiting": "not started yet",
    "silent": "was training, then fell silent: probably killed; score train --resume goes on",
    "interrupted": "stopped on request; score train --resume goes on",
    "diverged": "its losses were no longer finite",
    "failed": "its experiment ended with an error",
    "missing": "asked for, never trained",
}


def reason(run: RunResult) -> str:
    """Why a run is in no mean."""
    if run.status == "failed" and run.error:
        return run.error
    seen = f"; last written {as_time(run.updated)}" if run.status in ("training", "silent") and run.updated else ""
    return MEANING[run.status] + seen


def notes_of(runs: Sequence[RunResult], names: Mapping[Path, str]) -> list[tuple[str, str]]:
    """What was doubtful before training began, each sentence once: the experiment and the sentence."""
    return list(dict.fromkeys((names[run.folder], note) for run in runs for note in run.notes))


def folder_names(folders: Iterable[Path]) -> dict[Path, str]:
    """What each experiment is called: its folder, with as much of the path as tells it from the others."""
    whole = {folder: folder.resolve() for folder in folders}
    names = short_names(whole.values())
    return {folder: names[path] if len(names) > 1 else path.name for folder, path in whole.items()}


def speeds(runs: Sequence[RunResult], names: Mapping[Path, str]) -> list[dict[str, Any]]:
    """How fast each program trained: the median over its windows, without the first, in which it warms up."""
    rows = []
    programs: dict[tuple[Path, int | None], list[RunResult]] = {}
    for run in runs:
        programs.setdefault((run.folder, run.fleet), []).append(run)
    for mine in programs.values():
        curves = [run.curves[SPEED].values for run in mine if SPEED in run.curves]
        if not curves:
            continue
        longest = max(curves, key=len)
        rate = float(np.median(longest[1:] if len(longest) > 1 else longest))
        rows.append(
            {
                "methods": list(dict.fromkeys(run.title for run in mine)),
                "folder": names[mine[0].folder],
                "fleet": mine[0].fleet,
                "several": sum(folder == mine[0].folder for folder, _ in programs) > 1 and mine[0].fleet is not None,
                "runs": len(mine),
                "rate": rate,
                "together": rate * len(mine),
                "thousand": 1000 / rate if rate else None,
                "device": device_name(mine[0].provenance),
            }
        )
    return rows


def experiments(runs: Sequence[RunResult], names: Mapping[Path, str], files: PageFiles) -> list[dict[str, Any]]:
    """Every folder with its request, data, versions and runs; its files are copied beside the page."""
    folders: dict[Path, list[RunResult]] = {}
    for run in runs:
        folders.setdefault(run.folder, []).append(run)
    shown = []
    for folder, mine in folders.items():
        shown.append(
            {
                "folder": str(folder),
                "name": names[folder],
                "algorithms": list(dict.fromkeys(run.title for run in mine)),
                "number": len(mine),
                "parts": [
                    _part([run for run in mine if run.title == title])
                    for title in dict.fromkeys(run.title for run in mine)
                ],
                "files": files.copy_raw(folder, names[folder]),
                "created": mine[0].created,
                "updated": as_time(mine[0].updated),
                "request": _requests(mine),
                "provenance": flat_facts(mine[0].provenance),
                "datasets": {run.dataset: flat_facts(run.data) for run in mine},
            }
        )
    return shown


def _part(runs: Sequence[RunResult]) -> dict[str, Any]:
    """The runs of one algorithm: the settings that they share, and those in which they differ."""
    settings = list(dict.fromkeys(setting for run in runs for setting in run.config))
    equal = {s: runs[0].config.get(s) for s in settings if len({str(run.config.get(s)) for run in runs}) == 1}
    return {
        "title": runs[0].title,
        "runs": runs,
        "metric": SCORE if any(SCORE in run.curves for run in runs) else RETURN,
        "config": equal,
        "differing": [setting for setting in settings if setting not in equal],
    }


def _requests(runs: Sequence[RunResult]) -> dict[str, Any]:
    """What was asked for; of each algorithm by its name where several differ."""
    asked = {run.title: flat_facts(run.request) for run in runs}
    names = list(dict.fromkeys(name for facts in asked.values() for name in facts))
    shown: dict[str, Any] = {}
    for name in names:
        values = {title: facts[name] for title, facts in asked.items() if name in facts}
        if len(values) == len(asked) and len({str(value) for value in values.values()}) == 1:
            shown[name] = next(iter(values.values()))
        elif name != "algorithm":
            shown |= {f"{title}: {name}": value for title, value in values.items()}
    return shown
