r"""SCORE's ablations and variants: what takes the place of which function of `score.py`.

`ABLATIONS` says it: for each setting and value, the functions of `score.py` by name, and what replaces them. A
replacement has the same shape, with the function that it replaces as a first argument, so that it can build on it.
Several settings can be chosen together; a later line of `ABLATIONS` builds on the earlier ones.

    constraint        none: no cloning. fix and mmd: see `score_constraints.py`
    penalty           here+next: Q'_i(s', a') - β'·u'(s', a') in place of Q'_i(s', a'), u' of the target critics
    uncertainty       dropout: u is the standard deviation over passes with dropout, the mean over critics
                      min-q: y = r + γ·(1 - terminal)·min_i Q'_i(s', a') for every critic, without a penalty
    bc_norm           sum: the squared error is summed over the action's dimensions (the paper's equation)
    first_actor_step  delay: the actor first moves in the d-th update (the paper's Algorithm 1)
    critic_divisor    mask+1: a critic's summed errors are divided by one more than their number (published code)
    bootstrap_keep    below 1: each critic sees its own share of the rows, drawn once
    spectral_norm     the critics' middle layers are divided by their largest singular values
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from score_rl.algorithms import score_constraints as constraints
from score_rl.algorithms.algorithm import Batch, Metrics, Shapes
from score_rl.algorithms.settings import require, setting
from score_rl.nets.actor_critic import values
from score_rl.nets.dropout import hidden_of, many_passes, one_pass
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.spectral import normalise_layer, power_iteration

Function = TypeVar("Function", bound=Callable[..., Any])
Replaced = Callable[..., Any]  # the function of `score.py` that a replacement takes the place of
State = Any  # SCORE's
Noise = Any  # SCORE's


@dataclasses.dataclass(frozen=True)
class Settings(constraints.Settings):
    constraint: Literal["bc", "none", "fix", "mmd"] = setting(
        "bc", "what keeps π near the data: cloning (paper), nothing, BCQ's candidates or BEAR's MMD", group="ablation"
    )
    uncertainty: Literal["ensemble", "dropout", "min-q"] = setting(
        "ensemble", "pessimism by the critics' disagreement (paper), MC dropout or their minimum", group="ablation"
    )
    penalty: Literal["here", "here+next"] = setting(
        "here", "u at (s, a) with weight beta (paper), or also at (s', a') with weight next_beta", group="ablation"
    )
    next_beta: float = setting(
        0.0, "penalty here+next: β', weight of u'(s', a')", group="ablation", only_with=("penalty", ("here+next",))
    )
    dropout: float = setting(
        0.1,
        "uncertainty dropout: probability that a hidden unit is dropped (UWAC)",
        below=1,
        group="ablation",
        only_with=("uncertainty", ("dropout",)),
    )
    dropout_passes: int = setting(
        10,
        "uncertainty dropout: passes for a deviation (UWAC: 100)",
        minimum=2,
        group="ablation",
        only_with=("uncertainty", ("dropout",)),
    )
    bc_norm: Literal["mean", "sum"] = setting(
        "mean", "cloning error over action dimensions: mean (published code) or sum (paper)", group="ablation"
    )
    first_actor_step: Literal["zero", "delay"] = setting(
        "zero", "the actor first moves in the first update (published code) or in the d-th (paper)", group="ablation"
    )
    critic_divisor: Literal["mean", "mask+1"] = setting(
        "mean", "a critic's summed error is divided by its rows, or by one more (published code)", group="ablation"
    )
    bootstrap_keep: float = setting(
        1.0, "probability that a critic sees a row (published code: 1)", static=True, above=0, maximum=1,
        group="ablation"
    )  # fmt: skip
    spectral_norm: bool = setting(
        False, "spectral normalisation of the critics' middle layer (published code: off)", group="ablation"
    )

    def check(self) -> None:
        hidden, critic_norm = cast("Any", self).hidden, cast("Any", self).critic_norm
        require(
            not critic_norm or not (self.spectral_norm or self.uncertainty == "dropout"),
            "critic_norm goes neither with spectral_norm nor with uncertainty dropout; leave one of them out.",
        )
        require(
            self.penalty == "here+next" or self.next_beta == 0,
            f"next_beta is {self.next_beta} and penalty is 'here', which does not use it; give penalty here+next.",
        )
        require(
            not self.spectral_norm or (self.constraint in ("bc", "none") and self.uncertainty != "dropout"),
            "spectral_norm goes with constraint bc or none and uncertainty ensemble or min-q; leave one of them out.",
        )
        require(
            not self.spectral_norm or len(hidden) >= 2,
            f"spectral_norm works on the middle layer, and hidden {hidden} has none; give two widths or more.",
        )


def replaceable(function: Function) -> Function:
    """A function of `score.py`, or what the settings put in its place. Its first argument is the `Config`."""
    name = function.__name__

    @functools.wraps(function)
    def composed(config: Settings, *arguments: Any, **named: Any) -> Any:
        chosen: Replaced = function
        for ablation in chosen_ablations(config):
            if name in ablation:
                chosen = functools.partial(ablation[name], chosen)
        return chosen(config, *arguments, **named)

    return cast("Function", composed)


# -- the uncertainty and its penalty ----------------------------------------------------------------------------------


class DropoutKeys(NamedTuple):
    """Where the masks of an update come from."""

    here: PRNGKeyArray  # for u(s, a)
    there: PRNGKeyArray  # for u'(s', a')
    once: PRNGKeyArray  # for Q(s, a)


def dropout_draw(replaced: Replaced, config: Settings, state: State, batch: Batch, key: PRNGKeyArray) -> Noise:
    keys = DropoutKeys(*jax.random.split(jax.random.fold_in(key, 1), 3))
    return replaced(config, state, batch, key)._replace(dropout=keys)


def dropout_deviation(
    config: Settings,
    critics: Perceptron,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
    key: PRNGKeyArray,
) -> Float[Array, " batch"]:
    """u(s, a) by dropout. A pass has one mask for all rows: for each row the same, with far fewer random numbers."""
    hidden = hidden_of(critics, observations, actions[None])
    _, variance = many_passes(critics, hidden, key, config.dropout, "pass", config.dropout_passes)
    return jnp.sqrt(variance).mean(axis=0)


def dropout_values(
    replaced: Replaced, config: Settings, critics: Perceptron, batch: Batch, noise: Noise
) -> tuple[Float[Array, "members batch"], Float[Array, " batch"]]:
    q = one_pass(
        critics, hidden_of(critics, batch.observations, batch.actions[None]), noise.dropout.once, config.dropout, "row"
    )
    fixed = jax.lax.stop_gradient(critics)
    return q, dropout_deviation(config, fixed, batch.observations, batch.actions, noise.dropout.here)


def dropout_uncertainty(
    replaced: Replaced, config: Settings, state: State, observations: Array, actions: Array
) -> Float[Array, " batch"]:
    """The same passes for every row."""
    return dropout_deviation(config, state.critics, observations, actions, jax.random.key(0))


def target_penalised_twice(
    replaced: Replaced, config: Settings, state: State, batch: Batch, noise: Noise, actions: Array, next_q: Array,
    u: Array,
) -> Float[Array, "members batch"]:  # fmt: skip
    if config.uncertainty == "dropout":
        next_u = dropout_deviation(config, state.target_critics, batch.next_observations, actions, noise.dropout.there)
    else:
        next_u = values(state.target_critics, batch.next_observations, actions).std(axis=0)
    return replaced(config, state, batch, noise, actions, next_q - config.next_beta * next_u[None], u)


def least_target(
    replaced: Replaced, config: Any, state: State, batch: Batch, noise: Noise, actions: Array, next_q: Array, u: Array
) -> Float[Array, "one batch"]:
    """y = r + γ·(1 - terminal)·min_i Q'_i(s', a'): the minimum takes the place of every penalty."""
    config = dataclasses.replace(config, beta=0.0, next_beta=0.0)
    return replaced(config, state, batch, noise, actions, next_q.min(axis=0, keepdims=True), u)


