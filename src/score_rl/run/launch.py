"""From what is asked to what is trained: a new experiment, or one that goes on."""

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import jax
from rich.console import Console

from score_rl.algorithms.algorithm import Algorithm, cycle
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.engine.compilation import bfloat16_units
from score_rl.engine.memory import as_size, device_limit, split_fleet
from score_rl.engine.runs import Run, group_fleets
from score_rl.errors import InputError, Stopped, as_read, refuse_unwritable
from score_rl.nets.kernels.choice import kernel_memory
from score_rl.nets.precision import PRECISIONS, Precision
from score_rl.run.compiled_programs import keep_compiled_programs
from score_rl.run.expansion import expand_runs, run_record
from score_rl.run.experiment import Experiment
from score_rl.run.sources import (
    dataset_names,
    dataset_record,
    found_again,
    load_datasets,
    say_doubts,
    say_presets,
    say_schedules,
)
from score_rl.store.folder import Folder
from score_rl.store.lock import held
from score_rl.store.metrics import MetricsWriter
from score_rl.store.provenance import provenance
from score_rl.store.records import ExperimentRecord
from score_rl.store.request import ExperimentSpec, check_counts, default_eval_every, default_log_every

DEFAULT_DATASET = "replica:halfcheetah-medium"
DEFAULT_STEPS = 20_000


def train(
    dataset: str | Path | Sequence[str | Path] = DEFAULT_DATASET,
    *,
    algorithm: str = "score",
    seeds: int | Sequence[int] = 0,
    config: Mapping[str, Any] | None = None,
    variants: Sequence[Mapping[str, Any]] | None = None,
    steps: int = DEFAULT_STEPS,
    eval_every: int | None = None,
    eval_episodes: int = 10,
    log_every: int | None = None,
    out: Path | str | None = None,
    transitions: int | None = None,
    data_seed: int = 0,
    environment: str | None = None,
    action_bounds: tuple[float, ...] | None = None,
    physics: str = "d4rl",
    precision: str = "auto",
    checkpoint_minutes: float = 1.0,
    memory_limit: float | None = None,
    tensorboard: bool = True,
    quiet: bool = False,
) -> Experiment:
    """Train data sets × settings × seeds; a list among `config`'s values is swept over.

    What does not fit into the device's memory, or into `memory_limit` GiB, is trained in several fleets.

    >>> experiment = score_rl.train("replica:hopper-medium", config={"beta": [0.1, 0.2]}, seeds=[0, 1])

    Where all combinations would be too many, `variants` lists the settings, each over those of `config`:

    >>> experiment = score_rl.train("replica:hopper-medium", variants=[{}, {"beta": 0.0}, {"bc_weight": 0.0}])
    """
    chosen = get_algorithm(algorithm)
    settings = {name: tuple(value) if isinstance(value, list) else (value,) for name, value in (config or {}).items()}
    listed = tuple(dict(variant) for variant in variants) if variants is not None else ({},)
    turns = math.lcm(*(_turns(chosen, settings | {n: (v,) for n, v in variant.items()}) for variant in listed))
    check_counts(steps=steps, eval_every=eval_every, eval_episodes=eval_episodes, log_every=log_every)
    if eval_every is None:
        eval_every = default_eval_every(steps, log_every, turns)
    spec = ExperimentSpec(
        algorithm=algorithm,
        datasets=dataset_names(dataset),
        seeds=(seeds,) if isinstance(seeds, int) else tuple(seeds),
        settings=settings,
        steps=steps,
        eval_every=eval_every,
        eval_episodes=eval_episodes,
        log_every=log_every if log_every is not None else default_log_every(steps, eval_every, turns),
        transitions=transitions,
        data_seed=data_seed,
        environment=environment,
        action_bounds=action_bounds,
        physics=physics,
        precision=choose_precision(chosen, precision),
        checkpoint_minutes=checkpoint_minutes,
        variants=listed,
    )
    spec.check(turns)
    if memory_limit is not None and not 0 < memory_limit < math.inf:
        raise InputError(f"`memory_limit` is {memory_limit}; it must be a number of GiB, more than 0.")
    path = Path(out) if out is not None else _default_out(spec)
    refuse_unwritable(path)
    Folder.refuse_if_taken(path)
    console = Console(stderr=True)
    datasets = load_datasets(spec, quiet)
    runs = expand_runs(spec, chosen, datasets)
    if not quiet:
        say_doubts(runs, console)
        say_presets(runs, {*settings, *(name for variant in listed for name in variant)}, console)
        say_schedules(runs, steps, console)
    fleets = _fit_into_memory(group_fleets(runs), spec, memory_limit, console, quiet)
    where = {run.id: (f, p) for f, fleet in enumerate(fleets) for p, run in enumerate(fleet)}
    record = ExperimentRecord(
        request=spec,
        provenance=provenance(),
        datasets={dataset.name: dataset_record(dataset) for dataset in datasets},
        runs=tuple(run_record(run, *where[run.id]) for run in runs),
        began_in=str(Path.cwd()),
    )
    spec.to_json()  # refuse what cannot be stored before anything is written
    folder = Folder.create(path, record)
    _train_fleets(spec, fleets, folder, console, tensorboard=tensorboard, quiet=quiet)
    return Experiment(path)


