"""Where policies act: beside training on the CPU, or on the training device while training waits."""

import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import score_rl
from score_rl.algorithms.registry import algorithm_names
from score_rl.engine.program import FleetProgram
from score_rl.rollout import processes
from score_rl.rollout.acting import COSTLY, FleetActor, operations_per_action, playing, write_down_fleet
from score_rl.rollout.instructions import NotPortable
from score_rl.run import training
from score_rl.run.expansion import expand_runs
from score_rl.store.request import AlgorithmRequest, ExperimentSpec
from tests.run.conftest import recording


def program(algorithm: str, **settings: Any) -> FleetProgram:
    data = recording(observation=17, action=6)
    spec = ExperimentSpec(
        algorithms=(AlgorithmRequest(algorithm, settings),), datasets=(data.name,), seeds=(0, 1), steps=2, eval_every=2,
        eval_episodes=1, log_every=2,
    )  # fmt: skip
    return FleetProgram(expand_runs(spec, [data]))


@pytest.mark.parametrize(
    ("algorithm", "settings", "costly"),
    [
        ("score", {}, False),
        ("cql", {}, False),
        ("bear", {}, False),
        ("bcq", {}, True),
        ("score", {"constraint": ("fix",)}, True),
        ("score", {"constraint": ("mmd",)}, True),
    ],
)
def test_what_an_action_costs(algorithm: str, settings: dict[str, Any], costly: bool) -> None:
    needed = operations_per_action(program(algorithm, **settings))
    assert needed > 1e5  # 17 x 256 + 256 x 256 + 256 x 6, each a product and a sum
    assert (needed > COSTLY) == costly


def test_an_actor_that_training_waits_for_judges_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting(FleetActor):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.training_waits = True

    def returns(folder: str) -> list[tuple[np.ndarray, np.ndarray]]:
        experiment = score_rl.train(
            "replica:hopper-medium", steps=40, seeds=[0, 1], eval_every=20, log_every=10, eval_episodes=2,
            transitions=2_000, config={"hidden": (32, 32), "batch_size": 32}, out=tmp_path / folder, quiet=True,
        )  # fmt: skip
        return [experiment.metrics.of(run.id).curve("evaluation/return") for run in experiment]

    beside = returns("beside")
    monkeypatch.setattr(training, "FleetActor", Waiting)
    for (steps, values), (other_steps, other_values) in zip(beside, returns("waiting"), strict=True):
        assert list(steps) == list(other_steps) == [20, 40]
        assert list(values) == list(other_values)


CANDIDATES = {"bcq", "bear", "uwac"}  # draw some and pick one


@pytest.mark.parametrize("algorithm", sorted(set(algorithm_names()) - CANDIDATES))
def test_written_down_a_policy_acts_the_same(algorithm: str) -> None:
    fleet = program(algorithm)
    policies = jax.device_get(fleet.policies(fleet.init()))
    stacked = jax.device_get((fleet.inputs.config, fleet.inputs.treatment, policies))
    instructions = write_down_fleet(fleet)
    width = 17 + (6 if fleet.algorithm.act_on_noise is not None else 0)  # with noise for halfcheetah's actions
    observations = np.random.default_rng(0).normal(size=(processes.EPISODES_TOGETHER, width)).astype(np.float32)
    for place in range(2):
        mine = jax.tree.map(lambda leaf, place=place: leaf[place], stacked)
        found = instructions.policy(jax.tree.leaves(mine))(observations)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, playing(fleet.algorithm)(*mine, observations), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("algorithm", sorted(CANDIDATES))
def test_candidates_cannot_be_written_down(algorithm: str) -> None:
    with pytest.raises(NotPortable):
        write_down_fleet(program(algorithm))


def test_judging_in_processes_is_judging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Watched(processes._Process):
        def __init__(self, niceness: int) -> None:
            super().__init__(niceness)
            started.append(self.pid)

    def judged(folder: str) -> list[np.ndarray]:
        experiment = score_rl.train(
            ["replica:halfcheetah-medium", "replica:walker2d-medium"], steps=20, seeds=[0, 1], eval_every=10,
            log_every=10, eval_episodes=2, transitions=2_000, config={"hidden": (32, 32), "batch_size": 32},
            out=tmp_path / folder, quiet=True,
        )  # fmt: skip
        names = ("evaluation/return", "evaluation/episode_length")
        return [experiment.metrics.of(run.id).curve(name)[1] for run in experiment for name in names]

    beside = judged("beside")
    monkeypatch.setattr(processes, "_Process", Watched)
    monkeypatch.setattr(processes, "worth_it", lambda *about: True)
    np.testing.assert_allclose(np.array(judged("processes")), np.array(beside), rtol=1e-3)
    assert 0 < len(started) <= 4
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_user_is_told_why_threads_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "worth_it", lambda *about: True)
    score_rl.train(
        "replica:hopper-medium", algorithm="bear", steps=4, eval_every=4, log_every=4, eval_episodes=1,
        transitions=2_000, config={"hidden": (32, 32), "vae_hidden": (32, 32), "batch_size": 32}, out=tmp_path / "out",
    )  # fmt: skip
    assert "BEAR's policies are judged by threads" in " ".join(capfd.readouterr().err.split())