# -- the actor ---------------------------------------------------------------------------------------------------------


def unconstrained_actions(
    replaced: Replaced, config: Settings, actor: Perceptron, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, "batch action"], float, Metrics]:
    actions, _, _ = replaced(config, actor, state, batch, noise)
    return actions, 0.0, {}


def cloned_by_sum(
    replaced: Replaced, config: Settings, actor: Perceptron, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, "batch action"], Float[Array, ""], Metrics]:
    actions, _, metrics = replaced(config, actor, state, batch, noise)
    error = ((actions - batch.actions) ** 2).sum(axis=1).mean()
    return actions, metrics["bc_weight"] * error, metrics | {"bc_error": error}


def delayed_learn(
    replaced: Replaced, config: Any, state: State, batch: Batch, noise: Noise, turn: int
) -> tuple[State, Metrics]:
    return replaced(config, state, batch, noise, (turn + 1) % config.actor_delay)


# -- bootstrapping -----------------------------------------------------------------------------------------------------


def bootstrap_mask(config: Any, state: State, rows: Int[Array, " batch"]) -> Float[Array, "members batch"]:
    """1 where a critic sees a row. A function of the row alone, so it is the same whenever the row is drawn."""
    keys = jax.vmap(lambda row: jax.random.fold_in(state.bootstrap_key, row))(rows)

    def seen(key: PRNGKeyArray) -> Bool[Array, " members"]:
        return jax.random.bernoulli(key, config.bootstrap_keep, (config.critics,))

    return jax.vmap(seen, out_axes=1)(keys).astype(jax.tree.leaves(state.critics)[0].dtype)


