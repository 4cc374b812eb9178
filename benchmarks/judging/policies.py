"""The policies that the judge is measured on: several methods and settings of SCORE, each at several ages."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from score_rl.algorithms.presets import preset
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.data.dataset import Dataset
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run, group_fleets
from score_rl.judge.candidates import TrainedPolicy

DEFAULT = "score"  # SCORE as it comes: what "always the default" takes


@dataclasses.dataclass(frozen=True)
class Contender:
    """A method with settings, under a name."""

    name: str
    method: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


SMALL = (
    Contender(DEFAULT, "score"),
    Contender("score, alpha 0.1", "score", {"alpha": 0.1}),
    Contender("score, alpha 0.3, beta 0.5", "score", {"alpha": 0.3, "beta": 0.5}),
    Contender("score, beta 0", "score", {"beta": 0.0}),
    Contender("iql", "iql"),
    Contender("iql, standardised", "iql", {"normalise_states": True}),
    Contender("td3-bc", "td3-bc"),
    Contender("rebrac", "rebrac"),
    Contender("bc", "bc"),
)
FULL = (
    Contender(DEFAULT, "score"),
    *(
        Contender(f"score, alpha {alpha:g}, beta {beta:g}", "score", {"alpha": alpha, "beta": beta, "bc_decay": 1.0})
        for alpha in (0.1, 0.3, 1.0, 2.5)
        for beta in (0.0, 0.2, 0.5)
    ),
    *SMALL[4:],
    Contender("cql", "cql"),
)


@dataclasses.dataclass(frozen=True)
class Aged:
    """A policy after some updates."""

    name: str
    contender: str
    seed: int
    updates: int
    policy: TrainedPolicy
    own_value: float | None  # what its method's critics expect per step in the first states; None without critics

    @property
    def group(self) -> tuple[str, int]:
        """Policies that differ in the seed alone."""
        return self.contender, self.updates


def train_policies(
    dataset: Dataset, contenders: Sequence[Contender], seeds: Sequence[int], ages: Sequence[int],
    sizes: Mapping[str, Any], starts: np.ndarray, *, presets: bool,
) -> Iterator[Aged]:  # fmt: skip
    """Every contender and seed, as it is at each age (updates). `sizes` are settings of all who have them."""
    runs, names = [], {}
    for contender in contenders:
        algorithm = get_algorithm(contender.method)
        known = {field.name for field in dataclasses.fields(algorithm.Config)}
        chosen = {name: value for name, value in sizes.items() if name in known}
        authors = preset(contender.method, dataset.name) if presets else {}
        config = make_config(algorithm, {**authors, **chosen, **contender.settings})
        for seed in seeds:
            run = Run(f"{contender.name}, seed {seed}", algorithm, dataset, seed, config)
            names[run.id] = contender.name
            runs.append(run)
    for fleet in group_fleets(runs):
        program = FleetProgram(fleet)
        state, done = program.init(), 0
        for age in ages:
            length = program.updates_per_call(age - done)
            for start in range(done, age, length):
                state, _ = program.advance(state, start, length)
            done = age
            held, treatments = jax.device_get((state, program.inputs.treatment))
            for number, run in enumerate(fleet):
                mine, treatment = (jax.tree.map(lambda leaf, n=number: leaf[n], tree) for tree in (held, treatments))
                acting = jax.tree.map(np.asarray, run.algorithm.policy(mine))
                policy = TrainedPolicy(run.algorithm, run.config, jax.tree.map(np.asarray, treatment), acting)
                name = f"{run.id}, {age} updates"
                yield Aged(name, names[run.id], run.seed, age, policy, _own_value(run, mine, treatment, starts))


def _own_value(run: Run, state: Any, treatment: Any, starts: np.ndarray) -> float | None:
    """The method's own Q of its own actions, per step and in the units of the data."""
    algorithm, config = run.algorithm, run.config
    if algorithm.value is None:
        return None
    seen = treatment.observe(np.asarray(starts, np.float32))
    actions = algorithm.act(config, algorithm.policy(state), seen)
    value = float(np.mean(algorithm.value(config, state, seen, actions)))
    return value * (1 - config.discount) * float(treatment.reward_scale) + float(treatment.reward_shift)
