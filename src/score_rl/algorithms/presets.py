"""Settings that an algorithm's authors chose per data set: data, not code.

`presets.json` holds, for an algorithm, a list of {match, settings, source}; `match` is a pattern for the data set's
short name, such as `hopper-*` or `*-medium-expert*`. All that match apply, later ones over earlier ones, and what
a user sets goes over all of them.
"""

import json
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any


@cache
def _presets() -> dict[str, list[dict[str, Any]]]:
    return json.loads((resources.files("score_rl.algorithms") / "presets.json").read_text())


def presets(algorithm: str) -> list[dict[str, Any]]:
    """All of an algorithm's: pattern, settings, source."""
    return _presets().get(algorithm, [])


def preset(algorithm: str, dataset: str, task: str | None = None) -> dict[str, Any]:
    """What the authors of `algorithm` set for this data set, beyond the defaults of its `Config`.

    Data of a `task` whose name does not say so get what holds for all data of the task.
    """
    short = dataset.split(":")[-1].replace("_", "-")
    if task is not None and not short.startswith(task):
        short = f"{task}-{short}"
    chosen: dict[str, Any] = {}
    for entry in presets(algorithm):
        if fnmatchcase(short, entry["match"]):
            chosen |= entry["settings"]
    return chosen
