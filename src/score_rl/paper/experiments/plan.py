"""What a declaration is made of: a request, the runs it asks for, and what is made of them."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from score_rl.algorithms.algorithm import cycle
from score_rl.algorithms.presets import preset
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import is_traced, make_config, schedules
from score_rl.data.catalogue import load_dataset, named_datasets
from score_rl.errors import InputError, unknown_name
from score_rl.paper.experiments.scales import Scale, scheduled
from score_rl.report.published import PAPER_STEPS, paper_dataset
from score_rl.report.results import RunResult
from score_rl.run.machines import Machines
from score_rl.store.records import config_json
from score_rl.store.request import default_log_every

FILES = (".hdf5", ".h5", ".hdf")
WHAT_THE_DATA_IS = {
    "replica": "Data: replicas of D4RL's sets, recorded by this project with policies of its own; not D4RL's files.",
    "d4rl": "Data: D4RL v2.",
    "files": "Data: the files that were given.",
}


@dataclasses.dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    scale: Scale
    source: tuple[str, ...] = ("replica",)
    out: Path = Path("experiments")
    methods: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    steps: int | None = None
    quiet: bool = False
    on: Machines | None = None  # where to train; None is here

    @property
    def kind(self) -> str:
        return self.source[0] if self.source in (("replica",), ("d4rl",)) else "files"

    @property
    def updates(self) -> int:
        return self.steps or self.scale.steps

    @property
    def chosen_seeds(self) -> tuple[int, ...]:
        return self.seeds or self.scale.seeds

    @property
    def proves(self) -> str:
        """What may be concluded, in a sentence that stands in the picture."""
        number = len(self.chosen_seeds)
        if self.scale.small or (self.updates, number) == (self.scale.steps, len(self.scale.seeds)):
            return self.scale.proves
        return (
            f"{self.updates:,} updates and {number} {'seed' if number == 1 else 'seeds'}, where the paper has "
            f"{PAPER_STEPS:,} and 5; λ's annealing is as long as the run."
        )

    def check(self) -> None:
        """Refuse a source or data sets that do not exist, before anything is trained."""
        if not self.source:
            raise InputError("--source is empty; give replica, d4rl or HDF5 files.")
        if self.kind == "files":
            for name in self.source:
                self._check_file(name)
            if self.datasets:
                raise InputError(
                    "--datasets picks among named data sets; with files as --source, give the files you want."
                )
            return
        known = [entry.name for entry in named_datasets()]
        for name in self.datasets:
            if self._named(name) not in known:
                named = [paper for paper in map(paper_dataset, known) if paper and self._named(paper) in known]
                raise unknown_name("data set", name, dict.fromkeys(named))

    def _check_file(self, name: str) -> None:
        path = Path(name)
        if name in WHAT_THE_DATA_IS:
            raise InputError(
                f"--source is {' '.join(self.source)}; it must be replica, d4rl or files, one of the three."
            )
        what = "it does not exist" if not path.exists() else "it is a folder" if path.is_dir() else ""
        if path.suffix not in FILES and not what:
            what = f"its name must end in {', '.join(FILES[:-1])} or {FILES[-1]}"
        if what:
            raise InputError(f"--source {name!r} is neither replica nor d4rl nor an HDF5 file: {what}.")

    def _named(self, name: str) -> str:
        """What `load_dataset` takes for one of the paper's names."""
        return f"replica:{name}" if self.kind == "replica" else f"d4rl:{name}-v2"

    def data(self, names: Sequence[str]) -> list[str]:
        """What `load_dataset` takes for these of the paper's names; with files as source, the files."""
        self.check()
        return list(self.source) if self.kind == "files" else [self._named(name) for name in self.datasets or names]

    def counterpart(self, name: str, names: Sequence[str]) -> str:
        """What `load_dataset` takes for one more data set beside those of `data`, such as a task's expert data."""
        if self.kind != "files":
            return self._named(name)
        for path in self.source:
            if paper_dataset(Path(path).stem) == name:
                return path
        raise InputError(f"--source has no file of {name}, which this experiment needs beside {', '.join(names)}.")


