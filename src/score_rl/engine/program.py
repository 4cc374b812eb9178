"""The compiled program: sampling and updates, `scan` over updates, `vmap` over runs, shards over devices."""

import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Data, Metrics, Shapes, Spread, Statistics, cycle
from score_rl.data.dataset import Dataset
from score_rl.data.treatment import Treatment, fit_treatment
from score_rl.engine import effort
from score_rl.engine.compilation import bfloat16_units, compiler_options, is_hopper, kernel_memory
from score_rl.engine.runs import Run
from score_rl.nets.kernels.fused import Kernels
from score_rl.nets.kernels.layers import tiles_for
from score_rl.nets.kernels.padded import FORMS
from score_rl.nets.kernels.passes import Passes
from score_rl.nets.kernels.streamed import Stream
from score_rl.nets.precision import Arithmetic, Precision, arithmetic, chosen_arithmetic

RUNS = "runs"  # the mesh axis
ALIGNED_WIDTH = 64  # of hidden layers on a GPU
DRAWN_TOGETHER = 32  # updates whose batches are drawn in one go
WRITTEN_OUT = 2  # cycles in the loop's body of a fleet whose kernels take weights in bfloat16
LARGE, WRITTEN_OUT_IF_LARGE = 1_000_000_000, 5  # the same for a fleet whose state has so many bytes


