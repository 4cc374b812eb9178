"""Files that earlier versions wrote, brought to the layout of `records`.

Format 1 (version 0.1.0) called a run's `position` its `place`, its `warning` a `doubt`, and the `trajectories` of a
data set `episodes`. Its status had no format.

Format 2 had one algorithm in a request, beside its settings, variants and precision.
"""

from typing import Any

OF_AN_ALGORITHM = ("settings", "variants", "precision")


def upgrade_experiment(stored: dict[str, Any], written_in: int) -> dict[str, Any]:
    """`experiment.json` of an earlier format as the present one has it."""
    if written_in == 1:
        stored = {
            **stored,
            "datasets": _renamed_in_all(stored.get("datasets"), "episodes", "trajectories"),
            "runs": _renamed_in_each(stored.get("runs"), "place", "position"),
        }
    return {**stored, "request": _with_algorithms(stored.get("request"))}


def _with_algorithms(request: Any) -> Any:
    """The one algorithm of a request, with what belongs to it."""
    if not isinstance(request, dict):
        return request
    mine = {name: request[name] for name in OF_AN_ALGORITHM if name in request}
    others = {name: value for name, value in request.items() if name not in (*OF_AN_ALGORITHM, "algorithm")}
    named = {"name": request["algorithm"]} if "algorithm" in request else {}
    return {**others, "algorithms": [{**named, **mine}]}


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
