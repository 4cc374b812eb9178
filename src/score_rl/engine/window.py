"""A window of updates of one run, as JAX traces it: draw batches, update, average the metrics."""

import operator
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Shapes, cycle
from score_rl.engine.batches import draw_batch
from score_rl.engine.inputs import RunInputs
from score_rl.nets.precision import chosen_arithmetic

DRAWN_TOGETHER = 32  # updates whose batches are drawn in one go
UNROLLED = 2  # cycles in the loop's body of a fleet whose kernels take weights in bfloat16
LARGE_STATE, UNROLLED_IF_LARGE = 1_000_000_000, 5  # the same for a fleet whose state has so many bytes


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

    Random numbers depend on the run and the update's number alone. Neither the length of a window nor an interruption
    between two changes them.
    """
    config, turns = inputs.config, algorithm.turns(inputs.config)
    stream = jax.random.fold_in(inputs.key, 1)
    if updates % cycle(algorithm, config):
        raise ValueError(f"a window of {updates} updates is not a multiple of {cycle(algorithm, config)}")

    def drawn_for(step: Int[Array, ""]) -> tuple[Batch, PRNGKeyArray]:
        sample_key, update_key = jax.random.split(jax.random.fold_in(stream, step))
        drawn = jax.random.randint(sample_key, (config.batch_size,), 0, inputs.length)
        return draw_batch(inputs.treatment, shapes, rows, inputs.offset, inputs.length, drawn), update_key

    names: list[str] = []  # of the metrics, known once a cycle is traced

    def one_cycle(state: Any, drawn: tuple[Batch, Key[Array, " turns"]]) -> tuple[Any, Float[Array, " metrics"]]:
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
        # Batches for many updates are drawn at once: in each update it would be a dozen small launches.
        drawn = jax.vmap(jax.vmap(drawn_for))(steps)
        return jax.lax.scan(one_cycle, state, drawn, unroll=unrolled_cycles(state, *steps.shape))

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


def unrolled_cycles(state: Any, cycles: int, turns: int) -> int:
    """How many of a loop's `cycles` its body holds.

    At the beginning of the body, weights are read to be rounded. Further on, Adam's step writes both forms at once.
    That is worth more the more weights there are, and a longer body compiles longer.
    """
    runs = chosen_arithmetic().kernel_runs
    if runs <= 1:
        return 1
    held = runs * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    most = UNROLLED if held < LARGE_STATE else max(UNROLLED, UNROLLED_IF_LARGE // turns)
    return max(number for number in range(1, most + 1) if cycles % number == 0)
