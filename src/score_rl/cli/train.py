"""`score train`."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_origin

import tyro
from rich.markup import escape
from rich.table import Table

from score_rl.cli.terminal import OUT, parse, plus_minus
from score_rl.errors import InputError


@dataclasses.dataclass(frozen=True)
class TrainArguments:
    """Train data sets × settings × seeds as one compiled program, and judge the policies as they learn.

    Without options: SCORE for 20,000 updates on a replica of halfcheetah-medium that is collected on this
    machine, a few minutes on two cores. The paper trains 1,000,000 updates: on a GPU, that is minutes too.

    Examples:
      score train
      score train --dataset replica:hopper-medium --seeds 0 1 2 3 4 --steps 1000000 --out runs/hopper
      score train --dataset d4rl:hopper-medium-v2 --config.beta 0.1 0.2 0.5 --config.bc-decay 0.96 0.98
      score train --dataset my_logs.hdf5 --environment none --hold-out 0.1
      score train --resume runs/hopper
      score train --resume runs/hopper --steps 2000000
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
    """Go on with the experiment in this folder, to the bit. Everything else is taken from there, but more --steps
    make it longer, also where it is finished."""
    transitions: int | None = None
    """Rows to use: of a replica so many are recorded, D4RL's own size unless given; of a file so many are taken, whole
    episodes spread over all of it."""
    hold_out: float | None = None
    """Keep this share of the trajectories from training, such as 0.1: `score judge` judges by them."""
    data_seed: int = 0
    """Seed of a replica's collection."""
    environment: str | None = None
    """Where to judge: a task, a Gymnasium id, or none. Taken from the data unless given."""
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
    tensorboard: bool = True
    """Write TensorBoard files too."""
    quiet: bool = False
    """Print only the final table."""


def train_command(arguments: Sequence[str]) -> int:
    groups = settings_types(_value_of(arguments, "--algorithm") or "score")
    fields = [(name, shown_as, kind()) for name, (shown_as, kind) in groups.items()]
    both = dataclasses.make_dataclass("Train", fields, bases=(TrainArguments,), frozen=True)
    asked: Any = parse(both, arguments, "score train", TrainArguments.__doc__)
    from score_rl.run.launch import resume, train

    if asked.resume is not None:
        _refuse_beside_resume(arguments)
        steps = asked.steps if _value_of(arguments, "--steps") is not None else None
        experiment = resume(asked.resume, steps=steps, quiet=asked.quiet)
    else:
        options = {
            field.name: getattr(asked, field.name)
            for field in dataclasses.fields(TrainArguments)
            if field.name not in ("resume", "dataset")
        }
        settings = {name: value for group in groups for name, value in vars(getattr(asked, group)).items()}
        # What is typed counts, also where it repeats a default: it goes over what is preset for a data set.
        typed = {a.split("=")[0].removeprefix("--config.").replace("-", "_") for a in arguments if "--config." in a}
        config = {name: list(value) for name, value in settings.items() if name in typed}
        experiment = train(list(asked.dataset), config=config, **options)
    OUT.print(results_table(experiment))
    OUT.print(f"Run folder: {experiment.path}", soft_wrap=True)
    return 0


def settings_types(algorithm: str) -> dict[str, tuple[Any, type]]:
    """The algorithm's settings as options that take one value or several, with their help and defaults.

    One type for each group of settings, in the order in which they are shown, beside how the group is shown.
    """
    from score_rl.algorithms.registry import get_algorithm
    from score_rl.algorithms.settings import grouped

    chosen = get_algorithm(algorithm)
    types: dict[str, tuple[Any, type]] = {}
    for number, (heading, members) in enumerate(grouped(chosen.Config).items()):
        name = f"settings_{number}"
        kind = dataclasses.make_dataclass(name, [_swept(field) for field in members], frozen=True)
        kind.__doc__ = "Several values of one setting: all combinations are trained."
        types[name] = (Annotated[kind, tyro.conf.arg(name=f"{chosen.title}, {heading}:")], kind)
    return types


def _swept(field: dataclasses.Field[Any]) -> tuple[str, Any, Any]:
    """The field of a setting that takes several values."""
    compound = get_origin(field.type) is tuple
    kind: Any = str if compound else field.type
    default = ",".join(map(str, cast("tuple[int, ...]", field.default))) if compound else field.default
    shown_as = tyro.conf.arg(name=f"config.{field.name}", prefix_name=False, help=field.metadata["help"])
    return field.name, Annotated[tuple[kind, ...], shown_as], (default,)


def _refuse_beside_resume(arguments: Sequence[str]) -> None:
    taken = ("--resume", "--steps", "--quiet")
    others = [a for a in arguments if a.startswith("--") and a.split("=")[0] not in taken]
    if others:
        raise InputError(f"--resume takes everything but --steps from the folder; leave out {', '.join(others)}.")


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
        data = experiment.record.datasets[run.dataset].to_json()
        behaviour = plus_minus(data.get(f"behaviour_{key}"), data.get(f"behaviour_{key}_std"))
        mine = metrics.of(run.id)
        learned = plus_minus(mine.last(f"evaluation/{key}"), mine.last(f"evaluation/{key}_std"))
        status = run.status
        state = status.state + (", doubtful" if status.warning is not None else "")
        table.add_row(escape(run.id), f"{status.step:,}", behaviour, learned, state)
    return table