def pack_rows(dataset: Dataset) -> Float[np.ndarray, "rows columns"]:
    """One transition per row, so that drawing a batch is one gather: s, a, r, s', terminal, followed."""
    columns = (
        dataset.observations,
        dataset.actions,
        dataset.rewards[:, None],
        dataset.next_observations,
        dataset.terminals[:, None],
        dataset.followed()[:, None],
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


def describe(dataset: Dataset, treatment: Treatment) -> Statistics:
    """Of all rows, computed in float64, stored in float32."""

    def exact(numbers: Any) -> Any:
        return np.asarray(numbers, np.float64)

    treat = Treatment(*map(exact, treatment))
    observations = treat.observe(exact(dataset.observations))
    changes = treat.observe(exact(dataset.next_observations)) - observations
    actions, rewards = treat.action_in(exact(dataset.actions)), treat.reward(exact(dataset.rewards))

    def spread(*columns: Any) -> Spread:
        table = np.concatenate(columns, axis=1)
        mean = table.mean(axis=0)
        numbers = (mean, table.std(axis=0), np.abs(table - mean[None]).mean(axis=0))
        return Spread(*(number.astype(np.float32) for number in numbers))

    return Statistics(inputs=spread(observations, actions), outcomes=spread(rewards[:, None], changes))


class Overview(NamedTuple):
    """What stages and refreshes know of a data set beside its rows."""

    statistics: Statistics
    starts: Int[Array, " episodes"]  # as long as the fleet's largest number of episodes
    episodes: Int[Array, ""]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RunInputs:
    """Per run: its traced settings, its treatment, where its data lies and its random key."""

    config: Any
    treatment: Treatment
    offset: Int[Array, ""]
    length: Int[Array, ""]
    key: PRNGKeyArray
    overview: Overview | None = None  # where the algorithm has stages or refreshes

    def data(self, shapes: Shapes, rows: Float[Array, "rows columns"]) -> Data:
        assert self.overview is not None

        def take(drawn: Int[Array, " batch"]) -> Batch:
            return draw_batch(self.treatment, shapes, rows, self.offset, self.length, drawn)

        return Data(self.length, take, self.overview.starts, self.overview.episodes, self.overview.statistics)


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
    config, turns = inputs.config, algorithm.turns(inputs.config)
    stream = jax.random.fold_in(inputs.key, 1)
    if updates % cycle(algorithm, config):
        raise ValueError(f"a window of {updates} updates is not a multiple of {cycle(algorithm, config)}")

    def drawn_for(step: Int[Array, ""]) -> tuple[Batch, PRNGKeyArray]:
        sample_key, update_key = jax.random.split(jax.random.fold_in(stream, step))
        drawn = jax.random.randint(sample_key, (config.batch_size,), 0, inputs.length)
        return draw_batch(inputs.treatment, shapes, rows, inputs.offset, inputs.length, drawn), update_key

    names: list[str] = []  # of the metrics, found while tracing

    def one_cycle(state: Any, drawn: tuple[Batch, PRNGKeyArray]) -> tuple[Any, Float[Array, " metrics"]]:
        seen: dict[str, list[Array]] = {}
        for turn in range(turns):
            batch, key = jax.tree.map(operator.itemgetter(turn), drawn)
            state, metrics = algorithm.update(config, state, batch, key, turn)
            for name, value in metrics.items():
                seen.setdefault(name, []).append(value)
        names.extend(name for name in seen if name not in names)
        # One array of all metrics: written by one launch where each would be one.
        return state, jnp.stack([jnp.stack(seen[name]).mean() for name in names])

    def block(state: Any, steps: Int[Array, "cycles turns"]) -> tuple[Any, Float[Array, "cycles metrics"]]:
        # Drawing for many updates at once: small work that would otherwise be a dozen launches in each.
        return jax.lax.scan(one_cycle, state, jax.vmap(jax.vmap(drawn_for))(steps), unroll=_written_out(state, steps))

    def cycles(state: Any, first: Int[Array, ""], number: int) -> tuple[Any, Metrics]:
        together = max(n for n in range(1, DRAWN_TOGETHER // turns + 2) if number // turns % n == 0)
        steps = first + jnp.arange(number).reshape(-1, together, turns)
        state, metrics = jax.lax.scan(block, state, steps)
        return state, dict(zip(names, metrics.mean(axis=(0, 1)), strict=True))

    if algorithm.refresh is None:
        return cycles(state, start, updates)
    refresh, every = algorithm.refresh, cycle(algorithm, config)
    data = inputs.data(shapes, rows)

    def refreshed(state: Any, first: Int[Array, ""]) -> tuple[Any, Metrics]:
        key = jax.random.fold_in(jax.random.fold_in(inputs.key, 2), first)
        state, news = refresh(config, state, data, key)
        state, metrics = cycles(state, first, every)
        return state, metrics | news

    state, metrics = jax.lax.scan(refreshed, state, start + every * jnp.arange(updates // every))
    return state, {name: values.mean() for name, values in metrics.items()}


def _written_out(state: Any, steps: Int[Array, "cycles turns"]) -> int:
    """How many cycles a loop's body holds. At its beginning weights are read to be rounded; further on, Adam's step
    writes both forms at once. That is worth more the more weights there are, and a longer body compiles longer."""
    kernels, (cycles, turns) = chosen_arithmetic().kernels, steps.shape
    if kernels is None or kernels.runs == 1:
        return 1
    held = kernels.runs * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    most = WRITTEN_OUT if held < LARGE else max(WRITTEN_OUT, WRITTEN_OUT_IF_LARGE // turns)
    return max(number for number in range(1, most + 1) if cycles % number == 0)


def _without_axis(function: Callable[..., Any], in_axes: tuple[int | None, ...]) -> Callable[..., Any]:
    """What `vmap` over an axis of length one computes, without the axis: on a CPU that is a tenth faster."""

    def of_one(*arguments: Any) -> Any:
        inner = [
            argument if axis is None else jax.tree.map(lambda leaf: leaf[0], argument)
            for argument, axis in zip(arguments, in_axes, strict=True)
        ]
        return jax.tree.map(lambda leaf: leaf[None], function(*inner))

    return of_one


def arithmetic_for(precision: Precision, device: jax.Device, runs: int) -> Arithmetic:
    """For so many runs on each device of this kind."""
    if device.platform != "gpu":
        if precision == "float32":
            return Arithmetic()
        units = bfloat16_units()
        return Arithmetic(precision, padded=None if units is None else FORMS[units], emulated=True)
    memory = kernel_memory(device)
    if precision == "float32" or not memory:
        return Arithmetic(precision, multiple=ALIGNED_WIDTH)
    streamed, passes = (Stream(runs), Passes(runs)) if is_hopper(device) else (None, None)
    return Arithmetic(precision, Kernels(runs, memory), tiles_for(runs), streamed, passes, multiple=ALIGNED_WIDTH)


class FleetProgram:
    """A fleet's inputs on the device, and its functions compiled over all runs."""

    def __init__(
        self,
        runs: Sequence[Run],
        devices: Sequence[jax.Device] | None = None,
        precision: Precision = "float32",
    ) -> None:
        self.runs = list(runs)
        self.algorithm = runs[0].algorithm
        self.shapes = Shapes(runs[0].dataset.observation_dim, runs[0].dataset.action_dim)
        devices = list(devices if devices is not None else jax.local_devices())[: len(runs)]
        self.mesh = Mesh(np.array(devices), (RUNS,))
        # Shards are of equal size: the last run is repeated, and the repetitions are never reported.
        self.width = -(-len(runs) // len(devices)) * len(devices)
        self._split = NamedSharding(self.mesh, PartitionSpec(RUNS))
        self._whole = NamedSharding(self.mesh, PartitionSpec())
        self.platform = devices[0].platform
        self.arithmetic = arithmetic_for(precision, devices[0], self.width // len(devices))
        self.inputs, self.rows = self._upload()
        self._compiled: dict[int, Any] = {}
        self._traced: dict[int, Any] = {}  # not yet compiled

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
            overview=self._overview(padded, treatments) if self.algorithm.stages or self.algorithm.refresh else None,
        )
        return jax.device_put(inputs, self._split), rows

    @staticmethod
    def _overview(padded: Sequence[Run], treatments: Mapping[str, Treatment]) -> Overview:
        datasets = {run.dataset.checksum: run.dataset for run in padded}
        statistics = {name: describe(dataset, treatments[name]) for name, dataset in datasets.items()}
        most = max(len(dataset.trajectories) for dataset in datasets.values())
        starts = {
            name: np.pad(dataset.trajectories[:, 0].astype(np.int32), (0, most - len(dataset.trajectories)))
            for name, dataset in datasets.items()
        }
        checksums = [run.dataset.checksum for run in padded]
        return Overview(
            statistics=jax.tree.map(lambda *v: np.stack(v), *(statistics[name] for name in checksums)),
            starts=jnp.asarray([starts[name] for name in checksums]),
            episodes=jnp.asarray([len(datasets[name].trajectories) for name in checksums], jnp.int32),
        )

    def init(self) -> Any:
        """The state of every run before its first update, and before any stage."""

        def init(inputs: RunInputs) -> Any:
            return self.algorithm.init(inputs.config, self.shapes, jax.random.fold_in(inputs.key, 0))

        state = jax.jit(jax.vmap(init), out_shardings=self._split)(self.inputs)
        # Targets start as the online networks; a program that gives its input's memory away needs copies.
        return jax.device_put(state, self._split, may_alias=False)

    def state_shapes(self) -> Any:
        return jax.eval_shape(self.init)

    def put(self, state: Any) -> Any:
        """A state from the host onto the fleet's devices."""
        return jax.device_put(state, self._split)

    def compile(self, updates: int) -> Any:
        """The program for a window of `updates`; compiled once."""
        if updates not in self._compiled:
            traced = self._traced.pop(updates, None) or self._trace(updates)
            options = compiler_options(self.platform, padded=self.arithmetic.padded is not None)
            with arithmetic(self.arithmetic):
                self._compiled[updates] = traced.lower().compile(compiler_options=options)
        return self._compiled[updates]

    def _trace(self, updates: int) -> Any:
        def run(inputs: RunInputs, state: Any, start: Array, rows: Array) -> tuple[Any, Metrics]:
            return train_window(self.algorithm, self.shapes, updates, inputs, state, start, rows)

        fleet = self._over_runs(run, (0, 0, None, None))
        state = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=self._split),
            self.state_shapes(),
        )
        start = jax.ShapeDtypeStruct((), jnp.int32, sharding=self._whole)
        with arithmetic(self.arithmetic):
            # Split as it came in, said and not inferred: the next window takes nothing else.
            program = jax.jit(fleet, donate_argnums=1, out_shardings=self._split)
            return program.trace(self.inputs, state, start, self.rows)

    def piece(self, window: int) -> int:
        """How many of a window's updates are one call: all of them on an accelerator. A CPU may take minutes for them,
        and between two calls progress is shown, a stop is heard and a checkpoint is written."""
        if self.platform != "cpu":
            return window
        turns = cycle(self.algorithm, self.runs[0].config)
        self._traced[window] = traced = self._trace(window)
        most = effort.MOST_OPERATIONS * window / effort.operations(traced.jaxpr.jaxpr)
        lengths = [length for length in range(turns, window + 1, turns) if window % length == 0]
        piece = max((length for length in lengths if length <= most), default=turns)
        if piece != window:
            del self._traced[window]
        return piece

    def _over_runs(self, function: Callable[..., Any], in_axes: tuple[int | None, ...]) -> Callable[..., Any]:
        """A function of one run as one of the fleet: each device has its own runs and asks no other."""
        alone = self.width == self.mesh.size  # one run on each device
        fleet = _without_axis(function, in_axes) if alone else jax.vmap(function, in_axes=in_axes)
        if self.mesh.size == 1:
            return fleet
        specs = tuple(PartitionSpec() if axis is None else PartitionSpec(RUNS) for axis in in_axes)
        # Unchecked: what a loop begins with may be the same on all devices and differ after its first round.
        return jax.shard_map(fleet, mesh=self.mesh, in_specs=specs, out_specs=PartitionSpec(RUNS), check_vma=False)

    def advance(self, state: Any, start: int, updates: int) -> tuple[Any, Metrics]:
        """Train every run for a window. Returns at once; `state` must not be used again."""
        number = jax.device_put(np.int32(start), self._whole)
        return self.compile(updates)(self.inputs, state, number, self.rows)

    def policies(self, state: Any) -> Any:
        """A copy of what acting needs, which stays valid while training goes on."""
        return self._copied_policies(state)

    @cached_property
    def _copied_policies(self) -> Any:
        policy = self.algorithm.policy  # not this program: a compiled function that knew it would keep its data alive
        return jax.jit(lambda state: jax.tree.map(jnp.copy, policy(state)))

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
