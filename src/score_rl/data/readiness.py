"""What keeps a data set in order from being trained on: `score train` and `score data check` ask this one module.

Everything here is found before a folder is made.
"""

from collections.abc import Iterable

from score_rl.data.columns import SMALLEST
from score_rl.data.dataset import Dataset
from score_rl.data.treatment import RewardScaling, fit_treatment
from score_rl.envs.tasks import TASKS, task_of
from score_rl.errors import InputError

USUAL_SCALING: RewardScaling = "minmax"  # what `score train` does with rewards unless it is told otherwise


def refuse_unready(dataset: Dataset, environment: str | None, scalings: Iterable[RewardScaling]) -> None:
    """Refuse rewards that cannot be scaled, and an environment that cannot be made or does not fit.

    `environment` is where policies would be evaluated: None or "none" is nowhere.
    """
    for scaling in dict.fromkeys(scalings):
        treatment = fit_treatment(dataset, normalise_states=False, reward_scaling=scaling)
        if float(treatment.reward_scale) < SMALLEST:
            raise InputError(
                f"{dataset.name}: rewards differ by {float(treatment.reward_scale):g}, too little for {scaling!r} "
                "scaling; give them another unit or `config.reward_scaling=none`."
            )
    if environment not in (None, "none"):
        _refuse_unfit(dataset, str(environment))


def _refuse_unfit(dataset: Dataset, environment: str) -> None:
    task = TASKS.get(task_of(environment) or "")
    if task is not None:
        expected = (task.observation_dim, task.action_dim)
    else:
        from score_rl.envs.making import make_environment

        sample = make_environment(environment, 1)
        expected = (sample.observation_dim, sample.action_dim)
        sample.close()
    found = (dataset.observation_dim, dataset.action_dim)
    if found != expected:
        raise InputError(
            f"{dataset.name} has {found[0]} observations and {found[1]} actions, but {environment} has {expected[0]} "
            f"and {expected[1]}: name the environment that the data are from, or pass `environment=none`."
        )
