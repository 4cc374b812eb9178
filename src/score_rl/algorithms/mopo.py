r"""MOPO: model-based offline policy optimisation (Yu et al., 2020).

A stage before training fits N Gaussian networks p_i(r, s' - s | s, a) to the data (`mopo_model.py`). The E networks
with the least held-out error are the elites. Every so many updates the policy acts in the elites for a few steps, from
states of the data. An elite is drawn at random for each step. The reward pays for what all networks are unsure of:

    r̂ = r - λ·max_i ‖σ_i(s, a)‖,    r, s' ~ p_e,  e ~ elites

σ_i holds the standard deviations of r and of every observation. A rollout ends by the task's rule. Soft actor-critic
then learns from batches that mix a small share of real rows with imagined ones:

    y      = r̂ + γ·(1 - terminal)·[min_j Q'_j(s', a') - α·log π(a'|s')],    a' ~ π(·|s')
    L(Q_j) = E[(Q_j(s, a) - y)²]
    L(π)   = E[α·log π(a|s) - min_j Q_j(s, a)],    a ~ π(·|s)
    L(log α) = -log α·E[log π(a|s) + H],    H = -(number of action dimensions)   (`soft_actor.tune_temperature`)

Observations and rewards stay as recorded, because the task's rule needs them so. The networks scale their inputs.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Data, Metrics, Paper, Shapes
from score_rl.algorithms.mopo_model import DYNAMICS, Learned, init_dynamics, uncertainty_of
from score_rl.algorithms.settings import config, require, setting
from score_rl.algorithms.soft_actor import SoftActor, act, improve, policy, tune_temperature
from score_rl.envs import terminates
from score_rl.nets.actor_critic import values
from score_rl.nets.dynamics import GaussianDynamics, Scaler
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron


@config
class Config:
    penalty: float = setting(
        2.5, "λ, weight of the model's uncertainty (OfflineRL-Kit; per data set in presets)", group="paper"
    )
    rollout_length: int = setting(
        1, "steps in the model from each start (OfflineRL-Kit; per data set in presets)", minimum=1, group="paper"
    )
    task: Literal["none", "halfcheetah", "hopper", "walker2d"] = setting(
        "none", "the task whose rule ends a rollout; presets name it for locomotion data"
    )
    discount: float = setting(0.99, "γ (published code)", maximum=1, group="paper")
    tau: float = setting(0.005, "share of each move of the targets (published code)", above=0, maximum=1, group="paper")
    actor_learning_rate: float = setting(
        1e-4, "Adam's for actor and temperature (OfflineRL-Kit for v2; published code for v0: 3e-4)"
    )
    critic_learning_rate: float = setting(3e-4, "Adam's for the critics (published code)")
    critics: int = setting(2, "number of critics (published code)", minimum=1)
    hidden: tuple[int, ...] = setting((256, 256), "hidden widths of actor and critics (published code)", minimum=1)
    batch_size: int = setting(256, "transitions per update, of the agent and of the model (published code)", minimum=1)
    real_ratio: float = setting(
        0.05, "share of a batch that comes from the data (published code)", static=True, maximum=1, group="paper"
    )
    rollouts: int = setting(50_000, "rollouts in a round (published code)", minimum=1, group="paper")
    rollout_every: int = setting(1_000, "updates between two rounds (published code)", minimum=1, group="paper")
    retain: int = setting(5, "how many rounds of rollouts are kept (published code)", minimum=1, group="paper")
    models: int = setting(7, "N, dynamics networks (published code)", minimum=1, group="paper")
    elites: int = setting(5, "E, networks that rollouts use (published code)", minimum=1, group="paper")
    dynamics_hidden: tuple[int, ...] = setting(
        (200, 200, 200, 200), "hidden widths of the dynamics (published code)", minimum=1
    )
    dynamics_learning_rate: float = setting(1e-3, "Adam's for the dynamics (published code)")
    dynamics_decay: tuple[float, ...] = setting(
        (2.5e-5, 5e-5, 7.5e-5, 7.5e-5, 1e-4), "weight decay of each layer of the dynamics (published code)"
    )
    dynamics_epochs: int = setting(1_000, "epochs of fitting them, at most (published code: no bound)", minimum=1)
    held_out: int = setting(1_000, "rows held out, at most a fifth (published code)", minimum=1)
    patience: int = setting(5, "epochs without improvement that end the fitting (published code)", minimum=1)
    normalise_states: bool = setting(False, "off, since the task's rule needs observations as recorded")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "rewards as recorded (published code)")

    def check(self) -> None:
        require(self.elites <= self.models, f"elites is {self.elites}; it must be at most models, {self.models}.")
        require(
            len(self.dynamics_decay) == len(self.dynamics_hidden) + 1,
            f"dynamics_decay has {len(self.dynamics_decay)} numbers for {len(self.dynamics_hidden) + 1} layers; "
            "give one for each.",
        )
        require(
            self.task == "none" or not self.normalise_states,
            f"the rule that ends {self.task} needs observations as recorded; leave normalise_states off.",
        )


class Imagined(NamedTuple):
    """The newest transitions from the model. A new one takes the place of the oldest."""

    rows: Float[Array, "capacity columns"]  # s, a, r̂, s', terminal
    next: Int[Array, ""]  # where the next one goes
    size: Int[Array, ""]


class State(NamedTuple):
    soft: SoftActor
    critics: Perceptron  # every array with a leading axis
    target_critics: Perceptron
    critic_optimiser: OptimiserState
    learned: Learned
    imagined: Imagined
    step: Int[Array, ""]


# -- rollouts in the model ---------------------------------------------------------------------------------------------


def ended(config: Config, next_observations: Float[Array, "batch observation"]) -> Bool[Array, " batch"]:
    if config.task == "none":
        return jnp.zeros(next_observations.shape[0], bool)
    return jnp.asarray(terminates(config.task, next_observations))


def imagine(
    config: Config,
    learned: Learned,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
    choice: Int[Array, " batch"],
    noise: Float[Array, "batch outcome"],
) -> tuple[Float[Array, " batch"], Float[Array, "batch observation"], Bool[Array, " batch"], Float[Array, " batch"]]:
    """r̂, s', whether the rollout ends, and the uncertainty. `choice` is the elite, `noise` is standard normal."""
    mean, log_variance = learned.dynamics(observations, actions)
    uncertain = uncertainty_of(log_variance)
    which = learned.elites[choice][None, :, None]
    mean, log_variance = (jnp.take_along_axis(x, which, axis=0)[0] for x in (mean, log_variance))
    outcome = mean + jnp.exp(0.5 * log_variance) * noise
    next_observations = observations + outcome[:, 1:]
    rewards = outcome[:, 0] - config.penalty * uncertain
    return rewards, next_observations, ended(config, next_observations), uncertain


