"""The experiments by name, in the paper's order."""

from score_rl.errors import unknown_name
from score_rl.paper.experiments import choice, comparison, curves, false_correlation, runtime, uncertainty_map
from score_rl.paper.experiments.plan import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for family in (comparison, choice, runtime, uncertainty_map, curves, false_correlation)
    for experiment in family.EXPERIMENTS
}


def get_experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
