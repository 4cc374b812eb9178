"""The `score` command: parses, calls, prints.

Heavy imports stay inside the commands, so that `score --help` answers at once.
"""

import dataclasses
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_origin

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from score_rl.errors import InputError, Stopped

OUT = Console(highlight=False)
T = TypeVar("T")
TRAINED_STOPPED = 130  # what shells use for Ctrl-C


# -- train -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class TrainArguments:
    """Train data sets × settings × seeds as one compiled program, and judge the policies as they learn.

    Without options: SCORE for 20,000 updates on a replica of halfcheetah-medium that is collected on this
    machine, a few minutes on two cores. The paper trains 1,000,000 updates: on a GPU, that is minutes too.

    Examples:
      score train
      score train --dataset replica:hopper-medium --seeds 0 1 2 3 4 --steps 1000000 --out runs/hopper
      score train --dataset d4rl:hopper-medium-v2 --config.beta 0.1 0.2 0.5 --config.bc-decay 0.96 0.98
      score train --dataset my_logs.hdf5 --environment none
      score train --resume runs/hopper
    """

    algorithm: str = "score"
    """What to train; `score algorithms` lists them."""
    dataset: tuple[str, ...] = ("replica:halfcheetah-medium",)
    """Data sets: replica:NAME, d4rl:NAME or HDF5 files; `score data list` lists the names."""
    seeds: tuple[int, ...] = (0,)
    """One run for each seed."""
    steps: int = 20_000
    """Updates of each run; the paper uses 1,000,000."""
    eval_every: int | None = None
    """Judge the policies after so many updates; 5,000 unless given. Training goes on meanwhile."""
    eval_episodes: int = 10
    """Episodes per judgement (paper: 10)."""
    log_every: int | None = None
    """Updates per row of training metrics, and between two looks at Ctrl-C; about 200 rows a curve unless given."""
    out: Path | None = None
    """Folder of the experiment; runs/ALGORITHM-DATA-TIME unless given."""
    resume: Path | None = None
    """Go on with the experiment in this folder, to the bit. Everything else is taken from there."""
    transitions: int | None = None
    """Rows of a replica; D4RL's own size unless given."""
    data_seed: int = 0
    """Seed of a replica's collection."""
    environment: str | None = None
    """Where to judge: a task, a Gymnasium id, or none. Taken from the data unless given."""
    action_bounds: tuple[float, float] | None = None
    """Lowest and highest action, where the data does not say and they are not ±1."""
    physics: Literal["d4rl", "stock"] = "d4rl"
    """MuJoCo as D4RL was recorded with, or as it is today."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """What goes into the critics' matrix products; all else is float32. auto: bfloat16 on a GPU, and for SCORE and CQL
    on a CPU with AMX; else float32."""
    checkpoint_minutes: float = 1.0
    """Time between checkpoints; 0 writes one after every row of metrics."""
    memory_limit: float | None = None
    """GiB of the device to use; all that is free unless given. Runs that do not fit train in several fleets."""
    tensorboard: bool = True
    """Write TensorBoard files too."""
    quiet: bool = False
    """Print only the final table."""


def sweep_type(algorithm: str) -> type:
    """The algorithm's settings as options that take one value or several, with their help and defaults."""
    from score_rl.algorithms.registry import get_algorithm

    Config = get_algorithm(algorithm).Config
    fields: list[Any] = []
    for field in dataclasses.fields(Config):
        compound = get_origin(field.type) is tuple
        kind: Any = str if compound else field.type
        default = ",".join(map(str, cast("tuple[int, ...]", field.default))) if compound else field.default
        help_text = tyro.conf.arg(help=field.metadata["help"])
        fields.append((field.name, Annotated[tuple[kind, ...], help_text], (default,)))
    made = dataclasses.make_dataclass(f"{algorithm}_settings", fields, frozen=True)
    made.__doc__ = f"Settings of {algorithm}. Several values of one: all combinations are trained."
    return made


