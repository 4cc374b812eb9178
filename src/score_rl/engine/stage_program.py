"""A stage before training as compiled programs over all runs: whole epochs, or parts of one."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from score_rl.algorithms.algorithm import Algorithm, Metrics, Shapes, Stage
from score_rl.engine import effort
from score_rl.engine.compilation import compiled_bytes, compiler_options
from score_rl.engine.inputs import RunInputs
from score_rl.engine.program import FleetMetrics, FleetProgram
from score_rl.nets.repetition import loop_in_blocks

EpochMetrics = dict[str, Shaped[Array, ""]]  # the metrics of a stage, and whether it was "working" and is "done"


class EpochProgress(NamedTuple):
    """How far an epoch of a stage is. Checkpoints hold it under these names."""

    working: Bool[Array, ""]  # else the run stays as it is
    updates: Int[Array, ""]  # in the whole epoch; none unless `working`
    sums: Metrics  # over the updates done


class RunEpoch:
    """One epoch of a stage for one run. A run that is done, or not `active`, stays as it is.

    How many updates that is depends on the run's data: the longest decides how long a fleet's epoch takes.
    """

    def __init__(
        self, algorithm: Algorithm, shapes: Shapes, number: int, inputs: RunInputs, rows: Float[Array, "rows columns"]
    ) -> None:
        self.stage, self.config, self.data = algorithm.stages[number], inputs.config, inputs.data(shapes, rows)
        self.key = jax.random.fold_in(stage_key(inputs, number), 1)

    def begin(self, state: Any, active: Bool[Array, ""]) -> EpochProgress:
        working = active & ~self.stage.done(self.config, state)
        updates = jnp.where(working, self.stage.updates(self.config, self.data), 0)
        measured = jax.eval_shape(lambda: self.stage.update(self.config, state, self.data, self.key)[1])
        sums = {name: jnp.zeros(value.shape, value.dtype) for name, value in measured.items()}
        return EpochProgress(working, updates, sums)

    def update(self, epoch: Int[Array, ""]) -> Callable[[Int[Array, ""], tuple[Any, Metrics]], tuple[Any, Metrics]]:
        """What a loop over the epoch's updates does in each."""
        stream = jax.random.fold_in(self.key, epoch)

        def update(index: Int[Array, ""], carry: tuple[Any, Metrics]) -> tuple[Any, Metrics]:
            state, sums = carry
            state, metrics = self.stage.update(self.config, state, self.data, jax.random.fold_in(stream, index))
            return state, {name: sums[name] + value for name, value in metrics.items()}

        return update

    def whole(self, state: Any, active: Bool[Array, ""], epoch: Int[Array, ""]) -> tuple[Any, EpochMetrics]:
        progress = self.begin(state, active)
        after, sums = loop_in_blocks(progress.updates, self.update(epoch), (state, progress.sums))
        return self.end(state, after, active, progress._replace(sums=sums))

    def part(
        self, state: Any, progress: EpochProgress, epoch: Int[Array, ""], first: Int[Array, ""], until: Int[Array, ""]
    ) -> tuple[Any, EpochProgress]:
        """The updates from `first` to before `until` of an epoch that has begun, as far as the run has so many."""
        update = self.update(epoch)

        def one(index: Int[Array, ""], carry: tuple[Any, Metrics]) -> tuple[Any, Metrics]:
            after = update(index, carry)
            return jax.tree.map(lambda new, old: jnp.where(index < progress.updates, new, old), after, carry)

        state, sums = jax.lax.fori_loop(first, until, one, (state, progress.sums))
        return state, progress._replace(sums=sums)

    def end(
        self, before: Any, after: Any, active: Bool[Array, ""], progress: EpochProgress
    ) -> tuple[Any, EpochMetrics]:
        """`before` is any state in this epoch: a run that is not working has but one."""
        after, judged = self.stage.judge(self.config, after, self.data)
        after = jax.tree.map(lambda new, old: jnp.where(progress.working, new, old), after, before)
        metrics = {name: value / jnp.maximum(progress.updates, 1) for name, value in progress.sums.items()} | judged
        return after, metrics | {"working": progress.working, "done": ~active | self.stage.done(self.config, after)}


