"""An experiment as Python sees it: train one, open one, and use what came out."""

import contextlib
import dataclasses
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from rich.console import Console

from score_rl.algorithms.algorithm import Algorithm, Shapes, cycle, make_config
from score_rl.algorithms.registry import get_algorithm
from score_rl.data.catalogue import load_dataset
from score_rl.data.dataset import BOUND_TOLERANCE, Dataset
from score_rl.data.doubts import doubts, large_observations
from score_rl.data.treatment import Treatment
from score_rl.envs import normalised_score
from score_rl.errors import InputError, Stopped, refuse_unwritable, unknown_name
from score_rl.fleet.acting import acting, host_device
from score_rl.fleet.checkpoint import DamagedError, checkpoints, from_arrays, load_checkpoint
from score_rl.fleet.compilation import bfloat16_units, keep_compiled_programs, kernel_memory
from score_rl.fleet.holding import held
from score_rl.fleet.judging import judge_runs
from score_rl.fleet.memory import GIBIBYTE, free_memory, split_fleet
from score_rl.fleet.spec import (
    ExperimentSpec,
    Run,
    check_counts,
    default_eval_every,
    default_log_every,
    expand_runs,
    group_fleets,
)
from score_rl.fleet.store import Folder, MetricsTable, MetricsWriter, provenance
from score_rl.judge.rollouts import Judgement
from score_rl.nets.precision import PRECISIONS, Precision

DEFAULT_DATASET = "replica:halfcheetah-medium"
DEFAULT_STEPS = 20_000
NAMED = ("replica", "d4rl")  # data sets that have names; any other is a file


class TrainedRun:
    """One run of an experiment: its policy, its uncertainty, what was measured."""

    def __init__(self, experiment: "Experiment", about: Mapping[str, Any]) -> None:
        self.experiment, self.about = experiment, about
        self.id: str = about["id"]
        self.dataset: str = about["dataset"]
        self.seed: int = about["seed"]

    def __repr__(self) -> str:
        try:
            where = f"{self.status['state']} at update {self.status['step']:,}"
        except (InputError, OSError):  # a repr must not raise
            where = "state unknown"
        return f"<run {self.id}: {where}>"

    @cached_property
    def algorithm(self) -> Algorithm:
        return get_algorithm(self.about["algorithm"])

    @cached_property
    def config(self) -> Any:
        return make_config(self.algorithm, self.about["config"])

    @property
    def status(self) -> dict[str, Any]:
        return self.experiment.folder.status()["runs"].get(self.id, {"state": "not started", "step": 0})

    @property
    def metrics(self) -> MetricsTable:
        """Everything measured in this run."""
        return self.experiment.metrics.of(self.id)

    @cached_property
    def _loaded(self) -> tuple[int, Any, Treatment]:
        return self.experiment.load(self)

    @property
    def step(self) -> int:
        return self._loaded[0]

    @property
    def state(self) -> Any:
        """Parameters, targets, optimisers: all that the newest checkpoint holds of this run."""
        return self._loaded[1]

    @property
    def treatment(self) -> Treatment:
        return self._loaded[2]

    @cached_property
    def _act(self) -> Any:
        config, policy, treatment = jax.device_put(
            (self.config, self.algorithm.policy(self.state), self.treatment), host_device()
        )
        act = jax.jit(acting(self.algorithm))
        return lambda observations: act(config, treatment, policy, observations)

    @cached_property
    def _uncertainty(self) -> Any:
        measure = self.algorithm.uncertainty
        if measure is None:
            raise InputError(f"{self.algorithm.title} estimates no uncertainty.")
        config, state, treatment = jax.device_put((self.config, self.state, self.treatment), host_device())
        compiled = jax.jit(lambda c, s, t, o, a: measure(c, s, t.observe(o), t.action_in(a)))
        return lambda observations, actions: compiled(config, state, treatment, observations, actions)

    def policy(self, observation: Float[np.ndarray, "*batch observation"]) -> Float[np.ndarray, "*batch action"]:
        """The learned action for one observation or a batch of them, in the environment's units.

        NaN and infinite observations are refused: a policy would answer them with anything.
        """
        batch, single = _as_batch("observation", observation, self.about["observation_dim"])
        actions = np.asarray(self._act(batch))
        return actions[0] if single else actions

    def uncertainty(
        self, observation: Float[np.ndarray, "*batch observation"], action: Float[np.ndarray, "*batch action"]
    ) -> Float[np.ndarray, "*batch"]:
        """u(s, a), in units of the scaled reward; for actions within their bounds, in the environment's units."""
        observations, single = _as_batch("observation", observation, self.about["observation_dim"])
        actions, _ = _as_batch("action", action, self.about["action_dim"])
        if len(observations) != len(actions):
            raise InputError(f"{len(observations)} observations and {len(actions)} actions: give as many of each.")
        self._refuse_impossible(actions)
        values = np.asarray(self._uncertainty(observations, actions))
        return values[0] if single else values

    def _refuse_impossible(self, actions: np.ndarray) -> None:
        outside = np.abs(np.asarray(self.treatment.action_in(jnp.asarray(actions)))) > 1 + BOUND_TOLERANCE
        if outside.any():
            row, place = np.argwhere(outside)[0]
            centre, half = (
                np.asarray(x)[place] for x in (self.treatment.action_centre, self.treatment.action_halfwidth)
            )
            raise InputError(
                f"action {place} is {actions[row, place]:g}, but lies between {centre - half:g} and {centre + half:g}: "
                "nothing is known of an action that cannot be taken."
            )

    def evaluate(self, episodes: int = 10, *, physics: str | None = None, seed: int = 0) -> Judgement:
        """Act in the environment of its data and return what happened."""
        ((_, judgement),) = judge_runs([self], episodes, physics=physics, seed=seed)
        return judgement