def train_command(arguments: Sequence[str]) -> int:
    algorithm = _value_of(arguments, "--algorithm") or "score"
    Settings = sweep_type(algorithm)
    both = dataclasses.make_dataclass("Train", [("config", Settings, Settings())], bases=(TrainArguments,), frozen=True)
    asked: Any = _parse(both, arguments, "score train", TrainArguments.__doc__)
    from score_rl.fleet.experiment import resume, train

    if asked.resume is not None:
        others = [a for a in arguments if a.startswith("--") and a.split("=")[0] not in ("--resume", "--quiet")]
        if others:
            raise InputError(f"--resume takes everything from the folder; leave out {', '.join(others)}.")
        experiment = resume(asked.resume, quiet=asked.quiet)
    else:
        # What is said counts, also where it repeats a default: it goes over what is preset for a data set.
        said = {argument.split("=")[0].removeprefix("--config.").replace("-", "_") for argument in arguments}
        swept = {
            field.name: list(getattr(asked.config, field.name))
            for field in dataclasses.fields(Settings)
            if field.name in said
        }
        options = {
            field.name: getattr(asked, field.name)
            for field in dataclasses.fields(TrainArguments)
            if field.name not in ("resume", "dataset")
        }
        experiment = train(list(asked.dataset), config=swept, **options)
    OUT.print(results_table(experiment))
    OUT.print(f"Run folder: {experiment.path}", soft_wrap=True)
    return 0


def _value_of(arguments: Sequence[str], flag: str) -> str | None:
    for number, argument in enumerate(arguments):
        if argument == flag and number + 1 < len(arguments):
            return arguments[number + 1]
        if argument.startswith(flag + "="):
            return argument.split("=", 1)[1]
    return None


def results_table(experiment: Any) -> Table:
    """Behaviour policy and last policy of every run, side by side."""
    metrics = experiment.metrics
    normalised = any(row.name == "evaluation/score" for row in metrics)
    key, unit = ("score", "normalised score") if normalised else ("return", "return")
    table = Table(title=f"{unit}, mean ± std over episodes", title_justify="left")
    for heading in ("run", "updates"):
        table.add_column(heading, overflow="fold")
    for heading in ("behaviour policy", "learned policy", "state"):
        table.add_column(heading, justify="right")
    for run in experiment:
        data = experiment.about["datasets"][run.dataset]
        behaviour = _plus_minus(data.get(f"behaviour_{key}"), data.get(f"behaviour_{key}_std"))
        mine = metrics.of(run.id)
        learned = _plus_minus(mine.last(f"evaluation/{key}"), mine.last(f"evaluation/{key}_std"))
        status = run.status
        table.add_row(escape(run.id), f"{status['step']:,}", behaviour, learned, status["state"])
    return table


def _plus_minus(mean: float | None, std: float | None) -> str:
    return "not judged" if mean is None else f"{mean:.1f} ± {std:.1f}"


# -- evaluate --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class EvaluateArguments:
    """Judge the last policies of an experiment in fresh episodes.

    Examples:
      score evaluate runs/hopper --episodes 100
      score evaluate runs/hopper --physics stock --run replica-hopper-medium,seed=0
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """Folder of the experiment."""
    episodes: int = 10
    """Episodes for each run."""
    physics: Literal["d4rl", "stock"] | None = None
    """Other physics than in training: how much does the policy depend on it?"""
    run: tuple[str, ...] = ()
    """Only these runs."""
    seed: int = 0
    """Another seed, other episodes."""


def evaluate_command(arguments: Sequence[str]) -> int:
    asked = _parse(EvaluateArguments, arguments, "score evaluate")
    from score_rl.fleet.experiment import load

    experiment = load(asked.folder)
    runs = [experiment[name] for name in asked.run] or list(experiment)
    table = Table(title=f"{asked.episodes} episodes each, mean ± std over episodes", title_justify="left")
    for heading in ("run", "updates"):
        table.add_column(heading, overflow="fold")
    for heading in ("return", "normalised score", "episode length"):
        table.add_column(heading, justify="right")
    with OUT.status("Judging ...") as status:
        for number, run in enumerate(runs):
            status.update(f"Judging {escape(run.id)} ({number + 1} of {len(runs)}) ...")
            if run.status["state"] == "diverged":
                table.add_row(escape(run.id), f"{run.step:,}", "diverged", "", "")
                continue
            numbers = run.evaluate(asked.episodes, physics=asked.physics, seed=asked.seed).summary(0)
            table.add_row(
                escape(run.id),
                f"{run.step:,}",
                _plus_minus(numbers["return"], numbers["return_std"]),
                _plus_minus(numbers["score"], numbers["score_std"]) if "score" in numbers else "no reference",
                f"{numbers['episode_length']:.0f}",
            )
    OUT.print(table)
    return 0


# -- report ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class ReportArguments:
    """Make a page of stored runs: scores beside the paper's, curves, aggregates, run time, provenance.

    Nothing is trained. The page opens in any browser, without a network; beside it lie its figures (SVG, PDF),
    its tables (CSV, LaTeX) and the files it was made of. Runs that still train are shown as they stand: call it
    again for news. Runs that failed, diverged or are missing are listed, and are in no mean.

    Examples:
      score report runs --out page
      score report runs/hopper runs/walker2d --out page
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders that training wrote, or folders above them."""
    out: Path
    """Folder of the page; new, empty, or an earlier report, which is replaced."""


def report_command(arguments: Sequence[str]) -> int:
    asked = _parse(ReportArguments, arguments, "score report")
    if not asked.runs:
        raise InputError("score report needs at least one folder of runs, such as: score report runs --out page.")
    with OUT.status("Reading the runs ...") as status:
        from score_rl.report.page import write_report

        page = write_report(asked.runs, asked.out, say=lambda message: status.update(escape(message)))
    OUT.print(f"Page: {page}", soft_wrap=True, markup=False)
    return 0


# -- algorithms ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class AlgorithmsArguments:
    """List the algorithms; with a name, its settings, their defaults and where the defaults come from."""

    name: Annotated[str | None, tyro.conf.Positional] = None
    """An algorithm's name."""


