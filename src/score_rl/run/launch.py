"""From what is asked to what is trained: a new experiment, or one that goes on.

request -> data -> runs -> fleets -> folder -> training
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from score_rl.algorithms.algorithm import Algorithm
from score_rl.data.columns import LEAST_USABLE
from score_rl.data.dataset import Dataset
from score_rl.engine.runs import Run
from score_rl.errors import InputError, refuse_unwritable
from score_rl.nets.precision import Precision
from score_rl.run.best_policies import refuse_best_of_nothing
from score_rl.run.compiled_programs import keep_compiled_programs
from score_rl.run.context import TrainingContext
from score_rl.run.expansion import common_cycle, expand_runs, file_name, refuse_unready_runs, run_record
from score_rl.run.experiment import Experiment
from score_rl.run.extension import longer_request, store_longer_request
from score_rl.run.fleets import form_fleets, memory_errors, stored_fleets
from score_rl.run.given_data import given_data, keep_data
from score_rl.run.machines import Machines
from score_rl.run.messages import Announcer
from score_rl.run.notes import all_notes, program_notes, schedule_notes, setting_notes, warnings_again
from score_rl.run.precision import choose_precision
from score_rl.run.requested import requested_algorithms
from score_rl.run.signals import StopRequest
from score_rl.run.sources import dataset_record, load_datasets, load_same_datasets
from score_rl.run.status import StatusKeeper, store_notes
from score_rl.run.stretches import note_stretch, tell_differences
from score_rl.run.training import FleetTrainer
from score_rl.run.trusted_modules import refuse_foreign_modules, trust_module
from score_rl.store.folder import Folder
from score_rl.store.lock import held
from score_rl.store.metrics import Callback, MetricsWriter
from score_rl.store.parts import gather_all
from score_rl.store.provenance import provenance
from score_rl.store.records import ExperimentRecord
from score_rl.store.request import (
    AlgorithmRequest,
    ExperimentSpec,
    check_counts,
    default_eval_every,
    default_log_every,
    whole_number,
)

DEFAULT_DATASET = "replica:halfcheetah-medium"
DEFAULT_STEPS = 20_000
ALGORITHMS_NAMED = 3  # in the name of a folder


def train(
    dataset: Any = DEFAULT_DATASET,
    *,
    columns: Mapping[str, Any] | None = None,
    algorithm: str | AlgorithmRequest | Sequence[str | AlgorithmRequest] = "score",
    seeds: int | Sequence[int] = 0,
    config: Mapping[str, Any] | None = None,
    variants: Sequence[Mapping[str, Any]] | None = None,
    hold_out: float | None = None,
    steps: int = DEFAULT_STEPS,
    eval_every: int | None = None,
    eval_episodes: int = 10,
    log_every: int | None = None,
    out: Path | str | None = None,
    transitions: int | None = None,
    data_seed: int = 0,
    environment: str | None = None,
    action_bounds: tuple[float, ...] | None = None,
    least_usable: float = LEAST_USABLE,
    physics: str = "d4rl",
    precision: str = "auto",
    checkpoint_minutes: float = 1.0,
    memory_limit: float | None = None,
    tensorboard: bool = True,
    quiet: bool = False,
    on: Machines | None = None,
    keep_best: bool = False,
    callback: Callback | None = None,
) -> Experiment:
    """Train data sets × settings × seeds; a list among `config`'s values is swept over.

    What does not fit into the device's memory, or into `memory_limit` GiB, is trained in several fleets.

    >>> experiment = score_rl.train("replica:hopper-medium", config={"beta": [0.1, 0.2]}, seeds=[0, 1])

    Several algorithms are trained one after the other. A setting goes to all that have it, unless it says whose it is:

    >>> experiment = score_rl.train("logs.hdf5", algorithm=["score", "iql", "bc"], config={"iql.temperature": [1, 3]})

    Where all combinations would be too many, `variants` lists the settings, each over those of `config`:

    >>> experiment = score_rl.train("replica:hopper-medium", variants=[{}, {"beta": 0.0}, {"bc_weight": 0.0}])

    Data may be in memory: a `Dataset`, a dictionary of arrays, or a frame with what its `columns` are. They are kept in
    the experiment's folder.

    >>> experiment = score_rl.train(frame, columns={"observations": ["temp*"], "actions": ["valve"], "reward": "r",
    ...                                             "episode": "trip", "time": "t"})

    A callback hears of every row of metrics, such as for W&B or MLflow (docs/extending.md):

    >>> experiment = score_rl.train("logs.hdf5", callback=lambda run, update, measured: print(run, update, measured))

    Args:
        dataset: replica:NAME, d4rl:NAME, an HDF5 file, data in memory, or a list of these.
        columns: Of a frame, what its columns are: the arguments of `Dataset.from_frame`.
        algorithm: What to train, or several; `score algorithms` lists them.
        seeds: One run for each.
        config: Settings by name. A list of values is swept over; a tuple is one value.
        variants: Settings to be trained one beside the other, each over those of `config`.
        hold_out: Share of the trajectories that is kept from training, for `score_rl.judge`.
        steps: Updates of each run.
        eval_every: Updates between two judgements; 5,000 unless given.
        eval_episodes: Episodes of a judgement.
        log_every: Updates in a row of training metrics; about 200 rows a curve unless given.
        out: Folder of the experiment; a new one in runs unless given.
        transitions: Rows to use. A replica is recorded in this size; of a file whole trajectories are taken.
        data_seed: Seed of a replica's recording.
        environment: Where to judge: a task, a Gymnasium id, or "none"; taken from the data unless given.
        action_bounds: LOW, HIGH of all actions, or of each, where the data do not say.
        least_usable: Refuse data of which a smaller share of the rows has a next observation.
        physics: "d4rl" for MuJoCo as D4RL was recorded with, "stock" for that of today.
        precision: What goes into the critics' products: "auto", "float32" or "bfloat16".
        checkpoint_minutes: Time between checkpoints; 0 writes one after every row of metrics.
        memory_limit: GiB of the device to use; all that is free unless given.
        tensorboard: Whether to write TensorBoard files too.
        quiet: Whether to say nothing.
        on: Train on a cluster (docs/cluster.md); here unless given.
        keep_best: Keep the policy with the best evaluation beside the last, which stays the result.
        callback: Called in this process as `callback(run, update, measured)`.
    """
    machines = _machines(on, callback, keep_best=keep_best)
    algorithms = requested_algorithms(algorithm, config or {}, variants, precision, machines.precision)
    cycle = common_cycle(algorithms)
    steps, eval_every, log_every = _counts(steps, eval_every, log_every, eval_episodes, cycle)
    given = given_data(dataset, columns, environment, action_bounds)
    spec = ExperimentSpec(
        algorithms=algorithms,
        datasets=given.names,
        seeds=(seeds,) if isinstance(seeds, int) else tuple(seeds),
        steps=steps,
        eval_every=eval_every,
        eval_episodes=eval_episodes,
        log_every=log_every,
        transitions=transitions,
        data_seed=data_seed,
        environment=environment,
        action_bounds=action_bounds,
        least_usable=least_usable,
        physics=physics,
        checkpoint_minutes=checkpoint_minutes,
        hold_out=hold_out,
        keep_best=keep_best,
    )
    spec.check(cycle)
    trust_module(environment)
    path, announcer = default_folder(spec) if out is None else Path(out), Announcer(quiet=quiet)
    announcer.say_all(setting_notes(algorithms, config or {}))
    return _begin(
        spec, path, announcer, given.kept, memory_limit=memory_limit, tensorboard=tensorboard, machines=machines
    )


def _machines(on: Machines | None, callback: Callback | None, *, keep_best: bool) -> Machines:
    """A cluster, or this machine."""
    if on is None:
        return ThisMachine(callback)
    if callback is not None or keep_best:
        what = "`callback` is called by" if callback is not None else "`keep_best` is for"
        raise InputError(f"{what} a training in this process, and `on` trains elsewhere; leave one of them out.")
    return on


def _counts(
    steps: float, eval_every: float | None, log_every: float | None, eval_episodes: int, cycle: int
) -> tuple[int, int, int]:
    """`steps`, `eval_every` and `log_every` as whole numbers, with their defaults."""
    total = whole_number("`steps`", steps)
    judged = None if eval_every is None else whole_number("`eval_every`", eval_every)
    logged = None if log_every is None else whole_number("`log_every`", log_every)
    check_counts(steps=total, eval_every=judged, eval_episodes=eval_episodes, log_every=logged)
    judged = default_eval_every(total, logged, cycle) if judged is None else judged
    return total, judged, default_log_every(total, judged, cycle) if logged is None else logged


def resume(
    path: Path | str,
    *,
    steps: int | None = None,
    strict: bool = False,
    tensorboard: bool = True,
    quiet: bool = False,
    on: Machines | None = None,
    callback: Callback | None = None,
) -> Experiment:
    """Go on where the newest whole checkpoints of a folder stand; the result is that of an undisturbed run.

    What was measured after the checkpoint is measured again, and a callback is told again.

    Args:
        path: Folder of the experiment.
        steps: More updates than were asked for make it longer, finished or not: to what it would be had it begun
            with them and its `log_every` and `eval_every`. What it measured at its first end stays.
        strict: Refuse other code, libraries or devices than before, which are named and recorded otherwise.
        tensorboard: Whether to write TensorBoard files too.
        quiet: Whether to say nothing.
        on: Go on on a cluster (docs/cluster.md); here unless given.
        callback: As for `train`.
    """
    experiment, announcer = Experiment(path), Announcer(quiet=quiet)
    refuse_foreign_modules(experiment.record)
    machines = _machines(on, callback, keep_best=experiment.spec.keep_best)
    others = tell_differences(experiment.record, machines.provenance(), strict=strict, announcer=announcer)
    spec = experiment.spec if steps is None else longer_request(experiment, whole_number("`steps`", steps))
    datasets = load_same_datasets(experiment.record, quiet)
    runs = expand_runs(spec, datasets)
    refuse_unready_runs(spec, runs)
    fleets = stored_fleets(runs, experiment.record.runs)
    if spec != experiment.spec:
        announcer.say_all(schedule_notes(runs, spec.steps))
        store_longer_request(experiment, spec)
    if others is not None:
        note_stretch(experiment.folder, others, [run.id for run in runs], spec.steps)
    announcer.say_all(program_notes(keep_compiled_programs()))
    notes = all_notes(runs, spec)
    store_notes(experiment.folder, notes)
    machines.train(spec, fleets, experiment.folder, announcer, tensorboard=tensorboard)
    announcer.say_all(warnings_again(notes))
    return Experiment(path)


def _begin(
    spec: ExperimentSpec,
    path: Path,
    announcer: Announcer,
    kept: Mapping[str, Dataset],
    *,
    memory_limit: float | None,
    tensorboard: bool,
    machines: Machines,
) -> Experiment:
    """Everything that is wrong with a request is found before its folder is made."""
    if kept and spec.transitions is not None:
        raise InputError("`transitions` is for data with a name or path; give fewer rows yourself.")
    if memory_limit is not None and not 0 < memory_limit < math.inf:
        raise InputError(f"`memory_limit` is {memory_limit}; it must be a number of GiB, more than 0.")
    refuse_unwritable(path)
    Folder.refuse_if_taken(path)
    datasets = load_datasets(spec, announcer.quiet, kept)
    runs = expand_runs(spec, datasets)
    refuse_unready_runs(spec, runs)
    refuse_best_of_nothing(spec, runs)
    notes = all_notes(runs, spec)
    announcer.say_all([*notes, *program_notes(keep_compiled_programs())])
    fleets = machines.fleets(runs, spec, memory_limit, announcer)
    spec.to_json()  # refuse what cannot be stored before the folder is made
    folder = Folder.create(path, _new_record(spec, runs, fleets, machines.provenance()))
    keep_data(kept, folder.path)
    store_notes(folder, notes)
    machines.train(spec, fleets, folder, announcer, tensorboard=tensorboard)
    announcer.say_all(warnings_again(notes))
    return Experiment(path)


def _new_record(
    spec: ExperimentSpec, runs: Sequence[Run], fleets: Sequence[Sequence[Run]], made_by: dict[str, Any]
) -> ExperimentRecord:
    where = {run.id: (number, row) for number, fleet in enumerate(fleets) for row, run in enumerate(fleet)}
    datasets = {run.dataset.name: run.dataset for run in runs}
    return ExperimentRecord(
        request=spec,
        provenance=made_by,
        datasets={name: dataset_record(dataset) for name, dataset in datasets.items()},
        runs=tuple(run_record(run, *where[run.id]) for run in runs),
        began_in=str(Path.cwd()),
    )


class ThisMachine:
    """Trains one fleet after the other, in this process."""

    def __init__(self, callback: Callback | None = None) -> None:
        self._callback = callback

    def precision(self, algorithm: Algorithm, asked: str) -> Precision:
        return choose_precision(algorithm, asked)

    def fleets(
        self, runs: Sequence[Run], spec: ExperimentSpec, gibibytes: float | None, announcer: Announcer
    ) -> list[list[Run]]:
        return form_fleets(runs, spec, gibibytes, announcer)

    def provenance(self) -> dict[str, Any]:
        return provenance()

    def train(
        self,
        spec: ExperimentSpec,
        fleets: Sequence[Sequence[Run]],
        folder: Folder,
        announcer: Announcer,
        *,
        tensorboard: bool,
    ) -> None:
        """In a folder that nobody else trains in meanwhile. What a cluster left apart is gathered first."""
        with held(folder.path):
            gather_all(folder)
            folder.presence.wait(announcer.insist)
            status, stop = StatusKeeper(folder), StopRequest()
            with (
                status.training(),
                closing(MetricsWriter(folder.path, tensorboard, self._callback, folder.presence)) as metrics,
                stop.listening(announcer),
            ):
                context = TrainingContext(spec, folder, metrics, status, announcer, stop)
                for number, runs in enumerate(fleets):
                    with memory_errors(folder.path):
                        FleetTrainer(number, runs, context).train()


def default_folder(spec: ExperimentSpec) -> Path:
    """runs/ALGORITHMS-DATA-TIME, with a number where another experiment began in the same second."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    name = Path(spec.datasets[0].split(":")[-1]).stem
    named = [file_name(request.name) for request in spec.algorithms]
    called = "-".join(named) if len(named) <= ALGORITHMS_NAMED else f"{len(named)}-algorithms"
    first = Path("runs") / f"{called}-{name}-{stamp}"
    others = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([first], others) if not path.exists())
