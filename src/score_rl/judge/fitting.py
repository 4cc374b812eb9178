"""The evaluators: fitted Q, the behaviour's density and the dynamics model, each trained as a fleet on the engine."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from score_rl.algorithms.settings import make_config
from score_rl.data.dataset import Dataset
from score_rl.data.treatment import Treatment
from score_rl.engine.memory import free_memory
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.engine.training import run_stages
from score_rl.judge.candidates import Candidates
from score_rl.judge.density import DENSITY, density
from score_rl.judge.dynamics import DYNAMICS, Model
from score_rl.judge.evidence import Evidence, bootstrap_units
from score_rl.judge.fitted_q import FITTED_Q, Table, values

Advance = Callable[[int], None]  # so many updates of so many policies are done
BEHAVIOUR = "behaviour"
MODEL_BATCH = 256
PATIENCE = 5  # epochs of a large data set without improvement that end the fitting of the model
MEMORY_SHARE = 0.5  # of what is free, for the tables and critics of one fleet


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long and how large the evaluators are."""

    updates: int  # of each policy's critics, from the behaviour's on
    behaviour_updates: int = 20_000  # of the behaviour's critics, with which all others start
    critics: int = 4
    hidden: tuple[int, ...] = (64, 64)
    batch_size: int = 128
    tau: float = 0.1
    learning_rate: float = 1e-3
    density_updates: int = 3_000
    models: int = 5
    model_hidden: tuple[int, ...] = (64, 64)
    model_epochs: int = 60
    model_updates: int = 4_000  # at least, where nothing ends the fitting early: small data have short epochs
    rows: int = 50_000  # that evaluators are fitted to, at most


@dataclasses.dataclass(frozen=True)
class FittedQ:
    """Critics of several policies and of the behaviour, which comes last."""

    critics: Any  # stacked over policies
    treatment: Treatment  # of observations and actions
    centre: float
    scale: float
    discount: float

    def per_step(
        self, observations: Float[np.ndarray, "batch observation"], actions: Float[np.ndarray, "policies batch action"]
    ) -> Float[np.ndarray, "policies members batch"]:
        """(1 - γ)·Q_i(s, a), in the units of the recorded rewards: what is earned per step from here on."""
        seen = self.treatment.observe(jnp.asarray(observations, jnp.float32))
        acted = self.treatment.action_in(jnp.asarray(actions, jnp.float32))
        q = np.asarray(_values_of_policies(self.critics, seen, acted), np.float64)
        return q * self.scale * (1 - self.discount) + self.centre


@jax.jit
def _values_of_policies(critics: Any, observations: Any, actions: Any) -> Any:
    return jax.lax.map(lambda each: values(each[0], observations, each[1]), (critics, actions))


def fit_q(
    dataset: Dataset, candidates: Candidates, discount: float, effort: Effort, advance: Advance = lambda done: None
) -> FittedQ:
    """Critics for every candidate and for the behaviour.

    The behaviour's are fitted first, and all others start with them. Values travel backwards slowly, by 1/(1 - γ) and
    more updates. So what too few updates leave out is a difference from the behaviour, and not all that ends.
    """
    centre, scale = Evidence(dataset, discount).recorded_value(), float(dataset.rewards.std()) or 1.0
    least, most = _value_bounds(dataset, discount)
    config = make_config(
        FITTED_Q,
        {
            "discount": discount, "tau": effort.tau, "learning_rate": effort.learning_rate, "centre": centre,
            "scale": scale, "least": (least - centre / (1 - discount)) / scale,
            "most": (most - centre / (1 - discount)) / scale, "critics": effort.critics, "hidden": effort.hidden,
            "batch_size": effort.batch_size, "rows": len(dataset),
        },
    )  # fmt: skip
    actions, known = _next_actions(dataset, candidates)
    units: Any = bootstrap_units(dataset)  # on the host until they are stacked
    tables = [Table(*each, units) for each in zip(actions, known, strict=True)]
    first, treatment = _fit_critics(dataset, config, tables[-1:], None, effort.behaviour_updates, advance)
    parts, width = [], _policies_at_once(dataset, effort)
    for start in range(0, len(tables), width):
        chosen = tables[start : start + width]
        parts.append(_fit_critics(dataset, config, chosen, first, effort.updates, _times(len(chosen), advance))[0])
    critics = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    return FittedQ(critics, treatment, centre, scale, discount)


def _fit_critics(
    dataset: Dataset, config: Any, tables: Sequence[Table], first: Any, updates: int, advance: Advance
) -> tuple[Any, Treatment]:
    """The critics of these policies side by side, on the host; they start as the `first` where those are given."""
    program = FleetProgram([Run(f"policy {number}", FITTED_Q, dataset, 0, config) for number in range(len(tables))])
    filled = program.devices.filled(list(tables))
    table = Table(
        next_actions=jnp.asarray(np.stack([each.next_actions for each in filled]), jnp.float32),
        known=jnp.asarray(np.stack([each.known for each in filled]), jnp.float32),
        trajectories=jnp.asarray(np.stack([each.trajectories for each in filled]), jnp.int32),
    )
    state = program.init()._replace(table=program.put(table))
    if first is not None:
        own, followed = (jax.tree.map(lambda leaf: np.repeat(leaf, len(filled), axis=0), first) for _ in range(2))
        state = state._replace(critics=program.put(own), target_critics=program.put(followed))
    state = _advance_all(program, state, updates, advance)
    critics, treatment = jax.device_get((state.critics, program.inputs.treatment))
    return jax.tree.map(lambda leaf: leaf[: len(tables)], critics), jax.tree.map(lambda leaf: leaf[0], treatment)


