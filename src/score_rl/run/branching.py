"""Some runs of an experiment go on in a folder of their own: from their newest checkpoints, the others left behind."""

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.engine.runs import Run
from score_rl.errors import InputError
from score_rl.run.checkpoint_writer import HISTORY
from score_rl.run.expansion import expand_runs, run_record
from score_rl.run.experiment import Experiment, TrainedRun
from score_rl.run.fleets import form_fleets
from score_rl.run.messages import Announcer
from score_rl.run.sources import load_same_datasets
from score_rl.store.checkpoints import Checkpoint, DamagedError, checkpoints, load_checkpoint, row_of, save_checkpoint
from score_rl.store.folder import Folder
from score_rl.store.history import pack_history
from score_rl.store.metrics import Row, write_rows
from score_rl.store.records import config_json
from score_rl.store.request import KEPT, AlgorithmRequest


def branch(
    experiment: Experiment, algorithms: Sequence[AlgorithmRequest], path: Path, *, quiet: bool = False
) -> Experiment:
    """A folder that holds what these requests ask for, out of a finished experiment that trained it among others.

    `resume(path, steps=MORE)` trains it on, and gives what the whole experiment would have given.
    """
    Folder.refuse_if_taken(path)
    spec = dataclasses.replace(experiment.spec, algorithms=tuple(algorithms))
    datasets = load_same_datasets(experiment.record, quiet)
    runs = expand_runs(spec, datasets)
    before = {run.id: _same_run(experiment, run) for run in runs}
    fleets = form_fleets(runs, spec, None, Announcer(quiet=quiet))
    where = {run.id: (number, row) for number, fleet in enumerate(fleets) for row, run in enumerate(fleet)}
    record = dataclasses.replace(
        experiment.record,
        request=spec,
        runs=tuple(run_record(run, *where[run.id]) for run in runs),
        provenance={**experiment.record.provenance, "continues": {"of": experiment.path.name, "runs": len(runs)}},
        folder=None,
    )
    made = path.with_name(f".{path.name}.part")  # renamed when it is whole
    shutil.rmtree(made, ignore_errors=True)  # left by a kill
    folder = Folder.create(made, record)
    _take_data(experiment, made)
    _take_metrics(experiment, {old.id: new for new, old in before.items()}, made)
    opened: dict[int, Checkpoint] = {}
    for number, fleet in enumerate(fleets):
        arrays = _stacked([_arrays_of(experiment, before[run.id], opened) for run in fleet])
        about = {"runs": [run.id for run in fleet], "algorithm": fleet[0].algorithm.name}
        save_checkpoint(folder.fleet(number), experiment.spec.steps, arrays | {HISTORY: pack_history(made)}, about)
    made.replace(path)
    return Experiment(path)


def _same_run(experiment: Experiment, run: Run) -> TrainedRun:
    """The run that trained just this."""
    wanted = (run.algorithm.name, run.dataset.checksum, run.seed, config_json(run.config))
    for old in experiment:
        record = old.record
        if (record.algorithm, record.checksum, record.seed, dict(record.config)) == wanted:
            return old
    raise InputError(f"{experiment.path} has no run like {run.id}; ask for settings that it trained.")


def _arrays_of(experiment: Experiment, run: TrainedRun, opened: dict[int, Checkpoint]) -> Mapping[str, np.ndarray]:
    """The state of one run after its experiment's last update."""
    number, position = run.record.fleet, run.record.position
    if number not in opened:
        newest = checkpoints(experiment.folder.fleet(number))[:1]
        try:
            if not newest or (found := load_checkpoint(newest[0])).step != experiment.spec.steps:
                raise InputError(f"{experiment.path} is not trained to its end; go on with it by `resume` first.")
        except DamagedError as error:
            raise InputError(f"{newest[0]} is damaged ({error}); go on by `resume` first.") from error
        opened[number] = found
    arrays = opened[number].arrays
    mine = {name: array for name, array in arrays.items() if name.startswith(("state.", "treatment."))}
    try:
        return row_of(mine, position)
    except DamagedError as error:
        raise InputError(f"the checkpoint of {experiment.path} is not of its runs ({error}); restore it.") from error


def _stacked(runs: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.stack([arrays[name] for arrays in runs]) for name in runs[0]}


def _take_data(experiment: Experiment, into: Path) -> None:
    """Data that were given in memory lie in the experiment's folder."""
    for name in experiment.spec.datasets:
        if name.startswith(KEPT):
            target = into / name.removeprefix(KEPT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(experiment.path / name.removeprefix(KEPT), target)


def _take_metrics(experiment: Experiment, names: Mapping[str, str], into: Path) -> None:
    """What these runs measured, under the names that they have now."""
    rows: list[Any] = [Row(names[row.run], *row[1:]) for row in experiment.metrics if row.run in names]
    write_rows(into, rows)
