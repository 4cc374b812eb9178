"""The compiled program: sampling and updates, `scan` over updates, `vmap` over runs, shards over devices."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Shapes
from score_rl.data.dataset import Dataset
from score_rl.data.treatment import Treatment, fit_treatment
from score_rl.fleet.spec import Run

RUNS = "runs"  # the mesh axis


def pack_rows(dataset: Dataset) -> Float[np.ndarray, "rows columns"]:
    """One transition per row, so that drawing a batch is one gather: s, a, r, s', terminal, followed."""
    followed = np.ones(len(dataset), np.float32)
    followed[dataset.episodes[:, 1] - 1] = 0
    columns = (
        dataset.observations,
        dataset.actions,
        dataset.rewards[:, None],
        dataset.next_observations,
        dataset.terminals[:, None],
        followed[:, None],
    )
    return np.concatenate(columns, axis=1, dtype=np.float32)


def draw_batch(
    treatment: Treatment,
    shapes: Shapes,
    rows: Float[Array, "rows columns"],
    offset: Int[Array, ""],
    length: Int[Array, ""],
    drawn: Int[Array, " batch"],
) -> Batch:
    """The transitions with these numbers, in treated units.

    `rows` may hold several data sets: this one has `length` rows from `offset` on. The second gather, for the
    actions one step later, is left out of the program by the compiler unless an algorithm reads them.
    """
    s, a = shapes
    here = rows[offset + drawn]
    later = rows[offset + jnp.minimum(drawn + 1, length - 1)]
    return Batch(
        observations=treatment.observe(here[:, :s]),
        actions=treatment.action_in(here[:, s : s + a]),
        rewards=treatment.reward(here[:, s + a]),
        next_observations=treatment.observe(here[:, s + a + 1 : 2 * s + a + 1]),
        terminals=here[:, 2 * s + a + 1],
        rows=drawn,
        next_actions=treatment.action_in(later[:, s : s + a]),
        followed=here[:, 2 * s + a + 2],
    )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RunInputs:
    """Per run: its traced settings, its treatment, where its data lies and its random key."""

    config: Any
    treatment: Treatment
    offset: Int[Array, ""]
    length: Int[Array, ""]
    key: PRNGKeyArray