@dataclasses.dataclass(frozen=True)
class Wanted:
    """One run that an experiment needs."""

    algorithm: str
    dataset: str
    settings: tuple[tuple[str, Any], ...]
    seed: int
    steps: int
    eval_every: int
    eval_episodes: int
    transitions: int | None = None
    environment: str | None = None

    @property
    def log_every(self) -> int:
        """Every window ends with an evaluation or between two of them."""
        algorithm = get_algorithm(self.algorithm)
        return default_log_every(self.steps, self.eval_every, cycle(algorithm, self.config))

    @property
    def config(self) -> Any:
        return _config(self.algorithm, shown_name(self.dataset), self.settings)

    @property
    def shape(self) -> tuple[Any, ...]:
        """Runs that agree in this may train as one fleet, as far as can be told without their data."""
        config = self.config
        static = [(f.name, getattr(config, f.name)) for f in dataclasses.fields(config) if not is_traced(f)]
        plan = (self.steps, self.eval_every, self.eval_episodes, self.transitions, self.environment)
        return (self.algorithm, plan, *static)

    def key(self) -> str:
        """The same for runs that would be the same run."""
        config = {f.name: getattr(self.config, f.name) for f in dataclasses.fields(self.config)}
        plan = (self.steps, self.eval_every, self.eval_episodes, self.log_every, self.environment)
        return run_key(self.algorithm, data_identity(self.dataset, self.transitions), config, self.seed, plan)


