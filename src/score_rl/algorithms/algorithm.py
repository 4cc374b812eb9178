"""What every algorithm is: a `Config` and a few pure functions.

An algorithm is written for one run and one batch. The engine draws the batches, and runs many updates (`scan`) of many
runs (`vmap`). All numbers are treated: observations standardised, rewards scaled, actions within ±1.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

Metrics = dict[str, Float[Array, ""]]


class Shapes(NamedTuple):
    """The sizes that decide whether two runs fit into one fleet."""

    observation: int
    action: int


class Batch(NamedTuple):
    """Transitions drawn uniformly with replacement, in treated units."""

    observations: Float[Array, "batch observation"]
    actions: Float[Array, "batch action"]
    rewards: Float[Array, " batch"]
    next_observations: Float[Array, "batch observation"]
    terminals: Float[Array, " batch"]  # 1 where the task ended; a timeout is not an end
    rows: Int[Array, " batch"]  # which row of its data set each transition is
    next_actions: Float[Array, "batch action"] | None = None  # recorded one step later; valid where `followed` is 1
    followed: Float[Array, " batch"] | None = None  # 1 where the episode's recording goes on after this transition


class Spread(NamedTuple):
    """Of each column over the whole data set, in treated units."""

    mean: Float[Array, " columns"]
    std: Float[Array, " columns"]
    deviation: Float[Array, " columns"]  # the mean absolute one


class Statistics(NamedTuple):
    inputs: Spread  # (s, a)
    outcomes: Spread  # (r, s' - s)


@dataclasses.dataclass(frozen=True)
class Data:
    """A run's whole data set inside the compiled program, for stages and refreshes."""

    length: Int[Array, ""]
    take: Callable[[Int[Array, " batch"]], Batch]  # the transitions of these rows
    starts: Int[Array, " episodes"]  # the rows with which episodes begin; the first `episodes` of them count
    episodes: Int[Array, ""]
    statistics: Statistics

    def sample(self, key: PRNGKeyArray, number: int) -> Batch:
        """Transitions drawn uniformly with replacement."""
        return self.take(jax.random.randint(key, (number,), 0, self.length))

    def sample_starts(self, key: PRNGKeyArray, number: int) -> Float[Array, "number observation"]:
        """Observations with which episodes begin, drawn uniformly with replacement."""
        drawn = jax.random.randint(key, (number,), 0, self.episodes)
        return self.take(self.starts[drawn]).observations


@dataclasses.dataclass(frozen=True)
class Stage:
    """Training before the training: a dynamics model, a first policy.

    The engine runs epochs of `updates` until a run is `done` or has seen `epochs`. A stage is stored and resumed like
    training itself. Its result is kept in the cache for the next experiment with the same data and `settings`.
    """

    name: str
    settings: tuple[str, ...]  # the fields of Config that decide its result
    epochs: Callable[[Any], int]  # (config) -> at most
    updates: Callable[[Any, Data], Int[Array, ""]]  # (config, data) -> updates in an epoch
    init: Callable[..., Any]  # (config, shapes, data, key) -> state of the stage
    update: Callable[..., tuple[Any, Metrics]]  # (config, state, data, key) -> state, metrics
    judge: Callable[..., tuple[Any, Metrics]]  # (config, state, data) -> state, held-out metrics; after an epoch
    done: Callable[..., Bool[Array, ""]]  # (config, state) -> stop this run
    result: Callable[..., Any]  # (config, state, data) -> what training needs of it
    absorb: Callable[[Any, Any], Any]  # (State of training, result) -> State


class Paper(NamedTuple):
    """Where an algorithm was published."""

    authors: str
    year: int
    arxiv: str  # its number there

    @property
    def address(self) -> str:
        return f"https://arxiv.org/abs/{self.arxiv}"

    def __str__(self) -> str:
        return f"{self.authors}, {self.year}"


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """The functions of one algorithm, and what is said about it."""

    name: str
    title: str
    summary: str
    Config: type
    init: Callable[..., Any]  # (config, shapes, key) -> State
    update: Callable[..., tuple[Any, Metrics]]  # (config, state, batch, key, turn) -> State, metrics
    policy: Callable[[Any], Any]  # State -> the part of it that acting needs
    act: Callable[..., Float[Array, "batch action"]]  # (config, policy, observations, key=None) -> actions
    act_on_noise: Callable[..., Float[Array, "batch action"]] | None = None
    """(config, policy, observations, noise [batch, action]) -> actions, where episodes are played with fresh standard
    normal noise in every step. `act` without a key stays a function of the state."""
    turns: Callable[[Any], int] = lambda config: 1  # updates in a cycle; `update` is told which one, statically
    stages: tuple[Stage, ...] = ()  # in their order, before the first update
    refresh: Callable[..., tuple[Any, Metrics]] | None = None  # (config, state, data, key) -> State, metrics
    refresh_every: Callable[[Any], int] = lambda config: 1  # before every so many updates `refresh` is called
    uncertainty: Callable[..., Float[Array, " batch"]] | None = None  # (config, state, observations, actions)
    value: Callable[..., Float[Array, " batch"]] | None = None  # (config, state, observations, actions) -> Q
    state_value: Callable[..., Float[Array, " batch"]] | None = (
        None  # (config, state, observations) -> V, where learned
    )
    counts_as: int = 1  # updates of other methods that one of its own stands for
    characteristics: tuple[str, ...] = ()  # the paper's words: "value-penalised", "uncertainty-aware", ...
    precisions: tuple[str, ...] = ("float32", "bfloat16")  # of matrix products, that it can be trained in
    bfloat16_on: tuple[str, ...] = ()  # kinds of CPUs on which that was measured to be faster (engine/compilation.py)
    headline: tuple[str, ...] = ()  # metrics worth a place beside the progress bar
    paper: Paper | None = None  # where it was published; behaviour cloning has no paper of its own


def cycle(algorithm: Algorithm, config: Any) -> int:
    """The least number of updates that is a multiple of all turns and refreshes."""
    turns = algorithm.turns(config)
    return math.lcm(turns, algorithm.refresh_every(config)) if algorithm.refresh else turns


def network_parameters(algorithm: Algorithm, shapes: Shapes) -> int:
    """Parameters of all networks of one run with default settings: online, target, prior and dynamics networks.

    Optimisers and single multipliers do not count, as in the paper's run-time table.
    """
    state = jax.eval_shape(lambda: algorithm.init(algorithm.Config(), shapes, jax.random.key(0)))
    parts = jax.tree_util.tree_leaves_with_path(state, is_leaf=lambda part: isinstance(part, eqx.Module))
    networks = [
        part for path, part in parts if isinstance(part, eqx.Module) and "optimiser" not in jax.tree_util.keystr(path)
    ]
    return sum(leaf.size for leaf in jax.tree.leaves(networks))
