"""What the columns of a data set are called, and their units.

Labels change nothing that is computed. They are stored with results, so that whoever uses a policy knows which number
goes where.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from score_rl.errors import InputError


@dataclass(frozen=True)
class Labels:
    """Names of observations and actions, in the order of their columns, and units by name."""

    observations: tuple[str, ...] | None = None
    actions: tuple[str, ...] | None = None
    units: Mapping[str, str] = field(default_factory=dict)

    def check(self, dataset: str, observation_dim: int, action_dim: int) -> None:
        """Refuse names that are not one to a column, and units of what has no such name."""
        for what, names, width in (
            ("observation", self.observations, observation_dim),
            ("action", self.actions, action_dim),
        ):
            if names is not None and len(names) != width:
                raise InputError(
                    f"{dataset}: {len(names)} {what} names were given for {width} {what}s: give one name each."
                )
            if names is not None and len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise InputError(f"{dataset}: two {what}s are called {twice!r}: give each its own name.")
        for text in (*(self.observations or ()), *(self.actions or ()), *self.units, *self.units.values()):
            if not text.isprintable():
                raise InputError(f"{dataset}: the name or unit {text!r} cannot be printed: use letters and signs.")

    def observation(self, column: int) -> str:
        """A column of the observations in a message: its number, and its name if it has one."""
        return _called(column, self.observations)

    def action(self, column: int) -> str:
        """A column of the actions in a message: its number, and its name if it has one."""
        return _called(column, self.actions)

    def to_json(self) -> dict[str, Any]:
        """What is known, as it is stored beside results."""
        names = {"observation_names": self.observations, "action_names": self.actions}
        return {key: list(value) for key, value in names.items() if value is not None} | (
            {"units": dict(self.units)} if self.units else {}
        )


NO_LABELS = Labels()


def _called(column: int, names: tuple[str, ...] | None) -> str:
    return str(column) if names is None else f"{column} ({names[column]})"
