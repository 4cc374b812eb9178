"""`score train`."""

import dataclasses
import itertools
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

import tyro

from score_rl.cli.machines import machines_of
from score_rl.cli.options import HELP_ALL, asks_for_help, documented, metavar, parse
from score_rl.cli.terminal import OUT
from score_rl.errors import InputError

COMMON = (  # what --help shows; --help-all shows the rest too
    *(
        "algorithm",
        "dataset",
        "seeds",
        "steps",
        "eval_every",
        "out",
        "resume",
        "hold_out",
        "environment",
        "on",
        "quiet",
    ),
    "settings_0",
)


@dataclasses.dataclass(frozen=True)
class TrainArguments:
    """Train data sets × settings × seeds as one compiled program, and judge the policies as they learn.

    Without options: SCORE for 20,000 updates on a replica of halfcheetah-medium that is collected on this
    machine, a few minutes on two cores. The paper trains 1,000,000 updates: on a GPU, that is minutes too.

    Examples:
      score train
      score train --dataset replica:hopper-medium --seeds 0 1 2 --steps 1e6
      score train --dataset d4rl:hopper-medium-v2 --config.beta 0.1 0.2 0.5
      score train --dataset logs.hdf5 --environment none --hold-out 0.1
      score train --dataset logs.hdf5 --algorithm score iql bc
      score train --resume runs/hopper
      score train --resume runs/hopper --steps 2e6
      score train --dataset logs.hdf5 --seeds 0 1 2 3 --on ray
    """

    algorithm: tuple[str, ...] = ("score",)
    """What to train, several one after the other; `score algorithms` lists them. Of several, --config.SETTING goes to
    all that have it, and --config.ALGORITHM.SETTING to one. One of your own is package.module:ALGORITHM."""
    dataset: tuple[str, ...] = ("replica:halfcheetah-medium",)
    """Data sets: replica:NAME, d4rl:NAME, ogbench:NAME, minari:ID, or HDF5 files. `score data list` lists the names;
    `score data import` makes a file of a table."""
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
    """Folder of the experiment; runs/ALGORITHMS-DATA-TIME unless given."""
    resume: Path | None = None
    """Go on with the experiment in this folder, to the bit. Everything else is taken from there, but more --steps
    make it longer, also where it is finished."""
    strict: bool = False
    """With --resume: refuse to go on with other code, libraries or devices than those that trained before."""
    transitions: int | None = None
    """Rows to use: of a replica so many are recorded, D4RL's own size unless given; of a file so many are taken, whole
    episodes spread over all of it."""
    hold_out: float | None = None
    """Keep this share of the trajectories from training, such as 0.1: `score judge` judges by them."""
    data_seed: int = 0
    """Seed of a replica's collection."""
    environment: str | None = None
    """Where to judge: a task, a Gymnasium id, module:Id-v0 for one that a module of yours registers, or none. Taken
    from the data unless given."""
    least_usable: float = 0.5
    """Refuse data of which a smaller share of the rows has a next observation: such rows are mostly not in order."""
    action_bounds: tuple[float, ...] | None = None
    """LOW HIGH of all actions, or LOW HIGH of each, where the data does not say and they are not ±1."""
    physics: Literal["d4rl", "stock"] = "d4rl"
    """MuJoCo as D4RL was recorded with, or as it is today."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """What goes into the critics' matrix products; all else is float32. auto: bfloat16 on NVIDIA's GPUs (Ampere
    and newer), and on a CPU that has instructions for it (AMX, AVX-512's) with the methods that gain by it there; else
    float32."""
    checkpoint_minutes: float = 1.0
    """Time between checkpoints; 0 writes one after every row of metrics."""
    memory_limit: float | None = None
    """GiB of the device to use; all that is free unless given. Runs that do not fit train in several fleets."""
    keep_best: bool = False
    """Keep the policy with the best evaluation too, for `score evaluate --step best`. The last one stays the result."""
    tensorboard: bool = True
    """Write TensorBoard files too."""
    on: str | None = None
    """Train on a cluster: ray, ray:ADDRESS, slurm, or processes:N on this machine. Here unless given; with --resume
    too. docs/cluster.md explains it."""
    task: tuple[str, ...] = ()
    """What each task asks of the cluster, as KEY=VALUE: gpus=1 cpus=8 memory=32 of Ray, sbatch's options of SLURM."""
    quiet: bool = False
    """Print only the final table."""


def train_command(arguments: Sequence[str]) -> int:
    from score_rl.algorithms.registry import algorithm_name, import_algorithm

    algorithms = [algorithm_name(name) for name in _values_of(arguments, "--algorithm") or ["score"]]
    for name in algorithms:
        import_algorithm(name)
    rest, own = _settings_of_one(arguments, algorithms)
    groups = settings_types(algorithms)
    fields = [(name, shown_as, kind()) for name, (shown_as, kind) in groups.items()]
    both = dataclasses.make_dataclass("Train", fields, bases=(TrainArguments,), frozen=True)
    _teach(both, arguments, algorithms)
    asked: Any = parse(both, rest, "score train", TrainArguments.__doc__)
    from score_rl.run.launch import resume, train

    if asked.resume is not None:
        _refuse_beside_resume(arguments)
        steps = asked.steps if _values_of(arguments, "--steps") else None
        experiment = resume(
            asked.resume, steps=steps, strict=asked.strict, quiet=asked.quiet,
            on=machines_of(asked.on, asked.task, asked.quiet),
        )  # fmt: skip
    else:
        if asked.strict:
            raise InputError("--strict is about going on; give --resume with the folder of an experiment.")
        options = {
            field.name: getattr(asked, field.name)
            for field in dataclasses.fields(TrainArguments)
            if field.name not in ("resume", "strict", "dataset", "algorithm", "on", "task")
        }
        options["on"] = machines_of(asked.on, asked.task, asked.quiet)
        config = _typed_settings(asked, groups, rest) | own
        _refuse_bare_widths(config, algorithms)
        experiment = train(list(asked.dataset), algorithm=algorithms, config=config, **options)
    from score_rl.cli.results import results_tables

    OUT.print(results_tables(experiment, OUT.width))
    OUT.print(f"Run folder: {experiment.path}", soft_wrap=True)
    if experiment.spec.hold_out is not None:
        judge = f"score judge {shlex.quote(str(experiment.path))}"
        OUT.print(f"To compare the policies on what was held out: {judge}", soft_wrap=True)
    return 0


def _teach(kind: type, arguments: Sequence[str], algorithms: Sequence[str]) -> None:
    """Print the help that is asked for and end: what most people set, or all of it."""
    if HELP_ALL in arguments:
        parse(kind, ["--help"], "score train", TrainArguments.__doc__)
    elif asks_for_help(arguments):
        try:
            parse(documented(kind, only=COMMON), ["--help"], "score train", TrainArguments.__doc__)
        finally:
            from score_rl.algorithms.registry import get_algorithm

            more = len({field.name for field in dataclasses.fields(TrainArguments)} - {*COMMON})
            titles = " and ".join(get_algorithm(name).title for name in algorithms)
            print(f"`score train --help-all` shows {more} more options, and all settings of {titles}.")


def _typed_settings(asked: Any, groups: dict[str, Any], arguments: Sequence[str]) -> dict[str, Any]:
    """What is typed counts, also where it repeats a default: it goes over what is preset for a data set."""
    typed = {a.split("=")[0].removeprefix("--config.").replace("-", "_") for a in arguments if "--config." in a}
    settings = {name: value for group in groups for name, value in vars(getattr(asked, group)).items()}
    return {name: list(value) for name, value in settings.items() if name in typed}


def _refuse_bare_widths(config: dict[str, Any], algorithms: Sequence[str]) -> None:
    """256 128 would be two networks of one layer each. Whoever types that means 256,128."""
    from score_rl.algorithms.registry import get_algorithm

    fields = [field for name in algorithms for field in dataclasses.fields(get_algorithm(name).Config)]
    lists = {field.name for field in fields if get_origin(field.type) is tuple}
    for name, typed in config.items():
        values = list(map(str, typed))
        if name.rpartition(".")[2] not in lists or not any(map(str.isdecimal, values)):
            continue
        option = f"--config.{name.replace('_', '-')}"
        bare = [value for value in values if value.isdecimal()]
        layers = f"{option} {','.join(bare)}{'' if len(bare) > 1 else ','} for one network"
        networks = f", or {option} {', '.join(bare)}, for networks of one layer each" if len(bare) > 1 else ""
        raise InputError(f"{option} {' '.join(values)}: commas go between layers; write {layers}{networks}.")


def _settings_of_one(arguments: Sequence[str], algorithms: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """The arguments without those such as --config.iql.temperature 1 3, and what these say."""
    rest: list[str] = []
    mine: dict[str, list[str]] = {}
    into = rest
    for argument in arguments:
        if argument.startswith("--"):
            owner = argument.split("=")[0].removeprefix("--config.").rpartition(".")[0]
            own = argument.startswith("--config.") and owner != ""
            into = mine.setdefault(owner, []) if own else rest
            argument = argument.replace(f"--config.{owner}.", "--config.", 1) if own else argument
        into.append(argument)
    config: dict[str, Any] = {}
    for name, typed in mine.items():
        if name not in algorithms:
            raise InputError(f"--config.{name}. is for {name}, which is not trained here; is: {', '.join(algorithms)}.")
        groups = settings_types([name])
        fields = [(group, shown_as, kind()) for group, (shown_as, kind) in groups.items()]
        both = dataclasses.make_dataclass("Own", fields, frozen=True)
        asked: Any = parse(both, typed, f"score train --algorithm {name}", f"The settings of {name}.")
        config |= {f"{name}.{setting}": value for setting, value in _typed_settings(asked, groups, typed).items()}
    return rest, config


def settings_types(algorithms: Sequence[str]) -> dict[str, tuple[Any, type]]:
    """The algorithms' settings as options that take one value or several, with their help and defaults.

    One type for each group of settings, in the order in which they are shown, beside how the group is shown. Of several
    algorithms a setting is one option: it goes to all that have it.
    """
    from score_rl.algorithms.registry import get_algorithm
    from score_rl.algorithms.settings import HEADINGS, grouped

    chosen = [get_algorithm(algorithm) for algorithm in algorithms]
    titles = ", ".join(algorithm.title for algorithm in chosen)
    having: dict[str, dict[str, dataclasses.Field[Any]]] = {}  # the fields of a setting, by title of their algorithms
    heading_of: dict[str, str] = {}
    for algorithm in chosen:
        for heading, members in grouped(algorithm.Config).items():
            for field in members:
                having.setdefault(field.name, {})[algorithm.title] = field
                heading_of.setdefault(field.name, heading)
    types: dict[str, tuple[Any, type]] = {}
    for number, heading in enumerate(HEADINGS.values()):
        options = [_swept(fields, len(chosen)) for name, fields in having.items() if heading_of[name] == heading]
        if options:
            name = f"settings_{number}"
            kind = dataclasses.make_dataclass(name, options, frozen=True)
            kind.__doc__ = "Several values of one setting: all combinations are trained."
            types[name] = (Annotated[kind, tyro.conf.arg(name=f"{titles}, {heading}:")], kind)
    return types


def _swept(fields: dict[str, dataclasses.Field[Any]], algorithms: int) -> tuple[str, Any, Any]:
    """A setting that takes several values, as one option for all algorithms that have it."""
    field = next(iter(fields.values()))
    # Where a name stands for other things in other methods, `train` refuses it; as text it reaches `train`.
    compound = get_origin(field.type) is tuple or len({str(other.type) for other in fields.values()}) > 1
    kind: Any = str if compound else field.type
    default = _as_typed(field.default)
    named: dict[str, Any] = {"name": f"config.{field.name}", "prefix_name": False, "metavar": metavar(tuple[kind, ...])}
    shown_as = tyro.conf.arg(**named, help=field.metadata["help"])
    if algorithms > 1:
        text = " ".join(
            f"{title} (default {_as_typed(f.default)}): {f.metadata['help']}." for title, f in fields.items()
        )
        shown_as = tyro.conf.arg(**named, help=text, help_behavior_hint="")
    return field.name, Annotated[tuple[kind, ...], shown_as], (default,)


def _as_typed(default: Any) -> Any:
    """A default as it is typed: 256,256."""
    return ",".join(map(str, default)) if isinstance(default, tuple) else default


def _refuse_beside_resume(arguments: Sequence[str]) -> None:
    taken = ("--resume", "--steps", "--strict", "--quiet", "--on", "--task")
    others = [a for a in arguments if a.startswith("--") and a.split("=")[0] not in taken]
    if others:
        raise InputError(
            f"--resume takes everything but --steps, --on and --task from the folder; leave out {', '.join(others)}."
        )


def _values_of(arguments: Sequence[str], flag: str) -> list[str]:
    """What is typed behind a flag, up to the next one."""
    for number, argument in enumerate(arguments):
        if argument == flag:
            return list(itertools.takewhile(lambda value: not value.startswith("--"), arguments[number + 1 :]))
        if argument.startswith(flag + "="):
            return [argument.split("=", 1)[1]]
    return []