def algorithms_command(arguments: Sequence[str]) -> int:
    asked = _parse(AlgorithmsArguments, arguments, "score algorithms")
    from score_rl.algorithms.algorithm import Shapes, is_traced, network_parameters
    from score_rl.algorithms.registry import algorithm_names, get_algorithm
    from score_rl.envs.tasks import TASKS

    if asked.name is None:
        task = TASKS["halfcheetah"]
        shapes = Shapes(task.observation_dim, task.action_dim)
        table = Table("name", "method", "what it does", "characteristics")
        table.add_column(f"parameters on {task.name}", justify="right")
        for name in algorithm_names():
            algorithm = get_algorithm(name)
            count = f"{network_parameters(algorithm, shapes):,}"
            table.add_row(name, algorithm.title, algorithm.summary, ", ".join(algorithm.characteristics), count)
        OUT.print(table)
        return 0
    algorithm = get_algorithm(asked.name)
    table = Table("setting", "default", "what it is", "a sweep trains as", title=algorithm.title, title_justify="left")
    for field in dataclasses.fields(algorithm.Config):
        kind = "one fleet" if is_traced(field) else "several fleets"
        table.add_row(field.name, str(field.default), escape(field.metadata["help"]), kind)
    OUT.print(table)
    return 0


# -- data ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class DataList:
    """List the data sets that can be named, and which of them are on this machine."""


@dataclasses.dataclass(frozen=True)
class DataInfo:
    """Show a data set: dimensions, episodes, returns, coverage."""

    name: Annotated[str, tyro.conf.Positional]
    """replica:NAME, d4rl:NAME or a file."""
    transitions: int | None = None
    """Rows of a replica; D4RL's own size unless given."""
    seed: int = 0
    """Seed of a replica's collection."""
    action_bounds: tuple[float, float] | None = None
    """Lowest and highest action, where the data does not say and they are not ±1."""


@dataclasses.dataclass(frozen=True)
class DataBuild:
    """Collect a replica, or download a D4RL file, into the cache."""

    name: Annotated[str, tyro.conf.Positional]
    """replica:NAME or d4rl:NAME."""
    transitions: int | None = None
    """Rows of a replica; D4RL's own size unless given."""
    seed: int = 0
    """Seed of the collection."""


@dataclasses.dataclass(frozen=True)
class DataCheck:
    """Find everything that is wrong with a file. Exit code 2 if anything is."""

    file: Annotated[Path, tyro.conf.Positional]
    """An HDF5 file in D4RL's format."""


