"""Runs beside each other: which records are of one run, what tells two runs apart, and who is averaged with whom."""

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.algorithms.presets import preset
from score_rl.algorithms.settings import SCHEDULED_FOR, schedules
from score_rl.errors import InputError
from score_rl.report.folders import find_folders, read_folder
from score_rl.report.published import Printed, printed
from score_rl.report.results import Group, RunResult

FEW = 2  # settings that may differ before names leave out the defaults


def gather(paths: Iterable[Path | str]) -> list[RunResult]:
    """All runs of the experiments in these folders or anywhere below them, each folder once."""
    folders: dict[Path, Path] = {}
    for path in map(Path, paths):
        for folder in find_folders(path):
            folders.setdefault(folder.resolve(), folder)
    runs = [run for folder in folders.values() for run in read_folder(folder)]
    return tell_apart(runs)


# What else can tell two runs of one algorithm on one data set apart, beside their settings.
_BESIDE_SETTINGS = {
    "steps": lambda run: run.steps,
    "physics": lambda run: run.request.get("physics", "d4rl"),
    "precision": lambda run: run.request.get("precision", "float32"),
    "episodes": lambda run: run.request.get("eval_episodes"),
    "judged in": lambda run: run.environment,
    "rows": lambda run: run.data.get("rows"),
    "data": lambda run: str(run.data.get("checksum"))[:8],
}


def tell_apart(results: Sequence[RunResult]) -> list[RunResult]:
    """The same runs, their `settings` filled with whatever differs between runs that would else be averaged.

    A setting counts where it differs on one data set: the presets of different data sets do not. One that a record
    does not name came later, and has its default there; where many differ, defaults go without saying. Runs that agree
    in everything and even in their seed come from different folders and are kept apart by those.
    """
    configs = [{**_usual(run.algorithm), **run.config} for run in results]
    names: dict[str, list[str]] = {}
    for algorithm, of_one in _places(results, lambda run: run.algorithm).items():
        names[algorithm] = []
        for mine in _collect(of_one, lambda place: results[place].dataset).values():
            for name in dict.fromkeys(name for place in mine for name in configs[place]):
                if name not in names[algorithm] and len({_key(configs[place].get(name)) for place in mine}) > 1:
                    names[algorithm].append(name)
    found = []
    for run, config in zip(results, configs, strict=True):
        usual = _usual(run.algorithm) if len(names[run.algorithm]) > FEW else {}
        told = [name for name in names[run.algorithm] if name not in usual or _key(config[name]) != _key(usual[name])]
        told = [name for name in told if not _goes_with_length(run, name, config[name])]
        found.append({name: config.get(name) for name in told})
    for (_, _), places in _places(results, lambda run: (run.algorithm, run.dataset)).items():
        for name, value in _BESIDE_SETTINGS.items():
            known = {place: told for place in places if (told := value(results[place])) is not None}
            if len(set(known.values())) > 1:
                for place, told in known.items():
                    found[place][name] = told
    settled = [dataclasses.replace(run, settings=mine) for run, mine in zip(results, found, strict=True)]
    for places in _places(settled, _group_key).values():
        if len({settled[place].seed for place in places}) < len(places):
            labels = short_names([settled[place].folder for place in places])
            for place in places:
                run = settled[place]
                settled[place] = dataclasses.replace(run, settings={**run.settings, "folder": labels[run.folder]})
    return settled


def _goes_with_length(run: RunResult, name: str, value: Any) -> bool:
    """Whether this is a schedule that is as much shorter than usual as the run is: its length says it."""
    usual = _usual(run.algorithm).get(name)
    return name in _scheduled(run.algorithm) and usual is not None and value * SCHEDULED_FOR == usual * run.steps


@functools.cache
def _usual(algorithm: str) -> Mapping[str, Any]:
    """An algorithm's defaults, as records hold them; nothing where this version does not know it."""
    from score_rl.algorithms.registry import get_algorithm
    from score_rl.store.records import config_json

    try:
        return config_json(get_algorithm(algorithm).Config())
    except InputError:
        return {}


