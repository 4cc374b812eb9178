"""A stage that fits an ensemble by regression, with rows held out and early stopping: MOPO's and MOReL's models.

It follows the published code of MOPO. After each epoch every network is judged on the held-out rows. A network whose
error has fallen by more than 1 % is kept as its best. Fitting stops once no network has improved for some epochs, and
every network goes back to its best. Rows are drawn with replacement, and an epoch has as many batches as cover them.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

from score_rl.algorithms.algorithm import Batch, Data, Metrics, Shapes, Stage
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step

IMPROVEMENT = 0.01  # less than this share of the error is none (published code of MOPO)
HELD_OUT_SHARE = 0.2  # of the rows, at most (published code of MOPO)
WORST = 1e10  # the error of a network that was never judged


class Fit(NamedTuple):
    networks: Any  # every array with a leading axis of members
    shared: Any  # parameters that belong to no single network
    optimiser: OptimiserState
    best: Any  # each network as it was at its least held-out error
    errors: Float[Array, " members"]  # that error
    stale: Int[Array, ""]  # epochs since any network improved
    held_out: Int[Array, " rows"]  # in rising order; padded with rows that do not exist
    resampling: UInt32[Array, " members"]  # fixes which rows each network's bootstrap sample holds


def hold_out(key: PRNGKeyArray, length: Int[Array, ""], rows: int) -> Int[Array, " rows"]:
    """One row at random from each of `rows` equal parts of the data. At most a fifth of all rows is held out.

    If that is fewer than `rows`, the rest of the result are rows beyond the end of the data.
    """
    count = jnp.maximum(jnp.minimum(rows, (HELD_OUT_SHARE * length).astype(jnp.int32)), 1)
    part = jnp.arange(rows)
    width, wider = length // count, length % count
    first, size = part * width + jnp.minimum(part, wider), width + (part < wider)
    return jnp.where(part < count, first + jax.random.randint(key, (rows,), 0, size), length + part)


def not_held_out(held_out: Int[Array, " rows"], numbers: Int[Array, "*any"]) -> Int[Array, "*any"]:
    """Rows that are not held out: number n is the n-th of them."""
    gaps = held_out - jnp.arange(held_out.shape[0])
    return numbers + jnp.searchsorted(gaps, numbers, side="right", method="scan_unrolled")


def scrambled(x: UInt32[Array, "*any"]) -> UInt32[Array, "*any"]:
    """MurmurHash3's finaliser. It computes the rows of a bootstrap sample, so that none has to be stored."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = (x ^ (x >> shift)) * jnp.uint32(factor)
    return x ^ (x >> 16)


def draw_rows(
    config: Any, fit: Fit, data: Data, key: PRNGKeyArray, members: int, bootstrap: bool
) -> Int[Array, "members batch"]:
    """Training rows for every network, never held-out ones. With `bootstrap` each network has a sample of its own."""
    usable = data.length - (fit.held_out < data.length).sum()
    numbers = jax.random.randint(key, (members, config.batch_size), 0, usable)
    if bootstrap:
        picked = scrambled(numbers.astype(jnp.uint32) ^ fit.resampling[:, None])
        numbers = (picked % usable.astype(jnp.uint32)).astype(jnp.int32)
    return not_held_out(fit.held_out, numbers)


def batch_for_each(data: Data, rows: Int[Array, "members batch"]) -> Batch:
    """The transitions of these rows; every array with a leading axis of members."""
    batch = data.take(rows.reshape(-1))
    return jax.tree.map(lambda column: column.reshape(rows.shape + column.shape[1:]), batch)


@dataclasses.dataclass(frozen=True)
class Fitting:
    """What is fitted, and how. `stage` makes a `Stage` of it."""

    name: str
    settings: tuple[str, ...]  # the fields of Config that decide its result, beside those of every fitting
    epochs: Callable[[Any], int]  # (config) -> at most
    members: Callable[[Any], int]  # (config) -> networks
    learning_rate: Callable[[Any], Float[Array, ""]]
    init: Callable[[Any, Shapes, PRNGKeyArray], tuple[Any, Any]]  # -> networks, shared parameters
    loss: Callable[[Any, tuple[Any, Any], Data, Batch], Float[Array, ""]]  # of a batch for each network
    errors: Callable[[Any, tuple[Any, Any], Data, Batch], Float[Array, "members batch"]]  # of one batch for all
    result: Callable[[Any, Fit, Data], Any]
    absorb: Callable[[Any, Any], Any]  # (State of training, result) -> State
    counted: Callable[[Any], int] = lambda config: 1  # the reported error is the mean over so many best networks
    bootstrap: bool = False

    def stage(self) -> Stage:
        return Stage(
            name=self.name,
            settings=(*self.settings, "held_out", "patience", "batch_size", "normalise_states", "reward_scaling"),
            epochs=self.epochs,
            updates=self._updates,
            init=self._start,
            update=self._update,
            judge=self._judge,
            done=lambda config, fit: fit.stale >= config.patience,
            result=self.result,
            absorb=self.absorb,
        )

    def _start(self, config: Any, shapes: Shapes, data: Data, key: PRNGKeyArray) -> Fit:
        init_key, hold_key, resample_key = jax.random.split(key, 3)
        networks, shared = self.init(config, shapes, init_key)
        return Fit(
            networks=networks,
            shared=shared,
            optimiser=adam_init((networks, shared)),
            best=networks,
            errors=jnp.full(self.members(config), WORST, float),
            stale=jnp.zeros((), jnp.int32),
            held_out=hold_out(hold_key, data.length, config.held_out),
            resampling=jax.random.bits(resample_key, (self.members(config),), jnp.uint32),
        )

    def _updates(self, config: Any, data: Data) -> Int[Array, ""]:
        held = jnp.minimum(config.held_out, (HELD_OUT_SHARE * data.length).astype(jnp.int32))
        return -(-(data.length - held) // config.batch_size)

    def _update(self, config: Any, fit: Fit, data: Data, key: PRNGKeyArray) -> tuple[Fit, Metrics]:
        batch = batch_for_each(data, draw_rows(config, fit, data, key, self.members(config), self.bootstrap))
        parameters = fit.networks, fit.shared
        value, gradients = jax.value_and_grad(lambda p: self.loss(config, p, data, batch))(parameters)
        (networks, shared), optimiser = adam_step(parameters, gradients, fit.optimiser, self.learning_rate(config))
        return fit._replace(networks=networks, shared=shared, optimiser=optimiser), {"loss": value}

    def _judge(self, config: Any, fit: Fit, data: Data) -> tuple[Fit, Metrics]:
        exists = fit.held_out < data.length
        batch = data.take(jnp.where(exists, fit.held_out, 0))
        each = jnp.where(exists[None], self.errors(config, (fit.networks, fit.shared), data, batch), 0)
        errors = each.sum(axis=1) / exists.sum()
        improved = (fit.errors - errors) / fit.errors > IMPROVEMENT
        fit = fit._replace(
            best=jax.tree.map(lambda new, old: jnp.where(_beside(improved, new), new, old), fit.networks, fit.best),
            errors=jnp.where(improved, errors, fit.errors),
            stale=jnp.where(improved.any(), 0, fit.stale + 1),
        )
        return fit, {"held_out_error": jnp.sort(errors)[: self.counted(config)].mean()}


def _beside(members: Bool[Array, " members"], partner: Array) -> Array:
    return members.reshape(members.shape + (1,) * (partner.ndim - 1))
