"""d3rlpy's own TD3+BC and CQL, one update at a time: its sampling and its `update`, without its logging or evaluation.

Settings are those of this library's defaults: batch 256; TD3+BC with two hidden layers of 256, an actor step every
second update, standardised observations; CQL with three hidden layers of 256, ten sampled actions, weight 5 and no
Lagrange multiplier. What differs stays: d3rlpy returns its losses as Python numbers after every update, its CQL learns
the entropy's temperature as ours does, and its replay buffer hands out transitions one by one.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from score_rl.data.dataset import Dataset

METHODS = ("td3-bc", "cql")


def version() -> str:
    with _quiet():
        import d3rlpy

    return str(d3rlpy.__version__)


def make(method: str, data: Dataset, batch_size: int = 256) -> tuple[Any, Callable[[], None]]:
    """d3rlpy's algorithm, and a function that samples a batch and does one update on the CPU."""
    with _quiet():
        import d3rlpy
        import structlog

        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
        buffer = d3rlpy.dataset.MDPDataset(
            observations=np.asarray(data.observations, np.float32),
            actions=np.asarray(data.actions, np.float32),
            rewards=np.asarray(data.rewards, np.float32)[:, None],
            terminals=np.asarray(data.terminals, np.float32),
            timeouts=np.asarray(data.timeouts, np.float32),
        )
        algorithm = _config(method, batch_size).create(device=False)
        algorithm.build_with_dataset(buffer)
        scaler = algorithm.config.observation_scaler
        if scaler is not None and not scaler.built:
            scaler.fit_with_transition_picker(buffer.episodes, buffer.transition_picker)

    def update() -> None:
        algorithm.update(buffer.sample_transition_batch(batch_size))

    return algorithm, update


def _config(method: str, batch_size: int) -> Any:
    import d3rlpy

    def encoder(layers: int) -> Any:
        return d3rlpy.models.VectorEncoderFactory([256] * layers)

    if method == "td3-bc":
        return d3rlpy.algos.TD3PlusBCConfig(
            batch_size=batch_size,
            actor_encoder_factory=encoder(2),
            critic_encoder_factory=encoder(2),
            observation_scaler=d3rlpy.preprocessing.StandardObservationScaler(),
        )
    return d3rlpy.algos.CQLConfig(
        batch_size=batch_size,
        actor_encoder_factory=encoder(3),
        critic_encoder_factory=encoder(3),
        alpha_learning_rate=0.0,  # no Lagrange multiplier: α stays what it is
        initial_alpha=1.0,
        conservative_weight=5.0,
        n_action_samples=10,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """d3rlpy imports gym, which warns about itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