def _as_batch(what: str, values: Any, width: int) -> tuple[np.ndarray, bool]:
    array = np.asarray(values, dtype=np.float32)
    single = array.ndim == 1
    batch = array[None] if single else array
    if batch.ndim != 2 or batch.shape[1] != width:
        raise InputError(f"{what} has shape {array.shape}; expected ({width},) or (batch, {width}).")
    broken = ~np.isfinite(batch)
    if broken.any():
        row, place = np.argwhere(broken)[0]
        where = f"{what} {place}" if single else f"{what} {place} in row {row}"
        raise InputError(
            f"{where} is {batch[row, place]}; give a finite number, such as the last one that was measured."
        )
    return batch, single


class Experiment(Sequence[TrainedRun]):
    """All runs of a folder. With exactly one run, `policy`, `uncertainty` and `evaluate` are that run's."""

    def __init__(self, path: Path | str) -> None:
        self.folder = Folder.open(Path(path))
        self.about = self.folder.experiment()
        self.spec = ExperimentSpec.from_json(self.about["request"])
        self.runs = [TrainedRun(self, run) for run in self.about["runs"]]
        self._fleets: dict[int, tuple[int, dict[str, np.ndarray], dict[str, Any]]] = {}

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[TrainedRun]:
        return iter(self.runs)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, str):
            for run in self.runs:
                if run.id == which:
                    return run
            raise unknown_name("run", which, [run.id for run in self.runs])
        return self.runs[which]

    def __repr__(self) -> str:
        try:
            state = self.folder.status()["state"]
        except (InputError, OSError):  # a repr must not raise
            state = "state unknown"
        return f"<experiment {self.folder.path}: {len(self)} runs, {state}>"

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def metrics(self) -> MetricsTable:
        return self.folder.metrics()

    @property
    def run(self) -> TrainedRun:
        """The only run."""
        if len(self) != 1:
            raise InputError(f"{self.path} holds {len(self)} runs; pick one, such as experiment[{self.runs[0].id!r}].")
        return self.runs[0]

    def policy(self, observation: Float[np.ndarray, "*batch observation"]) -> Float[np.ndarray, "*batch action"]:
        return self.run.policy(observation)

    def uncertainty(
        self, observation: Float[np.ndarray, "*batch observation"], action: Float[np.ndarray, "*batch action"]
    ) -> Float[np.ndarray, "*batch"]:
        return self.run.uncertainty(observation, action)

    def evaluate(self, episodes: int = 10, *, physics: str | None = None, seed: int = 0) -> Judgement:
        return self.run.evaluate(episodes, physics=physics, seed=seed)

    def evaluate_runs(
        self,
        episodes: int = 10,
        *,
        runs: Sequence[TrainedRun] | None = None,
        physics: str | None = None,
        seed: int = 0,
    ) -> Iterator[tuple[TrainedRun, Judgement]]:
        """Every run, or these, with what its policy did in fresh episodes, as soon as it is known. On many cores this
        is much faster than one after the other."""
        return judge_runs(self.runs if runs is None else runs, episodes, physics=physics, seed=seed)

    def load(self, run: TrainedRun) -> tuple[int, Any, Treatment]:
        """Step, state and treatment of a run, from the newest whole checkpoint of its fleet."""
        number, place = run.about["fleet"], run.about["place"]
        if number not in self._fleets:
            self._fleets[number] = _newest(self.folder.fleet(number))
        step, arrays, _ = self._fleets[number]
        mine = {name: array[place] for name, array in arrays.items() if name.startswith(("state.", "treatment."))}
        shapes = jax.eval_shape(
            lambda: run.algorithm.init(
                run.config, Shapes(run.about["observation_dim"], run.about["action_dim"]), jax.random.key(0)
            )
        )
        state = {name.removeprefix("state."): a for name, a in mine.items() if name.startswith("state.")}
        treatment = Treatment(*(mine[f"treatment.{name}"] for name in Treatment._fields))
        return step, from_arrays(state, shapes), treatment