@dataclasses.dataclass(frozen=True)
class DataRecollect:
    """Collect afresh with the behaviour policy that a D4RL file stores."""

    file: Annotated[Path, tyro.conf.Positional]
    """A D4RL file with metadata/policy, such as hopper_medium-v2.hdf5."""
    out: Path
    """The file to write."""
    transitions: int = 1_000_000
    """Rows to collect."""
    seed: int = 0
    """Seed of the collection."""
    physics: Literal["d4rl", "stock"] = "d4rl"
    """MuJoCo as D4RL was recorded with, or as it is today."""


DATA_COMMANDS: dict[str, type] = {
    "list": DataList,
    "info": DataInfo,
    "build": DataBuild,
    "check": DataCheck,
    "recollect": DataRecollect,
}


def data_command(arguments: Sequence[str]) -> int:
    asked = _subcommand("data", DATA_COMMANDS, arguments)
    from score_rl.data.catalogue import dataset_names, load_dataset

    match asked:
        case DataList():
            table = Table()
            table.add_column("name", no_wrap=True)
            table.add_column("rows", justify="right", no_wrap=True)
            table.add_column("where it comes from", overflow="fold")
            table.add_column("here")
            for entry in dataset_names():
                table.add_row(entry.name, f"{entry.rows:,}", entry.origin, "yes" if entry.cached else "")
            OUT.print(table)
        case DataInfo():
            from score_rl.data.describe import describe

            dataset = load_dataset(
                asked.name, transitions=asked.transitions, seed=asked.seed, action_bounds=asked.action_bounds
            )
            OUT.print(describe(dataset))
        case DataBuild():
            dataset = load_dataset(asked.name, transitions=asked.transitions, seed=asked.seed)
            OUT.print(f"{dataset.name}: {len(dataset):,} rows, {len(dataset.episodes):,} episodes, {_place(dataset)}")
        case DataCheck():
            from score_rl.data.check import check_file

            findings = check_file(asked.file)
            for finding in findings:
                OUT.print(f"{finding.level}: {escape(finding.message)}", soft_wrap=True)
            wrong = [f for f in findings if f.level == "error"]
            if not findings:
                OUT.print(f"{asked.file}: nothing wrong")
            return 2 if wrong else 0
        case DataRecollect():
            from score_rl.data.collect import recollect

            dataset = recollect(
                asked.file, asked.out, transitions=asked.transitions, seed=asked.seed, physics=asked.physics
            )
            OUT.print(f"{asked.out}: {len(dataset):,} rows, {len(dataset.episodes):,} episodes", soft_wrap=True)
    return 0


def _place(dataset: Any) -> str:
    return str(dataset.source.get("path", ""))


# -- theory ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class TheoryList:
    """List the studies: which statement of the paper each one checks."""


@dataclasses.dataclass(frozen=True)
class TheoryRun:
    """Check one statement of the paper: print the numbers, write the figures."""

    name: Annotated[str, tyro.conf.Positional]
    """A study's name, or all."""
    out: Path = Path("theory")
    """Folder for figures and numbers; each study gets its own inside."""
    seed: int = 0
    """Seed of the random problems and data."""


def theory_command(arguments: Sequence[str]) -> int:
    asked = _subcommand("theory", {"list": TheoryList, "run": TheoryRun}, arguments)
    from score_rl.theory.studies import STUDIES, run_study

    if isinstance(asked, TheoryList):
        table = Table("name", "in the paper", "what it shows")
        for study in STUDIES.values():
            table.add_row(study.name, escape(study.paper), escape(study.summary))
        OUT.print(table)
        return 0
    for name in STUDIES if asked.name == "all" else [asked.name]:
        with OUT.status(f"Running {escape(name)} ..."):
            result = run_study(name, asked.out / name, seed=asked.seed)
        table = Table(*result.columns, title=escape(result.title), title_justify="left")
        for row in result.rows:
            table.add_row(*(escape(str(cell)) for cell in row))
        OUT.print(table)
        for verdict in result.verdicts:
            OUT.print(escape(verdict), soft_wrap=True)
        for file in result.files:
            OUT.print(str(file), soft_wrap=True)
    return 0


# -- experiment ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class ExperimentList:
    """List the paper's tables and figures, each with its cost as runs × updates at every scale."""