def store(imagined: Imagined, rows: Float[Array, "number columns"], kept: Bool[Array, " number"]) -> Imagined:
    """Write the `kept` rows over the oldest ones."""
    capacity, added = imagined.rows.shape[0], kept.sum()
    places = (imagined.next + jnp.cumsum(kept) - 1) % capacity
    return Imagined(
        rows=imagined.rows.at[jnp.where(kept, places, capacity)].set(rows, mode="drop"),
        next=(imagined.next + added) % capacity,
        size=jnp.minimum(imagined.size + added, capacity),
    )


def refresh(config: Config, state: State, data: Data, key: PRNGKeyArray) -> tuple[State, Metrics]:
    """Rollouts of the policy in the model, from states of the data."""
    start_key, key = jax.random.split(key)
    observations = data.sample(start_key, config.rollouts).observations

    def step(
        carry: tuple[Array, Array], key: PRNGKeyArray
    ) -> tuple[tuple[Array, Array], tuple[Array, Array, Array, Array]]:
        observations, going = carry
        action_key, choice_key, noise_key = jax.random.split(key, 3)
        actions = act(config, state.soft.network, observations, action_key)
        choice = jax.random.randint(choice_key, (config.rollouts,), 0, config.elites)
        noise = jax.random.normal(noise_key, (config.rollouts, 1 + observations.shape[1]), observations.dtype)
        rewards, following, ends, uncertain = imagine(config, state.learned, observations, actions, choice, noise)
        columns = (observations, actions, rewards[:, None], following, ends[:, None].astype(rewards.dtype))
        return (following, going & ~ends), (jnp.concatenate(columns, axis=1), going, rewards, uncertain)

    going = jnp.ones(config.rollouts, bool)
    keys = jax.random.split(key, config.rollout_length)
    _, (rows, kept, rewards, uncertain) = jax.lax.scan(step, (observations, going), keys)
    flat = rows.reshape(-1, rows.shape[-1])
    metrics = {
        "uncertainty": jnp.where(kept, uncertain, 0).sum() / kept.sum(),
        "imagined_reward": jnp.where(kept, rewards, 0).sum() / kept.sum(),
        "imagined_steps": kept.sum().astype(rewards.dtype) / config.rollouts,
    }
    return state._replace(imagined=store(state.imagined, flat, kept.reshape(-1))), metrics


# -- the agent ---------------------------------------------------------------------------------------------------------


class Draws(NamedTuple):
    """The random numbers of one update."""

    rows: Int[Array, " imagined"]  # of what was imagined
    here: Float[Array, "batch action"]  # standard normal, for π(·|s) in the actor's loss
    there: Float[Array, "batch action"]  # and for a' in the target


def real_rows(config: Config) -> int:
    return int(config.batch_size * config.real_ratio)


def draw(config: Config, state: State, batch: Batch, key: PRNGKeyArray) -> Draws:
    row_key, here_key, there_key = jax.random.split(key, 3)
    shape, dtype = batch.actions.shape, batch.actions.dtype
    number = config.batch_size - real_rows(config)
    return Draws(
        rows=jax.random.randint(row_key, (number,), 0, state.imagined.size),
        here=jax.random.normal(here_key, shape, dtype),
        there=jax.random.normal(there_key, shape, dtype),
    )


