"""Small tables for tests, and what a plain loop over their sorted rows makes of them."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Row = Mapping[str, Any]
OBSERVED, ACTED = ("o1", "o2"), ("a1",)


class Transition(NamedTuple):
    """One step, as training should see it."""

    observation: tuple[float, ...]
    action: tuple[float, ...]
    reward: float
    next_observation: tuple[float, ...]
    terminal: bool


def write_csv(path: Path, rows: Sequence[Row]) -> Path:
    """The table as text: None is an empty cell."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow(["" if value is None else value for value in row.values()])
    return path


def log(lengths: Sequence[int], **changes: Any) -> list[dict[str, Any]]:
    """Episodes of these lengths, sorted; a value or a function of (episode, step) in `changes` replaces a column."""
    rows = []
    for episode, length in enumerate(lengths):
        for step in range(length):
            row: dict[str, Any] = {
                "trip": episode,
                "t": step,
                "o1": round(math.sin(episode + 0.3 * step), 4),
                "o2": 100.0 * episode + step,
                "a1": round(math.cos(step), 4),
                "r": -0.5 * step,
            }
            made = {key: value(episode, step) if callable(value) else value for key, value in changes.items()}
            rows.append(row | made)
    return rows


def sorted_episodes(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows by episode and time, the plain way."""
    episodes: dict[Any, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["trip"], row["t"])):
        episodes.setdefault(row["trip"], []).append(row)
    return list(episodes.values())


def treated(episode: Sequence[Row], missing: str) -> list[list[dict[str, Any]]]:
    """The pieces of an episode in which nothing is missing any more."""
    pieces: list[list[dict[str, Any]]] = [[]]
    known: dict[str, Any] = {}
    for row in episode:
        if missing == "forward":
            known |= {name: row[name] for name in (*OBSERVED, *ACTED) if row[name] is not None}
            row = {**row, **{name: known.get(name) for name in (*OBSERVED, *ACTED)}}
        if any(row[name] is None for name in (*OBSERVED, *ACTED, "r")):
            pieces.append([])
        else:
            pieces[-1].append(dict(row))
    return [piece for piece in pieces if piece]


def plain_transitions(rows: Sequence[Row], missing: str = "error") -> list[Transition]:
    """What a loop over sorted rows gives: the next observation is that of the next row. A terminal row needs none."""
    found = []
    for episode in sorted_episodes(rows):
        for piece in treated(episode, missing):
            for row, after in zip(piece, [*piece[1:], None], strict=True):
                terminal = bool(row.get("end"))
                if after is None and not terminal:
                    continue
                observation = numbers(row, OBSERVED)
                following = observation if after is None else numbers(after, OBSERVED)
                action, reward = numbers(row, ACTED), float(np.float32(row["r"]))
                found.append(Transition(observation, action, reward, following, terminal))
    return found


def numbers(row: Row, names: Sequence[str]) -> tuple[float, ...]:
    return tuple(float(np.float32(row[name])) for name in names)


def transitions(dataset: Any) -> list[Transition]:
    """Those of a data set, row for row."""
    columns = (dataset.observations, dataset.actions, dataset.rewards, dataset.next_observations, dataset.terminals)
    return [
        Transition(tuple(s.tolist()), tuple(a.tolist()), float(r), tuple(n.tolist()), bool(end))
        for s, a, r, n, end in zip(*columns, strict=True)
    ]
