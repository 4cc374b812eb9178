"""Files that earlier versions wrote, brought to the layout of `records`.

Format 1 (version 0.1.0) called a run's `position` its `place`, its `warning` a `doubt`, and the `trajectories` of a
data set `episodes`. Its status had no format.
"""

from typing import Any


def upgrade_experiment(stored: dict[str, Any]) -> dict[str, Any]:
    """`experiment.json` of format 1 as the present format has it."""
    return {
        **stored,
        "datasets": _renamed_in_all(stored.get("datasets"), "episodes", "trajectories"),
        "runs": _renamed_in_each(stored.get("runs"), "place", "position"),
    }


def upgrade_status(stored: dict[str, Any]) -> dict[str, Any]:
    """`status.json` of format 1 as the present format has it."""
    return {"state": "started", **stored, "runs": _renamed_in_all(stored.get("runs", {}), "doubt", "warning")}


def _renamed_in_all(objects: Any, before: str, now: str) -> Any:
    """A field of the named objects under its present name."""
    if not isinstance(objects, dict):
        return objects
    return dict(zip(objects, _renamed_in_each(list(objects.values()), before, now), strict=True))


def _renamed_in_each(objects: Any, before: str, now: str) -> Any:
    """A field of the listed objects under its present name.

    Anything that is not as expected stays: whoever reads the fields refuses it by name.
    """
    if not isinstance(objects, list):
        return objects
    return [
        {now if name == before else name: value for name, value in each.items()} if isinstance(each, dict) else each
        for each in objects
    ]
