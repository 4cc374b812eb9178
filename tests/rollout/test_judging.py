"""Many trained runs are judged as each alone would be."""

from typing import Any

import numpy as np
import pytest

import score_rl
from score_rl.errors import InputError
from score_rl.rollout import judging
from score_rl.rollout.processes import Judges
from score_rl.run.experiment import Experiment

SMALL = {"hidden": (32, 32), "batch_size": 32}


@pytest.fixture(scope="module", params=["score", "bear"])
def experiment(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """BEAR's policies pick from candidates: they cannot be written down for a process."""
    smaller = {"vae_hidden": (32, 32)} if request.param == "bear" else {}
    return score_rl.train(
        ["replica:halfcheetah-medium", "replica:walker2d-medium"], algorithm=request.param, steps=4, seeds=[0, 1],
        eval_every=4, log_every=4, eval_episodes=1, transitions=2_000, config=SMALL | smaller,
        out=tmp_path_factory.mktemp(request.param) / "out", quiet=True,
    )  # fmt: skip


def test_by_processes_as_one_by_one(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = {run.id: run.evaluate(2) for run in experiment}
    monkeypatch.setattr(judging, "worth_it", lambda *about: True)
    asked = []
    ask = Judges.ask
    monkeypatch.setattr(Judges, "ask", lambda self, questions: (asked.extend(questions), ask(self, questions))[1])
    together = dict(experiment.evaluate_runs(2))
    assert len(asked) == (4 if experiment[0].algorithm.name == "score" else 0)
    assert [run.id for run in together] == list(alone)
    for run, judgement in together.items():
        assert judgement.environment == alone[run.id].environment
        assert judgement.returns.shape == (1, 2)
        np.testing.assert_allclose(judgement.returns, alone[run.id].returns, rtol=1e-3)
    (again,) = experiment.evaluate_runs(2, runs=[experiment[3]], seed=5)
    assert again[0] is experiment[3]
    assert not np.array_equal(again[1].returns, alone[experiment[3].id].returns)


def test_what_cannot_be_judged_is_said_at_once(experiment: Experiment) -> None:
    with pytest.raises(InputError, match="must be 1 or more"):
        experiment.evaluate_runs(0)