def stage_key(inputs: RunInputs, number: int) -> PRNGKeyArray:
    return jax.random.fold_in(jax.random.fold_in(inputs.key, 3), number)


class StageProgram:
    """One stage of a fleet's algorithm, compiled over all runs.

    >>> stage = StageProgram(program, 0)
    >>> fitted = stage.init()
    >>> fitted, metrics = stage.run_epoch(fitted, active=np.ones(program.devices.width, bool), number=0)
    >>> state = stage.absorb(program.init(), stage.result(fitted))
    """

    def __init__(self, program: FleetProgram, number: int) -> None:
        self.program, self.devices, self.number = program, program.devices, number
        self.stage: Stage = program.algorithm.stages[number]

    # -- before, after ---------------------------------------------------------------------------------------------

    def init(self) -> Any:
        """The state of the stage for every run."""
        return self._copied(self._init(self.program.inputs, self.program.rows))

    def state_shapes(self) -> Any:
        return jax.eval_shape(self._init, self.program.inputs, self.program.rows)

    def result(self, state: Any) -> Any:
        """What the stage is for, such as a dynamics model."""
        return self._result(self.program.inputs, state, self.program.rows)

    def result_shapes(self) -> Any:
        return jax.eval_shape(self._result, self.program.inputs, self.state_shapes(), self.program.rows)

    def absorb(self, state: Any, result: Any) -> Any:
        """The state of training with the stage's result in it."""
        return self._copied(self._jit(self.stage.absorb, (0, 0))(state, result))

    def _copied(self, tree: Any) -> Any:
        """A program that gives its input's memory away needs arrays of its own."""
        return jax.jit(lambda tree: jax.tree.map(jnp.copy, tree), out_shardings=self.devices.split)(tree)

    # -- an epoch as one call --------------------------------------------------------------------------------------

    def epoch(self, state: Any, active: Bool[np.ndarray, " runs"], number: int) -> tuple[Any, FleetMetrics]:
        """One epoch of every active run. Returns at once; `state` must not be used again."""
        which = self.devices.put_split(np.asarray(active))
        epoch = self.devices.put_whole(np.int32(number))
        return self._epoch(self.program.inputs, state, which, epoch, self.program.rows)

    def epoch_of_run(
        self, inputs: RunInputs, state: Any, active: Array, number: Array, rows: Array
    ) -> tuple[Any, EpochMetrics]:
        """What is compiled over all runs."""
        return self._run_epoch(inputs, rows).whole(state, active, number)

    def memory(self) -> int | None:
        """Bytes an epoch needs on each device, data included, as the compiler says; None where it says nothing."""
        active = jax.ShapeDtypeStruct((self.devices.width,), jnp.bool_)
        number = jax.ShapeDtypeStruct((), jnp.int32)
        lowered = self._epoch.lower(self.program.inputs, self.state_shapes(), active, number, self.program.rows)
        return compiled_bytes(lowered.compile())

    # -- an epoch in parts -----------------------------------------------------------------------------------------
    # A CPU may take minutes for an epoch, so there it is cut as a window is. Where makes no difference, not even in
    # roundings: one program does any part, a whole epoch too, and is told from which update to which.

    @cached_property
    def updates_per_call(self) -> int | None:
        """How many updates of an epoch are one call on a CPU; elsewhere an epoch is one call."""
        if self.program.platform != "cpu":
            return None
        number = jax.ShapeDtypeStruct((), jnp.int32, sharding=self.devices.whole)
        arguments = self.state_shapes(), self.progress_shapes(), number, number, number
        part = self._part.trace(self.program.inputs, *arguments, self.program.rows)
        return max(int(effort.OPERATIONS_PER_CALL / effort.count_operations(part.jaxpr.jaxpr)), 1)

    def begin(self, state: Any, active: Bool[np.ndarray, " runs"]) -> EpochProgress:
        which = self.devices.put_split(np.asarray(active))
        return self._begin(self.program.inputs, state, which, self.program.rows)

    def progress_shapes(self) -> EpochProgress:
        active = jax.ShapeDtypeStruct((self.devices.width,), jnp.bool_)
        return jax.eval_shape(self._begin, self.program.inputs, self.state_shapes(), active, self.program.rows)

    def part(
        self, state: Any, progress: EpochProgress, number: int, first: int, until: int
    ) -> tuple[Any, EpochProgress]:
        """Some updates of an epoch that has begun. Returns at once; `state` must not be used again."""
        numbers = (self.devices.put_whole(np.int32(n)) for n in (number, first, until))
        return self._part(self.program.inputs, state, progress, *numbers, self.program.rows)

    def end(self, state: Any, progress: EpochProgress, active: Bool[np.ndarray, " runs"]) -> tuple[Any, FleetMetrics]:
        """What `epoch` gives, once all updates are done; `state` must not be used again."""
        which = self.devices.put_split(np.asarray(active))
        return self._end(self.program.inputs, state, progress, which, self.program.rows)

    def run_epoch(self, state: Any, active: Bool[np.ndarray, " runs"], number: int) -> tuple[Any, FleetMetrics]:
        """What `epoch` gives, in as many calls as the device wants; `state` must not be used again."""
        if self.updates_per_call is None:
            return self.epoch(state, active, number)
        progress = self.begin(state, active)
        updates = int(jax.device_get(progress.updates).max())
        for first in range(0, updates, self.updates_per_call):
            until = min(first + self.updates_per_call, updates)
            state, progress = self.part(state, progress, number, first, until)
        return self.end(state, progress, active)

    # -- what is compiled ------------------------------------------------------------------------------------------

    def _jit(self, function: Callable[..., Any], in_axes: tuple[int | None, ...], **options: Any) -> Any:
        return jax.jit(
            self.devices.over_runs(function, in_axes),
            out_shardings=self.devices.split,
            compiler_options=compiler_options(self.program.platform),
            **options,
        )

    def _run_epoch(self, inputs: RunInputs, rows: Array) -> RunEpoch:
        return RunEpoch(self.program.algorithm, self.program.shapes, self.number, inputs, rows)

    @cached_property
    def _init(self) -> Any:
        shapes, number = self.program.shapes, self.number

        def init(inputs: RunInputs, rows: Array) -> Any:
            key = jax.random.fold_in(stage_key(inputs, number), 0)
            return self.stage.init(inputs.config, shapes, inputs.data(shapes, rows), key)

        return self._jit(init, (0, None))

    @cached_property
    def _epoch(self) -> Any:
        return self._jit(self.epoch_of_run, (0, 0, 0, None, None), donate_argnums=1)

    @cached_property
    def _begin(self) -> Any:
        def begin(inputs: RunInputs, state: Any, active: Array, rows: Array) -> EpochProgress:
            return self._run_epoch(inputs, rows).begin(state, active)

        return self._jit(begin, (0, 0, 0, None))

    @cached_property
    def _part(self) -> Any:
        def part(
            inputs: RunInputs, state: Any, progress: EpochProgress, number: Array, first: Array, until: Array,
            rows: Array,
        ) -> tuple[Any, EpochProgress]:  # fmt: skip
            return self._run_epoch(inputs, rows).part(state, progress, number, first, until)

        return self._jit(part, (0, 0, 0, None, None, None, None), donate_argnums=1)

    @cached_property
    def _end(self) -> Any:
        def end(
            inputs: RunInputs, state: Any, progress: EpochProgress, active: Array, rows: Array
        ) -> tuple[Any, EpochMetrics]:
            return self._run_epoch(inputs, rows).end(state, state, active, progress)

        return self._jit(end, (0, 0, 0, 0, None), donate_argnums=1)

    @cached_property
    def _result(self) -> Any:
        def result(inputs: RunInputs, state: Any, rows: Array) -> Any:
            return self.stage.result(inputs.config, state, inputs.data(self.program.shapes, rows))

        return self._jit(result, (0, 0, None))