def train_window(
    algorithm: Algorithm,
    shapes: Shapes,
    updates: int,
    inputs: RunInputs,
    state: Any,
    start: Int[Array, ""],
    rows: Float[Array, "rows columns"],
) -> tuple[Any, Metrics]:
    """`updates` updates of one run from update number `start`; metrics are means over the window.

    Random numbers depend on the run and the update's number alone: neither the length of a window nor an
    interruption between two changes them.
    """
    turns = algorithm.turns(inputs.config)
    stream = jax.random.fold_in(inputs.key, 1)

    def cycle(state: Any, number: Int[Array, ""]) -> tuple[Any, Metrics]:
        seen: dict[str, list[Array]] = {}
        for turn in range(turns):
            sample_key, update_key = jax.random.split(jax.random.fold_in(stream, start + number * turns + turn))
            drawn = jax.random.randint(sample_key, (inputs.config.batch_size,), 0, inputs.length)
            batch = draw_batch(inputs.treatment, shapes, rows, inputs.offset, inputs.length, drawn)
            state, metrics = algorithm.update(inputs.config, state, batch, update_key, turn)
            for name, value in metrics.items():
                seen.setdefault(name, []).append(value)
        return state, {name: jnp.stack(values).mean() for name, values in seen.items()}

    state, metrics = jax.lax.scan(cycle, state, jnp.arange(updates // turns))
    return state, {name: values.mean() for name, values in metrics.items()}


class FleetProgram:
    """A fleet's inputs on the device, and its functions compiled over all runs."""

    def __init__(self, runs: Sequence[Run], devices: Sequence[jax.Device] | None = None) -> None:
        self.runs = list(runs)
        self.algorithm = runs[0].algorithm
        self.shapes = Shapes(runs[0].dataset.observation_dim, runs[0].dataset.action_dim)
        devices = list(devices if devices is not None else jax.local_devices())[: len(runs)]
        self.mesh = Mesh(np.array(devices), (RUNS,))
        # Shards are of equal size: the last run is repeated, and the repetitions are never reported.
        self.width = -(-len(runs) // len(devices)) * len(devices)
        self._split = NamedSharding(self.mesh, PartitionSpec(RUNS))
        self._whole = NamedSharding(self.mesh, PartitionSpec())
        self.inputs, self.rows = self._upload()
        self._compiled: dict[int, Any] = {}

    def _upload(self) -> tuple[RunInputs, Array]:
        datasets = list({run.dataset.checksum: run.dataset for run in self.runs}.values())
        starts = np.cumsum([0] + [len(dataset) for dataset in datasets])
        offsets = {dataset.checksum: start for dataset, start in zip(datasets, starts, strict=False)}
        rows = jax.device_put(np.concatenate([pack_rows(dataset) for dataset in datasets]), self._whole)
        treatments: dict[str, Treatment] = {}
        for run in self.runs:  # the settings it depends on are static, so equal throughout a fleet
            if run.dataset.checksum not in treatments:
                treatments[run.dataset.checksum] = fit_treatment(
                    run.dataset,
                    normalise_states=run.config.normalise_states,
                    reward_scaling=run.config.reward_scaling,
                )
        padded = self.runs + [self.runs[-1]] * (self.width - len(self.runs))
        keys = [jax.random.fold_in(jax.random.key(a), b) for a, b in (run.key_seed() for run in padded)]
        inputs = RunInputs(
            config=jax.tree.map(lambda *v: np.asarray(v, np.float32), *(run.config for run in padded)),
            treatment=jax.tree.map(lambda *v: np.stack(v), *(treatments[run.dataset.checksum] for run in padded)),
            offset=jnp.asarray([offsets[run.dataset.checksum] for run in padded], jnp.int32),
            length=jnp.asarray([len(run.dataset) for run in padded], jnp.int32),
            key=jnp.stack(keys),
        )
        return jax.device_put(inputs, self._split), rows

    def init(self) -> Any:
        """The state of every run before its first update."""

        def init(inputs: RunInputs) -> Any:
            return self.algorithm.init(inputs.config, self.shapes, jax.random.fold_in(inputs.key, 0))

        state = jax.jit(jax.vmap(init), out_shardings=self._split)(self.inputs)
        # Targets start as the online networks; a program that gives its input's memory away needs copies.
        return jax.jit(lambda tree: jax.tree.map(jnp.copy, tree), out_shardings=self._split)(state)

    def state_shapes(self) -> Any:
        return jax.eval_shape(self.init)

    def put(self, state: Any) -> Any:
        """A state from the host onto the fleet's devices."""
        return jax.device_put(state, self._split)

    def compile(self, updates: int) -> Any:
        """The program for a window of `updates`; compiled once."""
        if updates not in self._compiled:

            def run(inputs: RunInputs, state: Any, start: Array, rows: Array) -> tuple[Any, Metrics]:
                return train_window(self.algorithm, self.shapes, updates, inputs, state, start, rows)

            fleet = jax.vmap(run, in_axes=(0, 0, None, None))
            if self.mesh.size > 1:
                split, whole = PartitionSpec(RUNS), PartitionSpec()
                fleet = jax.shard_map(
                    fleet, mesh=self.mesh, in_specs=(split, split, whole, whole), out_specs=(split, split)
                )
            state = jax.tree.map(
                lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=self._split),
                self.state_shapes(),
            )
            start = jax.ShapeDtypeStruct((), jnp.int32, sharding=self._whole)
            lowered = jax.jit(fleet, donate_argnums=1).lower(self.inputs, state, start, self.rows)
            self._compiled[updates] = lowered.compile()
        return self._compiled[updates]

    def advance(self, state: Any, start: int, updates: int) -> tuple[Any, Metrics]:
        """Train every run for a window. Returns at once; `state` must not be used again."""
        number = jax.device_put(np.int32(start), self._whole)
        return self.compile(updates)(self.inputs, state, number, self.rows)

    def policies(self, state: Any) -> Any:
        """A copy of what acting needs, which stays valid while training goes on."""
        return jax.jit(lambda s: jax.tree.map(jnp.copy, self.algorithm.policy(s)))(state)

    def memory(self, updates: int) -> int:
        """Bytes a window needs on each device, data included, as the compiler says."""
        analysis = self.compile(updates).memory_analysis()
        if analysis is None:
            return self.rows.nbytes
        return int(
            analysis.argument_size_in_bytes
            + analysis.output_size_in_bytes
            + analysis.temp_size_in_bytes
            - analysis.alias_size_in_bytes
        )
