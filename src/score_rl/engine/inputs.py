"""What a fleet's program reads: for every run its settings, treatment, data and key; for all of them the rows."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from score_rl.algorithms.algorithm import Batch, Data, Shapes, Statistics
from score_rl.data.dataset import Dataset
from score_rl.data.treatment import Treatment, fit_treatment
from score_rl.engine.batches import draw_batch, pack_rows
from score_rl.engine.runs import Run
from score_rl.engine.statistics import dataset_statistics


class Overview(NamedTuple):
    """What stages and refreshes know of a data set beside its rows."""

    statistics: Statistics
    starts: Int[Array, "*runs trajectories"]  # first rows; as many as the fleet's data set with most has
    trajectories: Int[Array, "*runs"]  # how many of them count


class RunInputs(NamedTuple):
    """Of one run, or of a fleet: then every array has an axis of runs in front."""

    config: Any  # settings; those that are traced are arrays
    treatment: Treatment
    offset: Int[Array, "*runs"]  # the first of its rows
    length: Int[Array, "*runs"]  # how many rows its data set has
    key: Key[Array, "*runs"]
    overview: Overview | None = None  # where the algorithm has stages or refreshes

    def data(self, shapes: Shapes, rows: Float[Array, "rows columns"]) -> Data:
        """The run's whole data set, for stages and refreshes."""
        assert self.overview is not None

        def take(drawn: Int[Array, " batch"]) -> Batch:
            return draw_batch(self.treatment, shapes, rows, self.offset, self.length, drawn)

        return Data(self.length, take, self.overview.starts, self.overview.trajectories, self.overview.statistics)


def packed_rows(runs: Sequence[Run]) -> Float[np.ndarray, "rows columns"]:
    """The rows of all data sets, one data set below the other, each once."""
    return np.concatenate([pack_rows(dataset) for dataset in _datasets(runs).values()])


def stacked_inputs(runs: Sequence[Run]) -> RunInputs:
    """The inputs of every run, stacked; `offset` counts in the rows of `packed_rows` for the same runs."""
    datasets = _datasets(runs)
    ends = np.cumsum([len(dataset) for dataset in datasets.values()])
    offsets = {name: end - len(dataset) for (name, dataset), end in zip(datasets.items(), ends, strict=True)}
    config = runs[0].config  # the settings that a treatment depends on are static: the same throughout a fleet
    treatments = {
        name: fit_treatment(dataset, normalise_states=config.normalise_states, reward_scaling=config.reward_scaling)
        for name, dataset in datasets.items()
    }
    checksums = [run.dataset.checksum for run in runs]
    algorithm = runs[0].algorithm
    keys = [jax.random.fold_in(jax.random.key(a), b) for a, b in (run.key_seed() for run in runs)]
    return RunInputs(
        config=jax.tree.map(lambda *v: np.asarray(v, np.float32), *(run.config for run in runs)),
        treatment=jax.tree.map(lambda *v: np.stack(v), *(treatments[name] for name in checksums)),
        offset=jnp.asarray([offsets[name] for name in checksums], jnp.int32),
        length=jnp.asarray([len(datasets[name]) for name in checksums], jnp.int32),
        key=jnp.stack(keys),
        overview=_overview(checksums, datasets, treatments) if algorithm.stages or algorithm.refresh else None,
    )


def _datasets(runs: Sequence[Run]) -> dict[str, Dataset]:
    """By checksum, in the order in which runs first name them."""
    return {run.dataset.checksum: run.dataset for run in runs}


def _overview(
    checksums: Sequence[str], datasets: Mapping[str, Dataset], treatments: Mapping[str, Treatment]
) -> Overview:
    statistics = {name: dataset_statistics(dataset, treatments[name]) for name, dataset in datasets.items()}
    most = max(len(dataset.trajectories) for dataset in datasets.values())
    starts = {
        name: np.pad(dataset.trajectories[:, 0].astype(np.int32), (0, most - len(dataset.trajectories)))
        for name, dataset in datasets.items()
    }
    return Overview(
        statistics=jax.tree.map(lambda *v: np.stack(v), *(statistics[name] for name in checksums)),
        starts=jnp.asarray([starts[name] for name in checksums]),
        trajectories=jnp.asarray([len(datasets[name].trajectories) for name in checksums], jnp.int32),
    )
