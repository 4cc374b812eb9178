"""What a job is: a method with settings, updates, seeds and data sets, written METHOD:UPDATES:SEEDS:DATA.

METHOD may have settings after it (`td3-bc,alpha=1.0`). DATA is `table` (all fifteen), `medium` (the three), or names
with + between them. Medium data are collected anew with the policies inside D4RL's *_medium-v2.hdf5. Random data are
uniform. All others are replicas.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from score_rl.data.catalogue import load_dataset
from score_rl.data.recollect import recollect
from score_rl.data.sources.replica import KINDS

TASKS = ("halfcheetah", "hopper", "walker2d")


@dataclass(frozen=True)
class Job:
    """One training: runs of a method that are stored together."""

    text: str
    method: str
    settings: dict[str, Any]
    steps: int
    seeds: int
    datasets: tuple[str, ...]  # by the paper's names

    @classmethod
    def parse(cls, text: str) -> "Job":
        method, steps, seeds, data = text.split(":")
        name, settings = method_and_settings(method)
        return cls(text, name, settings, int(steps), int(seeds), tuple(dataset_names(data)))

    @property
    def folder(self) -> str:
        return folder_name(self.text)


@dataclass(frozen=True)
class DataFolder:
    """Where data sets come from, and where those that are collected go."""

    sources: Path  # D4RL's three *_medium-v2.hdf5, whole or as excerpts
    out: Path
    transitions: int | None = None  # rows of each data set; None is D4RL's number

    def source(self, name: str) -> str:
        """What `score train --dataset` is given; medium data are collected if they are not there yet."""
        if not name.endswith("-medium"):
            return stored_name(name)
        file = self.out / f"{stored_name(name)}.hdf5"
        if not file.exists():
            recollect(self.recorded(name), file, transitions=self.transitions or 1_000_000, seed=0)
        return str(file)

    def recorded(self, name: str) -> Path:
        """D4RL's file whose policy records a medium data set anew."""
        return self.sources / f"{name.replace('-', '_')}-v2.hdf5"

    def collect(self, names: Iterable[str]) -> None:
        """Have these data sets at hand, for processes that train at the same time."""
        for name in dict.fromkeys(names):
            load_dataset(self.source(name), transitions=self.transitions)


def dataset_names(data: str) -> list[str]:
    """The data sets of a job, by the paper's names."""
    kinds = {"table": KINDS, "medium": ("medium",)}.get(data)
    return data.split("+") if kinds is None else [f"{task}-{kind}" for kind in kinds for task in TASKS]


def stored_name(name: str) -> str:
    """What one of the paper's data sets is called in stored results."""
    return f"{name}-recollected" if name.endswith("-medium") else f"replica:{name}"


def folder_name(job: str) -> str:
    return re.sub(r"[:+,=_]", "-", job)


def method_and_settings(method: str) -> tuple[str, dict[str, Any]]:
    """`td3-bc,alpha=1.0` is TD3-BC with α = 1."""
    name, *settings = method.split(",")
    return name, setting_values(settings)


def setting_values(settings: Iterable[str]) -> dict[str, Any]:
    """`alpha=1.0` is a number, `hidden=64,64` stays a word that settings understand."""
    return {key: _value(text) for key, _, text in (setting.partition("=") for setting in settings)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text  # a word
