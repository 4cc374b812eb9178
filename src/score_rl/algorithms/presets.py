"""Settings that an algorithm's authors chose for single data sets: data, not code.

For each algorithm `presets.json` has a list of {match, settings, source}. `match` is a pattern for the data set's short
name, such as `hopper-*` or `*-medium-expert*`. All entries that match apply. A later one overrides an earlier one. A
user's own settings override them all.
"""

import json
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any


@cache
def _presets() -> dict[str, list[dict[str, Any]]]:
    return json.loads((resources.files("score_rl.algorithms") / "presets.json").read_text())


def presets_of(algorithm: str) -> list[dict[str, Any]]:
    """All entries of an algorithm: match, settings, source."""
    return _presets().get(algorithm, [])


def preset(algorithm: str, dataset: str, task: str | None = None) -> dict[str, Any]:
    """The settings in which the authors of `algorithm` depart from its defaults on this data set.

    `task` counts where the data set's name does not begin with it.
    """
    short = dataset.split(":")[-1].replace("_", "-")
    if task is not None and not short.startswith(task):
        short = f"{task}-{short}"
    chosen: dict[str, Any] = {}
    for entry in presets_of(algorithm):
        if fnmatchcase(short, entry["match"]):
            chosen |= entry["settings"]
    return chosen