def _newest(folder: Path) -> tuple[int, dict[str, np.ndarray], dict[str, Any]]:
    reasons = []
    for path in checkpoints(folder):
        try:
            return load_checkpoint(path)
        except DamagedError as error:
            reasons.append(f"{path.name} is damaged: {error}")
    if reasons:
        raise InputError(f"{folder} holds no whole checkpoint ({'; '.join(reasons)}).")
    raise InputError(f"{folder} holds no checkpoint yet; train first, or wait for the first minute to pass.")


def load(path: Path | str) -> Experiment:
    """Open the folder of an experiment."""
    return Experiment(path)


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
        datasets=_dataset_names(dataset),
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
        raise InputError(f"--memory-limit is {memory_limit}; it must be a number of GiB, more than 0.")
    path = Path(out) if out is not None else _default_out(spec)
    refuse_unwritable(path)
    Folder.refuse_if_taken(path)
    console = Console(stderr=True)
    datasets = _load_datasets(spec, quiet)
    runs = expand_runs(spec, chosen, datasets)
    if not quiet:
        _say_doubts(runs, console)
    fleets = _fit_into_memory(group_fleets(runs), spec, memory_limit, console, quiet)
    where = {run.id: (f, p) for f, fleet in enumerate(fleets) for p, run in enumerate(fleet)}
    about = {
        "request": spec.to_json(),
        "began_in": str(Path.cwd()),
        "provenance": provenance(),
        "datasets": {d.name: describe_for_storage(d) for d in datasets},
        "runs": [
            {
                "id": run.id,
                "algorithm": chosen.name,
                "dataset": run.dataset.name,
                "checksum": run.dataset.checksum,
                "environment": run.dataset.environment,
                "observation_dim": run.dataset.observation_dim,
                "action_dim": run.dataset.action_dim,
                "seed": run.seed,
                "config": config_json(run.config),
                "fleet": where[run.id][0],
                "place": where[run.id][1],
            }
            for run in runs
        ],
    }
    json.dumps(about["request"])  # refuse what cannot be stored before anything is written
    folder = Folder.create(path, about)
    _train_fleets(spec, fleets, folder, console, memory_limit=memory_limit, tensorboard=tensorboard, quiet=quiet)
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
    began_in = experiment.about.get("began_in")
    found = tuple(_found_again(name, began_in) for name in spec.datasets)
    datasets = _load_datasets(dataclasses.replace(spec, datasets=found), quiet)
    for dataset in datasets:
        stored = experiment.about["datasets"].get(dataset.name, {}).get("checksum")
        if stored != dataset.checksum:
            raise InputError(
                f"{dataset.name} is not the data this experiment was started with (checksum {dataset.checksum[:12]}, "
                f"then {str(stored)[:12]}); restore that file, or start a new experiment."
            )
    fleets = _stored_fleets(experiment, expand_runs(spec, get_algorithm(spec.algorithm), datasets))
    if spec != experiment.spec:
        _store_longer(experiment, spec)
    _train_fleets(spec, fleets, experiment.folder, console, tensorboard=tensorboard, quiet=quiet)
    return Experiment(path)