def resume(path: Path | str, *, steps: int | None = None, tensorboard: bool = True, quiet: bool = False) -> Experiment:
    """Go on where the newest whole checkpoints of a folder stand; the result is that of an undisturbed run.

    More `steps` than were asked for make the experiment longer, finished or not: to what it would be had it begun
    with them and its `log_every` and `eval_every`. What it measured at its first end stays.
    """
    experiment = Experiment(path)
    spec, console = experiment.spec, Console(stderr=True)
    if steps is not None:
        spec = _longer(experiment, steps)
    found = tuple(found_again(name, experiment.record.began_in) for name in spec.datasets)
    datasets = load_datasets(dataclasses.replace(spec, datasets=found), quiet)
    for dataset in datasets:
        stored = experiment.record.datasets.get(dataset.name)
        checksum = None if stored is None else stored.checksum
        if checksum != dataset.checksum:
            raise InputError(
                f"{dataset.name} is not the data this experiment was started with (checksum {dataset.checksum[:12]}, "
                f"then {str(checksum)[:12]}); restore that file, or start a new experiment."
            )
    runs = expand_runs(spec, get_algorithm(spec.algorithm), datasets)
    fleets = _stored_fleets(experiment, runs)
    if spec.steps != experiment.spec.steps and not quiet:
        say_schedules(runs, spec.steps, console)
    if spec != experiment.spec:
        _store_longer(experiment, spec)
    _train_fleets(spec, fleets, experiment.folder, console, tensorboard=tensorboard, quiet=quiet)
    return Experiment(path)


def _longer(experiment: Experiment, steps: int) -> ExperimentSpec:
    """Its request with more updates."""
    before = experiment.spec.steps
    if steps < before:
        raise InputError(
            f"`steps` is {steps}, and {experiment.path} trains {before} updates; give more, or leave `steps` out."
        )
    spec = dataclasses.replace(experiment.spec, steps=steps)
    spec.check(math.lcm(*(cycle(run.algorithm, run.config) for run in experiment)))
    return spec


def _store_longer(experiment: Experiment, spec: ExperimentSpec) -> None:
    """The longer request, with the code, libraries and machine that go on from here."""
    folder, record = experiment.folder, experiment.record
    with held(folder.path):
        status = folder.status()
        status.state = "interrupted"
        for entry in status.runs.values():
            if entry.state == "finished":
                entry.state = "training"
        folder.write_status(status)
        longer = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **provenance()}
        earlier = record.provenance.get("longer", {})
        stamp = {"longer": {**earlier, f"{experiment.spec.steps} to {spec.steps} updates": longer}}
        folder.write_experiment(dataclasses.replace(record, request=spec, provenance={**record.provenance, **stamp}))