def run_key(algorithm: str, data: str, config: Mapping[str, Any], seed: int, plan: Sequence[Any]) -> str:
    text = json.dumps([algorithm, data, dict(config), seed, list(plan)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def data_identity(name: str, transitions: int | None) -> str:
    """A named data set is what its name and size say; a file is its content."""
    return f"file|{_file_checksum(name)}" if Path(name).suffix in FILES else f"{name}|{transitions}"


@cache
def _file_checksum(name: str) -> str:
    return load_dataset(name, progress=False).checksum


@cache
def _config(algorithm: str, dataset: str, settings: tuple[tuple[str, Any], ...]) -> Any:
    return make_config(get_algorithm(algorithm), preset(algorithm, dataset) | dict(settings))


def shown_name(dataset: str) -> str:
    """What a data set will be called once it is loaded."""
    return Path(dataset).stem if Path(dataset).suffix in FILES else dataset


@dataclasses.dataclass(frozen=True)
class Variant:
    """One line of a figure."""

    label: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    algorithm: str = "score"

    def wanted(self, request: Request, dataset: str, seed: int, **plan: Any) -> Wanted:
        """A run of it: the scale's settings, and its own over them."""
        scale, algorithm = request.scale, get_algorithm(self.algorithm)
        steps, eval_every = request.updates, scale.eval_every
        if algorithm.counts_as > 1:
            steps, eval_every = max(2, steps // algorithm.counts_as), max(1, eval_every // algorithm.counts_as)
        known = {field.name for field in dataclasses.fields(algorithm.Config)}
        common = {name: value for name, value in scale.settings.items() if name in known}
        settings = common | scheduled(algorithm.Config(), request.updates) | dict(self.settings)
        options = {
            "steps": steps,
            "eval_every": min(eval_every, steps),
            "eval_episodes": scale.eval_episodes,
            "transitions": scale.transitions if request.kind == "replica" else None,
        } | plan
        return Wanted(self.algorithm, dataset, tuple(sorted(settings.items())), seed, **options)


@dataclasses.dataclass(frozen=True)
class Asked:
    """A run and the line of the figure that it belongs to."""

    label: str
    run: Wanted


@dataclasses.dataclass(frozen=True)
class Done:
    """A run that was trained, or read from a kept table."""

    label: str
    result: RunResult


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows under headings, for the terminal, CSV and LaTeX."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    printed: bool = True  # in the terminal; long ones are in their file only


@dataclasses.dataclass
class Presentation:
    """What an experiment comes to."""

    figures: dict[str, Any] = dataclasses.field(default_factory=dict)
    tables: dict[str, Table] = dataclasses.field(default_factory=dict)
    texts: dict[str, str] = dataclasses.field(default_factory=dict)  # other files by name
    numbers: dict[str, Any] = dataclasses.field(default_factory=dict)  # as JSON
    remarks: list[str] = dataclasses.field(default_factory=list)  # what a reader must know


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    paper: str  # which one
    finding: str  # what the paper concludes from it
    plan: Callable[[Request], list[Asked]]
    present: Callable[[Request, Sequence[Done]], Presentation]
    metrics: tuple[str, ...] = ("evaluation/score", "evaluation/return")  # kept beside the result
    prepare: Callable[[Request], None] = lambda request: None  # before its runs can be told
    stored: Callable[[Sequence[RunResult]], list[Done]] | None = None  # its runs among kept ones
    check_tools: Callable[[], Any] = lambda: None  # refuses if a library is missing that drawing needs
    compares: bool = False  # whether --methods means anything to it
    on_data: bool = True  # whether --source and --datasets do
    cost: Callable[[Request], str] | None = None  # where it is not the number of planned runs
    then: Callable[[Request, Sequence[Done]], list[Asked]] | None = None  # runs that depend on those
    mark: Callable[[Request, Sequence[Done]], Sequence[Done]] | None = None  # what runs are for, in their records
    note: Callable[[Request], str] | None = None  # what may be concluded, where the scale and source do not say it


def product(request: Request, variants: Sequence[Variant], datasets: Sequence[str], **plan: Any) -> list[Asked]:
    """Data sets × variants × seeds."""
    return [
        Asked(variant.label, variant.wanted(request, dataset, seed, **plan))
        for dataset in datasets
        for variant in variants
        for seed in request.chosen_seeds
    ]


def matching(variants: Sequence[Variant], results: Sequence[RunResult]) -> list[Done]:
    """Kept runs with the line they belong to: those that agree in every setting that tells the lines apart.

    A figure compares nothing else. Where runs on a data set differ in another setting, as those of several experiments
    do, the ones with its default are shown, and of several lengths or recordings of the data the one that has most
    lines; what differs after that is refused. A data set with one line compares nothing and is left out.
    """
    touched = {name for variant in variants for name in variant.settings}
    found: list[Done] = []
    for result in results:
        for variant in variants:
            if result.algorithm != variant.algorithm:
                continue
            defaults = get_algorithm(variant.algorithm).Config()
            expected = {name: variant.settings.get(name, getattr(defaults, name)) for name in touched}
            if all(
                _plain(result.config.get(name, getattr(defaults, name))) == _plain(v) for name, v in expected.items()
            ):
                found.append(Done(variant.label, result))
    shown: list[Done] = []
    for dataset in dict.fromkeys(done.result.dataset for done in found):
        here = [done for done in found if done.result.dataset == dataset]
        differing = _differences(here, touched)
        here = [done for done in here if _has_defaults(done.result, differing)] or here
        here = _fullest(here)
        if len({done.label for done in here}) < 2:
            continue
        for name, values in _differences(here, touched).items():
            raise InputError(
                f"the kept runs on {dataset} differ in {name} ({', '.join(values)}), which this figure does not "
                "compare; pick with --steps or --seeds, or name a folder with fewer results."
            )
        shown += here
    return shown


def _fullest(found: Sequence[Done]) -> list[Done]:
    """Those of one length on one recording that have more lines than any others; all of them where two have as many."""
    groups: dict[tuple[int, Any], list[Done]] = {}
    for done in found:
        groups.setdefault((done.result.steps, done.result.data.get("checksum")), []).append(done)
    lines = {key: len({done.label for done in group}) for key, group in groups.items()}
    fullest = [key for key, number in lines.items() if number == max(lines.values())]
    return groups[fullest[0]] if len(fullest) == 1 else list(found)


def _has_defaults(result: RunResult, names: Collection[str]) -> bool:
    """Whether these of its settings are the algorithm's own, schedules aside: those go with the length of a run."""
    usual = get_algorithm(result.algorithm).Config()
    mine = [name for name in names if hasattr(usual, name) and name not in schedules(usual)]
    return all(_plain(result.config.get(name, getattr(usual, name))) == _plain(getattr(usual, name)) for name in mine)


def _differences(found: Sequence[Done], touched: Collection[str]) -> dict[str, list[str]]:
    """What these runs disagree in, but for the seed and the settings that are compared."""
    seen: dict[str, dict[str, None]] = {}
    for result in (done.result for done in found):
        facts = {"updates": result.steps, "data": str(result.data.get("checksum"))[:8]}
        config = config_json(get_algorithm(result.algorithm).Config()) | dict(result.config)
        for name, value in {**facts, **{k: v for k, v in config.items() if k not in touched}}.items():
            seen.setdefault(name, {})[str(_plain(value))] = None
    return {name: list(values) for name, values in seen.items() if len(values) > 1}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