def mixed(config: Config, state: State, batch: Batch, rows: Int[Array, " imagined"]) -> Batch:
    """The first of the batch's transitions, then imagined ones."""
    real, (s, a) = real_rows(config), (batch.observations.shape[1], batch.actions.shape[1])
    imagined = state.imagined.rows[rows]
    return Batch(
        observations=jnp.concatenate([batch.observations[:real], imagined[:, :s]]),
        actions=jnp.concatenate([batch.actions[:real], imagined[:, s : s + a]]),
        rewards=jnp.concatenate([batch.rewards[:real], imagined[:, s + a]]),
        next_observations=jnp.concatenate([batch.next_observations[:real], imagined[:, s + a + 1 : 2 * s + a + 1]]),
        terminals=jnp.concatenate([batch.terminals[:real], imagined[:, 2 * s + a + 1]]),
        rows=batch.rows,
    )


def critic_loss(
    critics: Perceptron, config: Config, state: State, batch: Batch, draws: Draws
) -> tuple[Float[Array, ""], Metrics]:
    """Sum of L(Q_j) over the critics."""
    next_actions, log_prob = policy(state.soft.network, batch.next_observations).sample_and_log_prob(draws.there)
    next_values = values(state.target_critics, batch.next_observations, next_actions).min(axis=0)
    soft_values = next_values - state.soft.temperature * log_prob
    y = jax.lax.stop_gradient(batch.rewards + config.discount * (1 - batch.terminals) * soft_values)
    q = values(critics, batch.observations, batch.actions)
    losses = ((q - y[None]) ** 2).mean(axis=1)
    return losses.sum(), {"critic_loss": losses.mean(), "q": q.mean(), "q_target": y.mean()}


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """One step of the critics, then of the actor and the temperature, then of the targets."""
    draws = draw(config, state, batch, key)
    batch = mixed(config, state, batch, draws.rows)
    gradients, metrics = jax.grad(critic_loss, has_aux=True)(state.critics, config, state, batch, draws)
    critics, optimiser = adam_step(state.critics, gradients, state.critic_optimiser, config.critic_learning_rate)
    tuned = tune_temperature(state.soft, batch.observations, draws.here, config.actor_learning_rate)
    soft, actor_metrics = improve(
        tuned,
        state.soft.temperature,
        lambda actions: values(critics, batch.observations, actions).min(axis=0),
        batch.observations,
        draws.here,
        config.actor_learning_rate,
    )
    state = state._replace(
        soft=soft,
        critics=critics,
        target_critics=move_towards(state.target_critics, critics, config.tau),
        critic_optimiser=optimiser,
        step=state.step + 1,
    )
    return state, metrics | actor_metrics


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    critic_key, actor_key, dynamics_key = jax.random.split(key, 3)
    critics = Perceptron.init(critic_key, (shapes.observation + shapes.action, *config.hidden, 1), config.critics)
    network = Perceptron.init(actor_key, (shapes.observation, *config.hidden, 2 * shapes.action))
    log_temperature = jnp.zeros(())
    scaler = Scaler.identity(shapes.observation + shapes.action)
    capacity = config.retain * config.rollouts * config.rollout_length
    return State(
        soft=SoftActor(network, log_temperature, adam_init(network), adam_init(log_temperature)),
        critics=critics,
        target_critics=critics,
        critic_optimiser=adam_init(critics),
        learned=Learned(
            GaussianDynamics(*init_dynamics(config, shapes, dynamics_key), scaler), jnp.arange(config.elites)
        ),
        imagined=Imagined(
            rows=jnp.zeros((capacity, 2 * shapes.observation + shapes.action + 2)),
            next=jnp.zeros((), jnp.int32),
            size=jnp.zeros((), jnp.int32),
        ),
        step=jnp.zeros((), jnp.int32),
    )


def uncertainty(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """max_i ‖σ_i(s, a)‖."""
    return uncertainty_of(state.learned.dynamics(observations, actions)[1])


def value(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """min_j Q_j(s, a) of the penalised rewards, by which the actor moves."""
    return values(state.critics, observations, actions).min(axis=0)


ALGORITHM = Algorithm(
    name="mopo",
    title="MOPO",
    summary="SAC in a learned model whose rewards are charged for its uncertainty",
    paper=Paper("Yu et al.", 2020, "2005.13239"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.soft.network,
    act=act,
    value=value,
    stages=(DYNAMICS,),
    refresh=refresh,
    refresh_every=lambda config: config.rollout_every,
    uncertainty=uncertainty,
    characteristics=("value-penalised", "uncertainty-aware", "model-based"),
    bfloat16_on=("avx512_bf16",),
    headline=("uncertainty", "q"),
)