@dataclasses.dataclass(frozen=True)
class ExperimentRun:
    """Make tables and figures of the paper: train what they need, draw, tabulate, store.

    Several names share their runs: what more than one needs is trained once, and settings that allow it train as
    one compiled program. Call it again to go on after an interruption; what is finished is not trained again.

    Examples:
      score experiment run sweep-beta
      score experiment run ablation-bc ablation-pessimism sweep-beta --scale day
      score experiment run main-table --methods score td3-bc --datasets hopper-medium --scale paper --source d4rl
      score experiment run ablation-constraint --source my_hopper_log.hdf5
      score experiment run main-table aggregates profiles --from-stored benchmarks/results
      score experiment run all --scale day --plan
    """

    names: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Names from `score experiment list`, or all."""
    scale: str = "trial"
    """trial: minutes on two cores, proves nothing. day: hours on a GPU. paper: the full protocol."""
    source: tuple[str, ...] = ("replica",)
    """replica (recorded on this machine), d4rl (downloaded), or HDF5 files of your own."""
    out: Path = Path("experiments")
    """Folder for results, with the trained fleets in fleets/ below it."""
    from_stored: Path | None = None
    """Rebuild from kept results below this folder, without training; benchmarks/results where none is named."""
    methods: tuple[str, ...] = ()
    """Only these, for the experiments that compare methods."""
    datasets: tuple[str, ...] = ()
    """Other data sets than the experiment's own, such as walker2d-medium."""
    seeds: tuple[int, ...] = ()
    """Other seeds than the scale's."""
    steps: int | None = None
    """Another number of updates than the scale's."""
    plan: bool = False
    """Only say which fleets would be trained."""
    quiet: bool = False
    """Print only the results."""


EXPERIMENT_COMMANDS: dict[str, type] = {"list": ExperimentList, "run": ExperimentRun}


def experiment_command(arguments: Sequence[str]) -> int:
    asked = _subcommand("experiment", EXPERIMENT_COMMANDS, _with_default_folder(arguments))
    from score_rl.experiments.execution import cost, overview, rebuild, run
    from score_rl.experiments.plan import Request
    from score_rl.experiments.registry import EXPERIMENTS, get_experiment
    from score_rl.experiments.scales import SHOWN, get_scale

    if isinstance(asked, ExperimentList):
        table = Table(
            title="runs × updates at each scale; runs shared by several are trained once",
            title_justify="left",
            show_edge=False,
            pad_edge=False,
        )
        table.add_column("name", no_wrap=True)
        table.add_column("in the paper", overflow="fold")
        for scale in SHOWN:
            table.add_column(scale, justify="right", max_width=11)
        for experiment in EXPERIMENTS.values():
            costs = [cost(experiment, Request(get_scale(scale))) for scale in SHOWN]
            table.add_row(experiment.name, escape(experiment.paper), *costs)
        OUT.print(table)
        OUT.print(
            "Run one: score experiment run NAME \\[--scale trial|day|paper] \\[--source replica|d4rl|FILES]",
            soft_wrap=True,
        )
        return 0
    if not asked.names:
        raise InputError("say which experiment; `score experiment list` shows the names.")
    names = list(EXPERIMENTS) if "all" in asked.names else list(dict.fromkeys(asked.names))
    chosen = [get_experiment(name) for name in names]
    if asked.methods and not any(experiment.compares for experiment in chosen):
        raise InputError(f"--methods is for experiments that compare methods, and {', '.join(names)} compares none.")
    if (asked.datasets or asked.source != ("replica",)) and not any(experiment.on_data for experiment in chosen):
        raise InputError(
            f"--source and --datasets are for experiments on the paper's data, and {', '.join(names)} draws its own."
        )
    if asked.steps is not None and asked.steps < 2:
        raise InputError(f"--steps is {asked.steps}; it must be 2 or more.")
    request = Request(
        get_scale(asked.scale), asked.source, asked.out, asked.methods, asked.datasets, asked.seeds, asked.steps,
        asked.quiet,
    )  # fmt: skip
    request.check()
    console = Console(stderr=True, highlight=False)

    def say(message: str) -> None:
        if not asked.quiet:
            console.print(escape(message), soft_wrap=True)

    if asked.plan:
        OUT.print(_as_table(overview(chosen, request)))
        return 0
    made = rebuild(chosen, request, asked.from_stored, say) if asked.from_stored else run(chosen, request, say)
    for experiment in chosen:
        folder, result = made[experiment.name]
        for found in result.tables.values():
            if found.printed:
                OUT.print(_as_table(found, f"{experiment.name}: "))
        for remark in result.remarks:
            OUT.print(escape(remark), soft_wrap=True)
        if asked.from_stored is None and request.scale.small:
            OUT.print(request.proves, soft_wrap=True)
        OUT.print(f"Result folder: {folder}", soft_wrap=True)
    return 0


