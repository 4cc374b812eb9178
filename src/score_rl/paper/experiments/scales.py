"""How large an experiment is run: from a look at the machinery to the paper's protocol.

The annealing of SCORE's λ is as long as the run at every scale: a hundredth of the updates between two decays, which
is the paper's 10,000 of a million. A short run then ends with the λ that the paper's ends with. The schedules of the
other methods (BEAR's and UWAC's warm-up, IQL's cosine, PBRL's β_ood) are shortened alike.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from score_rl.algorithms.settings import scheduled_for, schedules
from score_rl.errors import InputError
from score_rl.report.published import PAPER_STEPS

# Whatever makes a run small, where an algorithm has such a setting.
_NARROW = {
    "batch_size": 64, "hidden": (64, 64), "vae_hidden": (64, 64), "dynamics_hidden": (64, 64, 64, 64),
    "acting_samples": 10, "passes": 5, "rollouts": 1_000, "dynamics_epochs": 5, "paths": 4, "horizon": 50,
    "cloning_epochs": 2,
}  # fmt: skip
_TINY = _NARROW | {
    "batch_size": 16, "hidden": (16, 16), "vae_hidden": (16, 16), "dynamics_hidden": (16, 16, 16, 16),
    "target_samples": 2, "dropout_passes": 2, "rollouts": 16, "rollout_every": 10, "dynamics_epochs": 1, "paths": 2,
    "horizon": 5,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Scale:
    """What an experiment's runs have in common; declarations say where they differ."""

    name: str
    steps: int
    seeds: tuple[int, ...]
    eval_every: int
    eval_episodes: int
    transitions: int | None  # rows of a replica; None: D4RL's own size
    settings: Mapping[str, Any]
    proves: str  # what may be concluded, in a sentence that stands in the picture
    points: int = 1_000  # samples of each kind in the uncertainty map
    timed: int = 1_000  # updates that are timed

    @property
    def small(self) -> bool:
        """Whether a declaration should cut down its methods and data sets as well."""
        return self.name in ("trial", "smoke")


NOTHING = "{} scale: short runs of small networks on little data. This shows that it works and proves nothing."

SCALES = {
    scale.name: scale
    for scale in (
        Scale("smoke", 40, (0, 1), 20, 1, 2_000, _TINY, NOTHING.format("Smoke"), points=40, timed=4),
        Scale("trial", 4_000, (0, 1, 2), 500, 3, 20_000, _NARROW, NOTHING.format("Trial"), points=300, timed=20),
        Scale(
            "day", 300_000, (0, 1, 2, 3, 4), 25_000, 10, None, {},
            "Day scale: 300,000 updates, a third of the paper's million; λ's annealing is as long as the run.",
        ),
        Scale(
            "paper", PAPER_STEPS, (0, 1, 2, 3, 4), 10_000, 10, None, {},
            "The paper's protocol: 1,000,000 updates, five seeds, the last policy counts.",
        ),
    )
}  # fmt: skip
SHOWN = ("trial", "day", "paper")  # smoke is for the tests


def get_scale(name: str) -> Scale:
    if name not in SCALES:
        raise InputError(f"--scale is {name!r}; it must be {', '.join(SHOWN[:-1])} or {SHOWN[-1]}.")
    return SCALES[name]


def scheduled(config: Any, steps: int) -> dict[str, int]:
    """The schedules of a `Config`, for a run of `steps`."""
    return {name: scheduled_for(getattr(config, name), steps) for name in schedules(config)}
