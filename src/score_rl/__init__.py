"""Offline reinforcement learning that people can trust, trained as fleets in one compiled program.

>>> import score_rl
>>> data = score_rl.load_dataset("replica:hopper-medium", transitions=100_000)
>>> run = score_rl.train(data, steps=10_000)
>>> observation = data.observations[0]
>>> action = run.policy(observation)
>>> doubt = run.uncertainty(observation, action)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from score_rl.data.catalogue import load_dataset
    from score_rl.data.dataset import Dataset
    from score_rl.errors import InputError
    from score_rl.judge.judging import judge
    from score_rl.judge.selection.selecting import select
    from score_rl.run.experiment import Experiment, load
    from score_rl.run.launch import resume, train

__all__ = ["Dataset", "Experiment", "InputError", "judge", "load", "load_dataset", "resume", "select", "train"]

_HOME = {
    "Dataset": "score_rl.data.dataset",
    "Experiment": "score_rl.run.experiment",
    "InputError": "score_rl.errors",
    "judge": "score_rl.judge.judging",
    "load": "score_rl.run.experiment",
    "load_dataset": "score_rl.data.catalogue",
    "resume": "score_rl.run.launch",
    "select": "score_rl.judge.selection.selecting",
    "train": "score_rl.run.launch",
}


def __dir__() -> list[str]:
    """The public names, for tab completion."""
    return [*__all__, "__version__", "__doc__", "__name__", "__file__", "__path__"]


def __getattr__(name: str) -> Any:
    """Import on first use: `score --help` must not wait for JAX."""
    if name == "__version__":
        from score_rl.versions import version_of

        return version_of("score-rl")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOME[name]), name)
