"""Where policies act: beside training on the CPU, or on the training device while training waits."""

import pytest

import score_rl
from score_rl.algorithms.registry import get_algorithm
from score_rl.fleet import training
from score_rl.fleet.acting import COSTLY, FleetActor, operations_per_action
from score_rl.fleet.program import FleetProgram
from score_rl.fleet.spec import ExperimentSpec, expand_runs
from tests.fleet.conftest import recording


def program(algorithm: str, **settings) -> FleetProgram:
    data = recording(observation=17, action=6)
    spec = ExperimentSpec(
        algorithm=algorithm, datasets=(data.name,), seeds=(0, 1), settings=settings, steps=2, eval_every=2,
        eval_episodes=1, log_every=2,
    )  # fmt: skip
    return FleetProgram(expand_runs(spec, get_algorithm(algorithm), [data]))


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
def test_what_an_action_costs(algorithm, settings, costly):
    needed = operations_per_action(program(algorithm, **settings))
    assert needed > 1e5  # 17 x 256 + 256 x 256 + 256 x 6, each a product and a sum
    assert (needed > COSTLY) == costly


def test_an_actor_that_training_waits_for_judges_the_same(tmp_path, monkeypatch):
    class Waiting(FleetActor):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.training_waits = True

    def returns(folder: str):
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