def _fit_into_memory(
    fleets: list[list[Run]], spec: ExperimentSpec, gibibytes: float | None, console: Console, quiet: bool
) -> list[list[Run]]:
    """Each fleet whole where it fits, else in parts."""
    keep_compiled_programs()
    device = jax.local_devices()[0]
    limit = device_limit(device, gibibytes)
    where = f"{device.device_kind}, limited by `memory_limit`" if limit.asked else device.device_kind
    parts: list[list[Run]] = []
    for fleet in fleets:
        split = split_fleet(fleet, spec.log_every, limit, precision=spec.precision)
        if split.alone is not None:
            raise InputError(
                f"one run needs {as_size(split.alone)} on {where}, where {as_size(split.allowed or 0)} may be used; "
                "give less data, a smaller batch or smaller networks, or raise `memory_limit`."
            )
        if len(split.parts) > 1 and not quiet:
            sizes = sorted({len(part) for part in split.parts}, reverse=True)
            message = (
                f"{len(fleet)} runs would need {as_size(split.whole or 0)} on {where}, where "
                f"{as_size(limit.bytes or 0)} are free: they are trained as {len(split.parts)} fleets of "
                f"{' or '.join(map(str, sizes))}, one after the other. The results are the same."
            )
            console.print(as_read(message), highlight=False)
        parts += split.parts
    return parts


def _stored_fleets(experiment: Experiment, runs: Sequence[Run]) -> list[list[Run]]:
    """The fleets as they were formed: their checkpoints are, whatever memory this machine has."""
    fleets: dict[int, list[Run]] = {}
    where = {run.id: (run.fleet, run.position) for run in experiment.record.runs}
    for run in sorted(runs, key=lambda run: where[run.id]):
        fleets.setdefault(where[run.id][0], []).append(run)
    return list(fleets.values())


def _train_fleets(
    spec: ExperimentSpec,
    fleets: list[list[Run]],
    folder: Folder,
    console: Console,
    *,
    tensorboard: bool,
    quiet: bool,
) -> None:
    from score_rl.run.training import FleetTrainer, StopRequest

    keep_compiled_programs()
    with held(folder.path):
        status = folder.status()
        status.state, status.error = "running", None
        writer = MetricsWriter(folder.path, tensorboard)
        stop = StopRequest()
        try:
            with stop.listening(console):
                for number, runs in enumerate(fleets):
                    FleetTrainer(number, runs, spec, folder, writer, status, console, stop, quiet=quiet).train()
            status.state = "finished"
        except (Stopped, KeyboardInterrupt):
            status.state = "interrupted"
            raise
        except BaseException as error:
            status.state, status.error = "failed", str(error)
            raise
        finally:
            writer.close()
            with contextlib.suppress(InputError):  # a full disk: the status stays that of the last checkpoint
                folder.write_status(status)


def choose_precision(algorithm: Algorithm, asked: str) -> Precision:
    """`auto`: bfloat16 where the algorithm allows it and a GPU has kernels for it or a CPU gains by it."""
    if asked == "auto":
        device = jax.local_devices()[0]
        on_cpu = device.platform == "cpu" and bfloat16_units() in algorithm.bfloat16_on
        quick = on_cpu or kernel_memory(device) > 0
        return "bfloat16" if quick and "bfloat16" in algorithm.precisions else "float32"
    if asked in PRECISIONS and asked not in algorithm.precisions:
        allowed = " or ".join(algorithm.precisions)
        raise InputError(
            f"{algorithm.title} cannot be trained in {asked}; leave `precision` out, or make it {allowed}."
        )
    return cast("Precision", asked)  # anything else is refused with the rest of the request


def _turns(algorithm: Algorithm, settings: Mapping[str, tuple[Any, ...]]) -> int:
    """The least number of updates that is whole cycles for every setting."""
    made = make_config(algorithm, {name: values[0] for name, values in settings.items()})
    turns = cycle(algorithm, made)
    for name, values in settings.items():
        for value in values[1:]:
            varied = make_config(algorithm, {n: v[0] for n, v in settings.items()} | {name: value})
            turns = math.lcm(turns, cycle(algorithm, varied))
    return turns


def _default_out(spec: ExperimentSpec) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    name = Path(spec.datasets[0].split(":")[-1]).stem
    first = Path("runs") / f"{spec.algorithm}-{name}-{stamp}"
    others = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))  # begun in the same second
    return next(path for path in itertools.chain([first], others) if not path.exists())
