"""A fleet as one compiled program: inputs onto the devices, windows of updates compiled over all runs."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Shaped

from score_rl.algorithms.algorithm import Metrics, cycle
from score_rl.engine import effort
from score_rl.engine.batches import shapes_of
from score_rl.engine.compilation import bfloat16_units, compiled_bytes, compiler_options
from score_rl.engine.devices import FleetDevices
from score_rl.engine.inputs import RunInputs, packed_rows, stacked_inputs
from score_rl.engine.runs import Run, group_fleets
from score_rl.engine.window import train_window
from score_rl.errors import InputError
from score_rl.nets.kernels.choice import arithmetic_for
from score_rl.nets.precision import Precision, arithmetic

FleetMetrics = dict[str, Shaped[Array, " runs"]]


class FleetProgram:
    """The runs of one fleet on their devices. Every state and every metric has an axis of runs in front.

    >>> program = FleetProgram(runs)
    >>> state = program.init()
    >>> state, metrics = program.advance(state, start=0, updates=100)
    """

    def __init__(
        self,
        runs: Sequence[Run],
        devices: Sequence[jax.Device] | None = None,
        precision: Precision = "float32",
    ) -> None:
        if len(group_fleets(runs)) != 1:
            raise InputError(
                f"{len(runs)} runs of {len(group_fleets(runs))} shapes are no fleet; give runs of one algorithm whose "
                "data and static settings agree (`group_fleets` sorts them)."
            )
        self.runs = list(runs)
        self.algorithm = runs[0].algorithm
        self.shapes = shapes_of(runs[0].dataset)
        self.devices = FleetDevices(len(runs), devices)
        self.platform = self.devices.first.platform
        units = bfloat16_units() if precision == "bfloat16" and self.platform != "gpu" else None
        self.arithmetic = arithmetic_for(precision, self.devices.first, self.devices.runs_on_each, units)
        self.rows = self.devices.put_whole(packed_rows(self.runs))
        self.inputs = self.devices.put_split(stacked_inputs(self.devices.filled(self.runs)))
        self._compiled: dict[int, Any] = {}  # by the updates of a window
        self._traced: dict[int, Any] = {}  # not yet compiled

    def init(self) -> Any:
        """The state of every run before its first update, and before any stage."""

        def init(inputs: RunInputs) -> Any:
            return self.algorithm.init(inputs.config, self.shapes, jax.random.fold_in(inputs.key, 0))

        state = jax.jit(jax.vmap(init), out_shardings=self.devices.split)(self.inputs)
        # Targets start as the online networks; a program that gives its input's memory away needs copies.
        return jax.device_put(state, self.devices.split, may_alias=False)

    def state_shapes(self) -> Any:
        return jax.eval_shape(self.init)

    def put(self, state: Any) -> Any:
        """A state from the host onto the fleet's devices."""
        return self.devices.put_split(state)

    def advance(self, state: Any, start: int, updates: int) -> tuple[Any, FleetMetrics]:
        """Train every run for a window of `updates` from update number `start`; metrics are means over the window.

        Returns at once, before the work is done. `state` must not be used again.
        """
        number = self.devices.put_whole(np.int32(start))
        return self.compile(updates)(self.inputs, state, number, self.rows)

    def compile(self, updates: int) -> Any:
        """The program for a window of `updates`; compiled once."""
        if updates not in self._compiled:
            traced = self._traced.pop(updates, None) or self._trace(updates)
            options = compiler_options(self.platform, padded=self.arithmetic.bfloat16_library)
            with arithmetic(self.arithmetic):
                self._compiled[updates] = traced.lower().compile(compiler_options=options)
        return self._compiled[updates]

    def _trace(self, updates: int) -> Any:
        def run(inputs: RunInputs, state: Any, start: Array, rows: Array) -> tuple[Any, Metrics]:
            return train_window(self.algorithm, self.shapes, updates, inputs, state, start, rows)

        split, whole = self.devices.split, self.devices.whole
        fleet = self.devices.over_runs(run, (0, 0, None, None))
        state = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=split), self.state_shapes()
        )
        start = jax.ShapeDtypeStruct((), jnp.int32, sharding=whole)
        with arithmetic(self.arithmetic):
            # Split as it came in, said and not inferred: the next window takes nothing else.
            program = jax.jit(fleet, donate_argnums=1, out_shardings=split)
            return program.trace(self.inputs, state, start, self.rows)

    def operations(self, updates: int) -> float:
        """How much arithmetic a window of `updates` is."""
        if updates not in self._traced:
            self._traced[updates] = self._trace(updates)
        return effort.count_operations(self._traced[updates].jaxpr.jaxpr)

    def updates_per_call(self, window: int) -> int:
        """How many of a window's updates are one call of the program.

        On an accelerator that is all of them. A CPU may take minutes for a window. Between two calls progress is
        shown, a stop is heard and a checkpoint is written, so there a call is at most `effort.OPERATIONS_PER_CALL`.
        """
        if self.platform != "cpu":
            return window
        turns = cycle(self.algorithm, self.runs[0].config)
        most = effort.OPERATIONS_PER_CALL * window / self.operations(window)
        lengths = [length for length in range(turns, window + 1, turns) if window % length == 0]
        chosen = max((length for length in lengths if length <= most), default=turns)
        if chosen != window:
            del self._traced[window]
        return chosen

    def policies(self, state: Any) -> Any:
        """A copy of what acting needs, which stays valid while training goes on."""
        return self._copied_policies(state)

    @cached_property
    def _copied_policies(self) -> Any:
        policy = self.algorithm.policy  # not this program: a compiled function that knew it would keep its data alive
        return jax.jit(lambda state: jax.tree.map(jnp.copy, policy(state)))

    def memory(self, updates: int) -> int:
        """Bytes a window needs on each device, data included, as the compiler says."""
        found = compiled_bytes(self.compile(updates))
        return self.rows.nbytes if found is None else found
