"""Logs of the heating control as the judge gets them, and policies whose true value is known."""

from collections.abc import Mapping

import numpy as np

from score_rl.data.dataset import Dataset, make_dataset
from score_rl.data.splitting import split_dataset
from score_rl.judge.fitting import Effort
from score_rl.judge.judging import judge_policies
from score_rl.judge.sources import Parts
from score_rl.store.judgements import DataJudgement
from tests.plants import heating

SMALL = Effort(
    updates=800,
    behaviour_updates=800,
    critics=3,
    hidden=(32, 32),
    density_updates=500,
    models=3,
    model_hidden=(32, 32),
    model_epochs=12,
    model_updates=2_000,
)


def logs(seed: int, episodes: int = 200) -> Dataset:
    recorded = heating.record(episodes, seed)
    return make_dataset(
        "heating",
        observations=recorded.observations,
        actions=recorded.actions,
        rewards=recorded.rewards,
        terminals=np.zeros(len(recorded)),
        timeouts=recorded.ends,
        action_bounds=(heating.ACTION_LOW, heating.ACTION_HIGH),
    )


def always(valve: float, pump: float) -> heating.Policy:
    return lambda observations: np.tile((valve, pump), (len(observations), 1))


def judged(seed: int, policies: Mapping[str, heating.Policy], effort: Effort = SMALL) -> DataJudgement:
    kept, held_out = split_dataset(logs(seed), 0.2)
    return judge_policies(Parts(kept, held_out, True), dict(policies), effort=effort, discount=0.98)
