r"""Fitted Q evaluation: what a fixed policy is worth, learned from recorded transitions (Le et al., 2019).

M critics Q_i learn side by side, each with a target network Q'_i of its own. For a policy π:

    y_i    = r + γ·[(1 - terminal)·Q'_i(s', π(s')) + terminal·z],   within [least, most]
    L(Q_i) = E[w_i·(Q_i(s, a) - y_i)²],    Q'_i ← (1 - τ)·Q'_i + τ·Q_i

Rewards are r = (recorded - centre)/scale, and the centre is what the behaviour earns per step. So its value is about
0, and learning starts there. Nothing is earned after a terminal: in these units that is z = -centre/(scale·(1 - γ)).
[least, most] is what rewards can add up to. The weights w_i of a trajectory are Poisson numbers of mean 1: every critic
sees a bootstrap sample of trajectories. So the critics' disagreement holds what other data of the same size would
change.

This is an `Algorithm` as every other, and its runs form fleets. π enters as a table of its actions at every s', so that
policies of any method share a program. A run's keys come from data and seed. All policies meet the same batches, the
same first networks and the same bootstrap samples, and their values can be compared in pairs.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Shapes
from score_rl.algorithms.model_fitting import scrambled
from score_rl.algorithms.settings import config, setting
from score_rl.nets.layer_norm import NormalisedPerceptron
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards

POISSON = (0.36787944, 0.73575888, 0.91969860, 0.98101184, 0.99634015, 0.99940582)  # P(w ≤ 0), P(w ≤ 1), ...


@config
class Config:
    discount: float = setting(0.99, "γ", maximum=1)
    tau: float = setting(
        0.1,
        "share of each move of the targets; values settle in some 1/(τ·(1 - γ)) updates",
        above=0,
        maximum=1,
    )
    learning_rate: float = setting(1e-3, "Adam's learning rate")
    centre: float = setting(0.0, "the recorded reward that counts as 0", minimum=None)
    scale: float = setting(1.0, "the recorded reward that counts as 1, over the centre", above=0)
    least: float = setting(-1e9, "no value is below it, in scaled units", minimum=None)
    most: float = setting(1e9, "no value is above it, in scaled units", minimum=None)
    critics: int = setting(4, "M, critics of each policy", minimum=1)
    hidden: tuple[int, ...] = setting((64, 64), "widths of the hidden layers, each normalised", minimum=1)
    batch_size: int = setting(128, "transitions per update", minimum=1)
    rows: int = setting(1, "rows in the table of the policy's actions", minimum=1)
    bootstrap: bool = setting(True, "whether each critic sees a bootstrap sample of trajectories")
    normalise_states: bool = setting(True, "standardise observations over the data set")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "centre and scale do it here")


class Table(NamedTuple):
    """What the data do not hold, one line for each row of the data."""

    next_actions: Float[Array, "rows action"]  # π(s'), within ±1
    known: Float[Array, " rows"]  # 0 where π(s') is not known: the recorded behaviour at the end of a trajectory
    trajectories: Int[Array, " rows"]  # the number of the trajectory


class State(NamedTuple):
    critics: NormalisedPerceptron  # every array with a leading axis of length M
    target_critics: NormalisedPerceptron
    optimiser: OptimiserState
    table: Table
    step: Int[Array, ""]


def values(
    critics: NormalisedPerceptron,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, "members batch"]:
    """Q_i(s, a) of every critic, in scaled units."""
    return critics.members(jnp.concatenate([observations, actions], axis=-1))[..., 0]


def bootstrap_weights(config: Config, trajectories: Int[Array, " batch"]) -> Float[Array, "members batch"]:
    """How often each critic's bootstrap sample holds these trajectories."""
    if not config.bootstrap:
        return jnp.ones((config.critics, trajectories.shape[0]))
    member = scrambled(jnp.arange(1, config.critics + 1, dtype=jnp.uint32))[:, None]
    bits = scrambled(scrambled(trajectories.astype(jnp.uint32))[None] ^ member)
    uniform = (bits >> 8).astype(jnp.float32) / 2**24
    return (uniform[..., None] >= jnp.asarray(POISSON)[None, None]).sum(axis=-1).astype(jnp.float32)


def targets(config: Config, state: State, batch: Batch) -> Float[Array, "members batch"]:
    """y_i."""
    rewards = (batch.rewards - config.centre) / config.scale
    after_end = -config.centre / (config.scale * (1 - config.discount))
    following = values(state.target_critics, batch.next_observations, state.table.next_actions[batch.rows])
    following = jnp.where(batch.terminals[None] > 0, after_end, following)
    return jnp.clip(rewards[None] + config.discount * following, config.least, config.most)


def loss(critics: NormalisedPerceptron, config: Config, state: State, batch: Batch) -> tuple[Float[Array, ""], Metrics]:
    """The sum of L(Q_i) over the critics."""
    y = jax.lax.stop_gradient(targets(config, state, batch))
    known = jnp.maximum(state.table.known[batch.rows], batch.terminals)
    weights = bootstrap_weights(config, state.table.trajectories[batch.rows]) * known[None]
    q = values(critics, batch.observations, batch.actions)
    errors = (weights * (q - y) ** 2).mean(axis=1)
    return errors.sum(), {"critic_loss": errors.mean(), "q": q.mean(), "residual": (weights * (y - q)).mean()}


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """One step of every critic and of its target."""
    gradients, metrics = jax.grad(loss, has_aux=True)(state.critics, config, state, batch)
    critics, optimiser = adam_step(state.critics, gradients, state.optimiser, config.learning_rate)
    moved = move_towards(state.target_critics, critics, config.tau)
    return State(critics, moved, optimiser, state.table, state.step + 1), metrics


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    """The table is empty until `evaluation` fills it."""
    sizes = (shapes.observation + shapes.action, *config.hidden, 1)
    critics = NormalisedPerceptron.init(key, sizes, config.critics)
    return State(
        critics=critics,
        target_critics=critics,
        optimiser=adam_init(critics),
        table=Table(
            next_actions=jnp.zeros((config.rows, shapes.action)),
            known=jnp.zeros(config.rows),
            trajectories=jnp.zeros(config.rows, jnp.int32),
        ),
        step=jnp.zeros((), jnp.int32),
    )


def act(
    config: Config, policy: Table, observations: Float[Array, "batch observation"], key: PRNGKeyArray | None = None
) -> Float[Array, "batch action"]:
    """The evaluated policy is a table and acts nowhere else."""
    raise NotImplementedError("fitted Q evaluation evaluates a policy and has none of its own")


FITTED_Q = Algorithm(
    name="fitted-q",
    title="fitted Q evaluation",
    summary="what a fixed policy is worth, by critics fitted to recorded data",
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.table,
    act=act,
)