def _longer(experiment: Experiment, steps: int) -> ExperimentSpec:
    """Its request with more updates."""
    before = experiment.spec.steps
    if steps < before:
        raise InputError(
            f"--steps is {steps}, and {experiment.path} trains {before} updates; give more, or leave --steps out."
        )
    spec = dataclasses.replace(experiment.spec, steps=steps)
    spec.check(math.lcm(*(cycle(run.algorithm, run.config) for run in experiment)))
    return spec


def _store_longer(experiment: Experiment, spec: ExperimentSpec) -> None:
    """The longer request, with the code, libraries and machine that go on from here."""
    folder, about = experiment.folder, experiment.about
    with held(folder.path):
        status = folder.status() | {"state": "interrupted"}
        for entry in status["runs"].values():
            if entry["state"] == "finished":
                entry["state"] = "training"
        folder.write_status(status)
        longer = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **provenance()}
        earlier = about["provenance"].get("longer", {})
        stamp = {"longer": {**earlier, f"{experiment.spec.steps} to {spec.steps} updates": longer}}
        folder.write_experiment({**about, "request": spec.to_json(), "provenance": about["provenance"] | stamp})


def _fit_into_memory(
    fleets: list[list[Run]], spec: ExperimentSpec, memory_limit: float | None, console: Console, quiet: bool
) -> list[list[Run]]:
    """Each fleet whole where it fits, else in parts."""
    keep_compiled_programs()
    device = jax.local_devices()[0]
    limited = memory_limit is not None
    limit = free_memory(device) if memory_limit is None else int(memory_limit * GIBIBYTE)
    where = f"{device.device_kind}, limited by --memory-limit" if limited else device.device_kind

    def say(message: str) -> None:
        if not quiet:
            console.print(message, highlight=False)

    return [
        part
        for fleet in fleets
        for part in split_fleet(
            fleet, spec.log_every, limit, say, where=where, precision=spec.precision, alone_too=limited
        )
    ]


def _stored_fleets(experiment: Experiment, runs: Sequence[Run]) -> list[list[Run]]:
    """The fleets as they were formed: their checkpoints are, whatever memory this machine has."""
    fleets: dict[int, list[Run]] = {}
    where = {about["id"]: (about["fleet"], about["place"]) for about in experiment.about["runs"]}
    for run in sorted(runs, key=lambda run: where[run.id]):
        fleets.setdefault(where[run.id][0], []).append(run)
    return list(fleets.values())


def _train_fleets(
    spec: ExperimentSpec,
    fleets: list[list[Run]],
    folder: Folder,
    console: Console,
    *,
    memory_limit: float | None = None,
    tensorboard: bool,
    quiet: bool,
) -> None:
    from score_rl.fleet.training import FleetTrainer, StopRequest

    keep_compiled_programs()
    limit = None if memory_limit is None else int(memory_limit * GIBIBYTE)
    with held(folder.path):
        status = folder.status() | {"state": "running"}
        writer = MetricsWriter(folder, tensorboard)
        stop = StopRequest()
        try:
            with stop.listening(console):
                for number, runs in enumerate(fleets):
                    FleetTrainer(
                        number, runs, spec, folder, writer, status, console, stop, memory_limit=limit, quiet=quiet
                    ).train()
            status["state"] = "finished"
        except (Stopped, KeyboardInterrupt):
            status["state"] = "interrupted"
            raise
        except BaseException as error:
            status |= {"state": "failed", "error": str(error)}
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
            f"{algorithm.title} cannot be trained in {asked}; leave --precision out, or make it {allowed}."
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


