"""Short names for methods on a page, and what each stands for.

`SCORE (beta=0.1, bc_decay=0.96, critics=9)` fits into no legend. A page calls it `SCORE 3`, and one table says why.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from score_rl.report.page_text import as_number
from score_rl.report.results import Group, algorithm_title

LONGEST = 24  # characters of a name that needs no shorter one


@dataclasses.dataclass(frozen=True)
class SettingsTable:
    """What the short names stand for: a line for each, a column for each setting in which they differ."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Any]]]

    def said(self, name: str) -> str:
        """What one of the names stands for, in a few words."""
        values = dict(self.rows)[name]
        return ", ".join(
            f"{column} {as_number(value)}"
            for column, value in zip(self.columns, values, strict=True)
            if value is not None
        )


def with_short_names(groups: Sequence[Group]) -> list[Group]:
    """The same groups. Where one name of an algorithm is long, its groups with settings are numbered instead."""
    keys: dict[str, str] = {}
    for algorithm in dict.fromkeys(group.algorithm for group in groups):
        labels = list(dict.fromkeys(group.label for group in groups if group.algorithm == algorithm and group.settings))
        if any(len(label) > LONGEST for label in labels):
            title = algorithm_title(algorithm)
            keys |= {label: f"{title} {number}" for number, label in enumerate(labels, start=1)}
    return [dataclasses.replace(group, key=keys.get(group.label, "")) for group in groups]


def settings_table(groups: Sequence[Group]) -> SettingsTable | None:
    """None where every name says its settings itself."""
    named = {group.key: group for group in reversed(groups) if group.key}
    if not named:
        return None
    shown = [named[key] for key in dict.fromkeys(group.key for group in groups if group.key)]
    columns = list(dict.fromkeys(name for group in shown for name in group.settings))
    columns = [name for name in columns if len(shown) == 1 or len({repr(g.settings.get(name)) for g in shown}) > 1]
    remarks = ["remark"] if any(group.remark for group in shown) else []
    rows = [
        (group.key, [*(group.settings.get(name) for name in columns), *([group.remark] if remarks else [])])
        for group in shown
    ]
    return SettingsTable([*columns, *remarks], rows)