def _times(policies: int, advance: Advance) -> Advance:
    return lambda updates: advance(updates * policies)


def _value_bounds(dataset: Dataset, discount: float) -> tuple[float, float]:
    """What recorded rewards can add up to; 0 is among them where something ends."""
    ends = [float(dataset.rewards.min()), float(dataset.rewards.max())]
    ends += [0.0] if dataset.terminals.any() else []
    return min(ends) / (1 - discount), max(ends) / (1 - discount)


def _next_actions(dataset: Dataset, candidates: Candidates) -> tuple[np.ndarray, np.ndarray]:
    """The actions of all policies at every s', within ±1, and where they are known."""
    centre = (dataset.action_high + dataset.action_low) / 2
    half = (dataset.action_high - dataset.action_low) / 2
    followed = dataset.followed()
    recorded = np.where(followed[:, None], np.roll(dataset.actions, -1, axis=0), centre)
    actions = np.concatenate([candidates.act_on(dataset.next_observations), recorded[None]])
    known = np.ones(actions.shape[:2], np.float32)
    known[-1] = followed
    return (actions - centre) / half, known


def _policies_at_once(dataset: Dataset, effort: Effort) -> int:
    free = free_memory(jax.local_devices()[0])
    widths = (dataset.observation_dim + dataset.action_dim, *effort.hidden, 1)
    weights = sum(i * o for i, o in pairwise(widths)) * effort.critics * 4
    each = 4 * (len(dataset) * (dataset.action_dim + 2) * 2 + weights * 2 + effort.batch_size * sum(widths) * 8)
    return max(1, int(MEMORY_SHARE * free / each)) if free else 64


def _advance_all(program: FleetProgram, state: Any, updates: int, advance: Advance) -> Any:
    length = program.updates_per_call(updates)
    for start in range(0, updates, length):
        state, metrics = program.advance(state, start, length)
        jax.block_until_ready(metrics)
        advance(length)
    return state


class Noise(NamedTuple):
    """The behaviour's actions in some states, on the host and within ±1: Gaussian around a mean."""

    mean: Float[np.ndarray, "batch action"]
    deviation: Float[np.ndarray, "batch action"]

    def log_density(
        self, actions: Float[np.ndarray, "batch action"], mean: Float[np.ndarray, "batch action"] | None = None
    ) -> Float[np.ndarray, " batch"]:
        """log N(a; mean, deviation²) without its constant, around another mean where one is given."""
        error = (actions - (self.mean if mean is None else mean)) / self.deviation
        return np.asarray((-0.5 * error**2 - np.log(self.deviation)).sum(axis=-1))


@dataclasses.dataclass(frozen=True)
class BehaviourDensity:
    """The behaviour's density in the units of the data."""

    network: Any
    treatment: Treatment

    def at(self, observations: Float[np.ndarray, "batch observation"]) -> "Noise":
        """Mean and deviation of the behaviour's actions, within ±1."""
        found = density(self.network, self.treatment.observe(jnp.asarray(observations, jnp.float32)))
        return Noise(*(np.asarray(part, np.float64) for part in found))

    def scaled(self, actions: np.ndarray) -> np.ndarray:
        """Actions of the data's units within ±1."""
        return np.asarray(self.treatment.action_in(jnp.asarray(actions, jnp.float32)), np.float64)


def fit_density(dataset: Dataset, effort: Effort, advance: Advance = lambda done: None) -> BehaviourDensity:
    """How likely each action was."""
    program = FleetProgram([Run("density", DENSITY, dataset, 0, make_config(DENSITY, {}))])
    state = _advance_all(program, program.init(), effort.density_updates, advance)
    return BehaviourDensity(*_first((state.network, program.inputs.treatment)))


def fit_model(dataset: Dataset, effort: Effort, advance: Advance = lambda done: None) -> tuple[Model, Treatment]:
    """The dynamics ensemble; `advance` is told of updates."""
    each = max(1, len(dataset) // MODEL_BATCH)  # updates of an epoch
    stretch = max(1.0, effort.model_updates / (effort.model_epochs * each))
    chosen = {
        "models": effort.models, "hidden": effort.model_hidden, "batch_size": MODEL_BATCH,
        "epochs": math.ceil(effort.model_epochs * stretch), "patience": math.ceil(PATIENCE * stretch),
    }  # fmt: skip
    program = FleetProgram([Run("model", DYNAMICS, dataset, 0, make_config(DYNAMICS, chosen))])
    state = run_stages(program, program.init(), lambda epochs: advance(epochs * each))
    return _first((state.model, program.inputs.treatment))


def work(dataset: Dataset, policies: int, effort: Effort) -> int:
    """Updates of all evaluators together, if none ends early."""
    each = max(1, len(dataset) // MODEL_BATCH)
    model = max(effort.model_epochs * each, effort.model_updates)
    fitted = effort.behaviour_updates + effort.updates * (policies + 1)
    return fitted + effort.density_updates + model


def _first(tree: Sequence[Any]) -> Any:
    """The only run's arrays, on the host."""
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), tuple(tree))