@functools.cache
def _scheduled(algorithm: str) -> frozenset[str]:
    """Its settings that count updates of a run of a certain length."""
    from score_rl.algorithms.registry import get_algorithm

    try:
        return frozenset(schedules(get_algorithm(algorithm).Config))
    except InputError:
        return frozenset()


def paper_cell(found: Group) -> Printed | None:
    """What the paper prints for this group: nothing where it differs from others in a setting the paper did not run."""
    return None if unusual(found.runs[0], found.settings) else printed(found.algorithm, found.dataset)


def unusual(run: RunResult, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings that are not the authors', but for schedules."""
    usual = {**_usual(run.algorithm), **preset(run.algorithm, run.dataset, run.task)}
    told = {name: value for name, value in settings.items() if name in usual and name not in _scheduled(run.algorithm)}
    return {name: value for name, value in told.items() if _key(value) != _key(usual[name])}


def short_names(folders: Iterable[Path]) -> dict[Path, str]:
    """Folders without what all of their paths begin and end with."""
    parts = {folder: folder.parts for folder in dict.fromkeys(folders)}
    if len(parts) < 2:
        return {folder: str(folder) for folder in parts}
    for end in (slice(1, None), slice(None, -1)):
        edge = 0 if end.start else -1
        while len({mine[edge] for mine in parts.values()}) == 1 and all(len(mine) > 1 for mine in parts.values()):
            parts = {folder: mine[end] for folder, mine in parts.items()}
    return {folder: str(Path(*mine)) for folder, mine in parts.items()}


def distinct(results: Sequence[RunResult]) -> list[RunResult]:
    """Each run once: one that several kept tables hold, or that was given with the experiment it came from.

    The same run has the same name, settings and data in an experiment begun at the same second by the same code, and
    every value that two records of it share is the same to the digits that are kept.
    """
    found: dict[str, list[RunResult]] = {}
    for run in results:
        what = [run.algorithm, run.dataset, run.name, run.seed, run.steps, run.created, run.provenance.get("code")]
        facts = [run.config, run.data.get("checksum"), run.status]
        same = found.setdefault(_key([*what, *facts]), [])
        if run.created is None or not any(_agree(run, other) for other in same):
            same.append(run)
    kept = {id(run) for same in found.values() for run in same}
    return [run for run in results if id(run) in kept]


def _agree(one: RunResult, other: RunResult) -> bool:
    """Whether two records of a run say the same wherever both speak."""
    for name in one.curves.keys() & other.curves.keys():
        mine, theirs = (dict(zip(*run.curves[name], strict=True)) for run in (one, other))
        if any(not np.isclose(mine[step], theirs[step], rtol=1e-5) for step in mine.keys() & theirs.keys()):
            return False
    return True


def group(results: Sequence[RunResult]) -> list[Group]:
    """Algorithm × data set × differing settings, in the order in which they first appear."""
    return [
        Group(runs[0].algorithm, runs[0].dataset, runs[0].settings, tuple(runs))
        for runs in _collect(results, _group_key).values()
    ]


def by_dataset(groups: Sequence[Group]) -> dict[str, list[Group]]:
    return _collect(groups, lambda group: group.dataset)


def by_method(groups: Sequence[Group]) -> dict[str, list[Group]]:
    return _collect(groups, lambda group: group.method)


def _group_key(run: RunResult) -> tuple[str, ...]:
    return (run.algorithm, run.dataset, *(f"{name}={_key(value)}" for name, value in run.settings.items()))


def _collect(items: Iterable[Any], key: Any) -> dict[Any, list[Any]]:
    collected: dict[Any, list[Any]] = {}
    for item in items:
        collected.setdefault(key(item), []).append(item)
    return collected


def _places(items: Sequence[Any], key: Any) -> dict[Any, list[int]]:
    return _collect(range(len(items)), lambda place: key(items[place]))


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