def mean_errors_of_seen_rows(
    replaced: Replaced, config: Any, state: State, batch: Batch, errors: Float[Array, "members batch"]
) -> Float[Array, " members"]:
    seen = jnp.full(config.critics, float(batch.rewards.size))
    if config.bootstrap_keep < 1:
        mask = bootstrap_mask(config, state, batch.rows)
        errors, seen = mask * errors, mask.sum(axis=1)
    return errors.sum(axis=1) / (seen + 1 if config.critic_divisor == "mask+1" else jnp.maximum(seen, 1))


# -- spectral normalisation --------------------------------------------------------------------------------------------

ONLINE, TARGET = 0, 1  # whose singular vectors


def normalised(state: State) -> State:
    """With the critics' middle layers divided by their largest singular values, as these are known by now."""
    return state._replace(
        critics=normalise_layer(state.critics, 1, state.power[ONLINE]),
        target_critics=normalise_layer(state.target_critics, 1, state.power[TARGET]),
    )


def spectral_init(replaced: Replaced, config: Any, shapes: Shapes, key: PRNGKeyArray) -> State:
    state = replaced(config, shapes, key)
    _, _, power_key, _ = jax.random.split(key, 4)
    vector = jax.random.normal(power_key, (config.critics, config.hidden[1]))
    for _ in range(15):  # as PyTorch does before the first use
        vector = power_iteration(state.critics.weights[1], vector)
    return state._replace(power=jnp.stack([vector, vector]))


def spectral_learn(
    replaced: Replaced, config: Settings, state: State, batch: Batch, noise: Noise, turn: int
) -> tuple[State, Metrics]:
    """One step of the power iteration first."""
    online, target = state.critics.weights[1], state.target_critics.weights[1]
    moved = [power_iteration(online, state.power[ONLINE]), power_iteration(target, state.power[TARGET])]
    state = state._replace(power=jax.lax.stop_gradient(jnp.stack(moved)))
    return replaced(config, state, batch, noise, turn)


def spectral_critic_loss(
    replaced: Replaced, config: Settings, critics: Perceptron, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, ""], Metrics]:
    state = normalised(state._replace(critics=critics))
    return replaced(config, state.critics, state, batch, noise)


def spectral_actor_loss(
    replaced: Replaced, config: Settings, actor: Perceptron, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, ""], Metrics]:
    return replaced(config, actor, normalised(state), batch, noise)


def spectral_measure(
    replaced: Replaced, config: Settings, state: State, observations: Array, actions: Array
) -> Float[Array, " batch"]:
    """The value or the uncertainty."""
    return replaced(config, normalised(state), observations, actions)


# -- which setting replaces what ---------------------------------------------------------------------------------------

Ablation = dict[str, Replaced]  # name of a function of `score.py`: what takes its place

ABLATIONS: dict[tuple[str, Any], Ablation] = {
    ("bc_norm", "sum"): {"constrained_actions": cloned_by_sum},
    ("constraint", "none"): {"constrained_actions": unconstrained_actions},
    ("constraint", "fix"): constraints.FIX,
    ("constraint", "mmd"): constraints.MMD,
    ("penalty", "here+next"): {"target": target_penalised_twice},
    ("uncertainty", "dropout"): {
        "draw": dropout_draw,
        "values_and_uncertainty": dropout_values,
        "uncertainty": dropout_uncertainty,
    },
    ("uncertainty", "min-q"): {"target": least_target},
    ("first_actor_step", "delay"): {"learn": delayed_learn},
    ("critic_divisor", "mask+1"): {"mean_errors": mean_errors_of_seen_rows},
    ("spectral_norm", True): {
        "init": spectral_init,
        "learn": spectral_learn,
        "critic_loss": spectral_critic_loss,
        "actor_loss": spectral_actor_loss,
        "uncertainty": spectral_measure,
        "value": spectral_measure,
    },
}
BOOTSTRAP: Ablation = {"mean_errors": mean_errors_of_seen_rows}


def chosen_ablations(config: Settings) -> Iterator[Ablation]:
    """What the settings replace, in the order of `ABLATIONS`."""
    for (name, value), ablation in ABLATIONS.items():
        if getattr(config, name) == value:
            yield ablation
    if config.bootstrap_keep < 1:
        yield BOOTSTRAP
