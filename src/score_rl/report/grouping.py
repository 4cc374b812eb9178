"""Which records are of one run, what tells two runs apart, and which runs are averaged."""

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.algorithms.presets import preset
from score_rl.algorithms.settings import SCHEDULED_FOR, schedules, without_effect
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
_BESIDE_SETTINGS: dict[str, Callable[[RunResult], Any]] = {
    "steps": lambda run: run.steps,
    "physics": lambda run: run.request.get("physics", "d4rl"),
    "precision": lambda run: run.request.get("precision", "float32"),
    "episodes": lambda run: run.request.get("eval_episodes"),
    "judged in": lambda run: run.environment,
    "rows": lambda run: run.data.get("rows"),
    "data": lambda run: (run.data.get("checksum") or "")[:8] or None,
}


def tell_apart(results: Sequence[RunResult]) -> list[RunResult]:
    """The same runs. Their `settings` name all in which they differ from runs that would else be averaged with them.

    - A setting counts where it differs on one data set: the presets of different data sets do not.
    - A setting that a record does not name came later than the record, and has its default there.
    - Where more than `FEW` settings differ, those at their default are left out.
    - Runs that agree in everything, the seed included, are kept apart by their folders.
    """
    configs = [{**_usual(run.algorithm), **run.config} for run in results]
    differing = _differing_settings(results, configs)
    settings = [
        {name: config.get(name) for name in _worth_naming(run, config, differing[run.algorithm])}
        for run, config in zip(results, configs, strict=True)
    ]
    for numbers in _numbers_by(results, lambda run: (run.algorithm, run.dataset)).values():
        for name, value_of in _BESIDE_SETTINGS.items():
            known = {number: value for number in numbers if (value := value_of(results[number])) is not None}
            if len(set(known.values())) > 1:
                for number, value in known.items():
                    settings[number][name] = value
    for number, run in enumerate(results):
        if run.chooses_settings:
            settings[number]["used"] = "to choose"  # never averaged with results
    return _repetitions_apart(
        [dataclasses.replace(run, settings=mine) for run, mine in zip(results, settings, strict=True)]
    )


def _differing_settings(results: Sequence[RunResult], configs: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """For each algorithm, the settings that differ between its runs on one data set."""
    differing: dict[str, list[str]] = {run.algorithm: [] for run in results}
    for (algorithm, _), numbers in _numbers_by(results, lambda run: (run.algorithm, run.dataset)).items():
        names = differing[algorithm]
        for name in dict.fromkeys(name for number in numbers for name in configs[number]):
            if name not in names and len({_text(configs[number].get(name)) for number in numbers}) > 1:
                names.append(name)
    return differing


def _worth_naming(run: RunResult, config: Mapping[str, Any], differing: Sequence[str]) -> list[str]:
    """Those of the differing settings that a run's group is called by."""
    usual = _usual(run.algorithm) if len(differing) > FEW else {}
    idle = _without_effect(run.algorithm, config)
    return [
        name
        for name in differing
        if name not in idle
        and (name not in usual or _text(config[name]) != _text(usual[name]))
        and not _goes_with_length(run, name, config[name])
    ]


def _repetitions_apart(results: Sequence[RunResult]) -> list[RunResult]:
    """The same runs; where one group has a seed twice, its folders are among its settings."""
    apart = list(results)
    for numbers in _numbers_by(results, _group_key).values():
        if len({results[number].seed for number in numbers}) < len(numbers):
            labels = short_names([results[number].folder for number in numbers])
            for number in numbers:
                run = results[number]
                apart[number] = dataclasses.replace(run, settings={**run.settings, "folder": labels[run.folder]})
    return apart


def _goes_with_length(run: RunResult, name: str, value: Any) -> bool:
    """Whether this is a schedule shortened by as much as the run is. The length of the run then says it already."""
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


def _without_effect(algorithm: str, config: Mapping[str, Any]) -> set[str]:
    """The settings that change nothing in this run: two runs that differ in them alone differ in nothing."""
    from score_rl.algorithms.registry import get_algorithm

    try:
        return without_effect(get_algorithm(algorithm).Config, config)
    except InputError:
        return set()


@functools.cache
def _scheduled(algorithm: str) -> frozenset[str]:
    """Its settings that count updates of a run of a certain length."""
    from score_rl.algorithms.registry import get_algorithm

    try:
        return frozenset(schedules(get_algorithm(algorithm).Config))
    except InputError:
        return frozenset()


def paper_cell(group: Group) -> Printed | None:
    """What the paper prints for this group; None where the group has a setting that the paper did not run."""
    return None if unusual(group.runs[0], group.settings) else printed(group.algorithm, group.dataset)


def unusual(run: RunResult, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings, without schedules, that are not the authors'."""
    usual = {**_usual(run.algorithm), **preset(run.algorithm, run.dataset, run.task)}
    told = {name: value for name, value in settings.items() if name in usual and name not in _scheduled(run.algorithm)}
    return {name: value for name, value in told.items() if _text(value) != _text(usual[name])}


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
    """Each run once, though several stored results, or an experiment and a stored result, hold it.

    Two records are of the same run where name, settings, data, code and the second of its beginning are the same, and
    so is every value that both have, to the digits that are stored.
    """
    found: dict[str, list[RunResult]] = {}
    for run in results:
        what = [run.algorithm, run.dataset, run.name, run.seed, run.steps, run.created, run.provenance.get("code")]
        facts = [run.config, run.data.get("checksum"), run.status]
        same = found.setdefault(_text([*what, *facts]), [])
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
    return (run.algorithm, run.dataset, *(f"{name}={_text(value)}" for name, value in run.settings.items()))


def _collect(items: Iterable[Any], key: Any) -> dict[Any, list[Any]]:
    collected: dict[Any, list[Any]] = {}
    for item in items:
        collected.setdefault(key(item), []).append(item)
    return collected


def _numbers_by(items: Sequence[Any], key: Any) -> dict[Any, list[int]]:
    """The items' numbers in the sequence, by the key of each."""
    return _collect(range(len(items)), lambda number: key(items[number]))


def _text(value: Any) -> str:
    """A value in a form that can be compared, whatever it is."""
    return json.dumps(value, sort_keys=True, default=str)