def _dataset_names(dataset: Any) -> tuple[str, ...]:
    """Names and files as they are stored: an experiment must find its data again when it is resumed."""
    given = (dataset,) if isinstance(dataset, str) or not isinstance(dataset, Iterable) else tuple(dataset)
    for one in given:
        if isinstance(one, Dataset):
            raise InputError(
                f"{one.name} is a Dataset, and training reads its data itself, also when it is resumed: "
                f"pass {_origin(one)}."
            )
        if not isinstance(one, str | Path):
            raise InputError(
                f"a data set is given as {type(one).__name__}; give the name of one or the path of an HDF5 file."
            )
    return tuple(str(one) for one in given)


def _origin(dataset: Dataset) -> str:
    """What to pass instead of a data set that is in memory."""
    kind = dataset.source.get("kind")
    if kind in NAMED:
        return repr(dataset.name)
    if kind == "file":
        return f"{dataset.source['path']!r}, the file it was read from"
    return (
        "the path of an HDF5 file to which you wrote its observations, actions, rewards, next_observations, terminals "
        "and timeouts, each under its name, such as with h5py"
    )


def _found_again(name: str, began_in: str | None) -> str:
    """What `load_dataset` takes for a data set of an experiment that began in another folder."""
    path = Path(name).expanduser()
    if name.partition(":")[0] in NAMED or path.is_absolute():
        return name
    if began_in is not None and (Path(began_in) / path).exists():
        return str(Path(began_in) / path)
    if not path.exists():
        there = began_in or "the folder in which training began"
        raise InputError(
            f"{path} is neither here nor in {there}, relative to which the experiment names its data; "
            + ("put it back, or call --resume in a folder that has it." if began_in else "call --resume there.")
        )
    return name


def _load_datasets(spec: ExperimentSpec, quiet: bool) -> list[Dataset]:
    datasets = [
        load_dataset(
            name,
            transitions=spec.transitions,
            seed=spec.data_seed,
            environment=None if spec.environment == "none" else spec.environment,
            action_bounds=spec.action_bounds,
            progress=not quiet,
        )
        for name in spec.datasets
    ]
    names = [dataset.name for dataset in datasets]
    if len(set(names)) < len(names):
        raise InputError(f"two data sets have the same name ({', '.join(names)}); rename a file.")
    return datasets


def _say_doubts(runs: Sequence[Run], console: Console) -> None:
    """About data from elsewhere; what is recorded or fetched by name is known."""
    for run in {run.dataset.checksum: run for run in runs if run.dataset.source.get("kind") == "file"}.values():
        found = doubts(run.dataset)
        if not run.config.normalise_states:
            found += large_observations(run.dataset)
        for doubt in found:
            console.print(f"Warning, {run.dataset.name}: {doubt}", highlight=False, markup=False, soft_wrap=True)


def describe_for_storage(dataset: Dataset) -> dict[str, Any]:
    """What a stored result says of its data, the behaviour policy's performance included."""
    returns, complete = dataset.returns()
    chosen = returns[complete] if complete.any() else returns
    about: dict[str, Any] = {
        "checksum": dataset.checksum,
        "rows": len(dataset),
        "episodes": len(dataset.episodes),
        "environment": dataset.environment,
        "source": dict(dataset.source),
        "behaviour_return": float(chosen.mean()),
        "behaviour_return_std": float(chosen.std()),
    }
    scores = normalised_score(dataset.environment, chosen) if dataset.environment else None
    if scores is not None:
        about |= {"behaviour_score": float(scores.mean()), "behaviour_score_std": float(scores.std())}
    return about


def config_json(config: Any) -> dict[str, Any]:
    return {
        field.name: list(value) if isinstance(value := getattr(config, field.name), tuple) else value
        for field in dataclasses.fields(config)
    }


def _default_out(spec: ExperimentSpec) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    name = Path(spec.datasets[0].split(":")[-1]).stem
    first = Path("runs") / f"{spec.algorithm}-{name}-{stamp}"
    others = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))  # begun in the same second
    return next(path for path in itertools.chain([first], others) if not path.exists())