def _as_table(found: Any, before: str = "") -> Table:
    """Names that are too long are folded, never cut; one that is repeated from row to row is said once."""
    title = escape(before + found.title)
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    for column in found.columns:
        table.add_column(escape(column), overflow="fold")
    above = None
    for first, *others in found.rows:
        table.add_row("" if first == above else escape(str(first)), *(escape(str(cell)) for cell in others))
        above = first
    return table


def _with_default_folder(arguments: Sequence[str]) -> list[str]:
    """`--from-stored` without a folder means the results that a checkout of this project holds."""
    given = list(arguments)
    if "--from-stored" in given:
        place = given.index("--from-stored") + 1
        if place == len(given) or given[place].startswith("--"):
            given.insert(place, "benchmarks/results")
    return given


# -- all of them -----------------------------------------------------------------------------------------------------

COMMANDS: dict[str, tuple[Callable[[Sequence[str]], int], str]] = {
    "train": (train_command, "train policies from recorded data and judge them"),
    "evaluate": (evaluate_command, "judge trained policies in fresh episodes"),
    "report": (report_command, "make a page of stored runs: tables, curves, statistics, provenance"),
    "data": (data_command, "list, show, build, check and re-collect data sets"),
    "algorithms": (algorithms_command, "list the algorithms and their settings"),
    "experiment": (experiment_command, "make the paper's tables and figures"),
    "theory": (theory_command, "check the paper's statements on small problems"),
}

USAGE = """usage: score COMMAND [OPTIONS]

Offline reinforcement learning: learn a policy from recorded data, judge it, keep it.

{commands}

`score COMMAND --help` explains each. To begin: score train
"""


def _subcommand(group: str, types: dict[str, type], arguments: Sequence[str]) -> Any:
    if not arguments or arguments[0] in ("-h", "--help"):
        rows = "\n".join(f"  {name:<10} {(kind.__doc__ or '').splitlines()[0]}" for name, kind in types.items())
        print(f"usage: score {group} COMMAND [OPTIONS]\n\n{rows}\n\n`score {group} COMMAND --help` explains each.")
        raise SystemExit(0 if arguments else 2)
    if arguments[0] not in types:
        from score_rl.errors import unknown_name

        raise unknown_name(f"command of score {group}", arguments[0], types)
    return _parse(types[arguments[0]], arguments[1:], f"score {group} {arguments[0]}")


def _parse(kind: type[T], arguments: Sequence[str], program: str, text: str | None = None) -> T:
    """The arguments as `kind`; its docstring teaches."""
    return tyro.cli(kind, args=list(arguments), prog=program, description=inspect.cleandoc(text or kind.__doc__ or ""))


def main(arguments: Sequence[str] | None = None) -> None:
    """Exit code 0 when all went well, 2 for what the user can mend, 130 after Ctrl-C."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        rows = "\n".join(f"  {name:<12} {summary}" for name, (_, summary) in COMMANDS.items())
        print(USAGE.format(commands=rows))
        raise SystemExit(0 if arguments else 2)
    if arguments[0] == "--version":
        from importlib.metadata import version

        print(version("score-rl"))
        raise SystemExit(0)
    try:
        if arguments[0] not in COMMANDS:
            from score_rl.errors import unknown_name

            raise unknown_name("command", arguments[0], COMMANDS)
        raise SystemExit(COMMANDS[arguments[0]][0](arguments[1:]))
    except InputError as error:
        print(f"score: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except Stopped as stopped:
        print(f"score: {stopped}", file=sys.stderr)
        raise SystemExit(TRAINED_STOPPED) from None
    except KeyboardInterrupt:
        print("score: stopped.", file=sys.stderr)
        raise SystemExit(TRAINED_STOPPED) from None
