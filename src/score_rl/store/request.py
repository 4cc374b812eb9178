"""The request: everything that decides what an experiment computes, and what of it makes no sense."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from score_rl.data.columns import LEAST_USABLE, check_least_usable
from score_rl.data.splitting import check_fraction
from score_rl.errors import InputError, printable
from score_rl.nets.precision import PRECISIONS, Precision
from score_rl.store.fields import Fields

KEPT = "folder:"  # stands before the path of data that lie in the folder of an experiment
KEPT_IN = "data"
CYCLE = "the algorithm's cycle of updates (such as actor_delay)"
COMMON_CYCLE = "the algorithms' common cycle of updates (such as actor_delay)"


@dataclasses.dataclass(frozen=True)
class AlgorithmRequest:
    """One algorithm of an experiment and its settings."""

    name: str
    settings: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)  # their product is trained
    variants: tuple[Mapping[str, Any], ...] = ({},)  # settings over those of the product, one run for each of them
    precision: Precision = "float32"  # of its matrix products

    @classmethod
    def from_json(cls, stored: Fields) -> "AlgorithmRequest":
        settings = stored.inner("settings")
        variants = stored.list_of("variants", dict) if "variants" in stored.values else [{}]
        precision = stored.choice("precision", PRECISIONS) if "precision" in stored.values else "float32"
        return cls(
            name=stored.get("name", str),
            settings={name: tuple(map(_hashable, settings.get(name, list))) for name in settings.values},
            variants=tuple({name: _hashable(value) for name, value in variant.items()} for variant in variants),
            precision=cast("Precision", precision),
        )

    def check(self) -> None:
        for name, values in self.settings.items():
            _refuse_repeated(name, values)
        if not self.variants:
            raise InputError("`variants` is empty; leave it out, or give at least one.")
        if len({label(variant) for variant in self.variants}) < len(self.variants):
            shown = "; ".join(" ".join(label(variant)) or "nothing" for variant in self.variants)
            raise InputError(f"two variants are the same ({shown}); give each once.")
        if self.precision not in PRECISIONS:
            raise InputError(f"`precision` is {self.precision!r}; it must be auto, {' or '.join(PRECISIONS)}.")


@dataclasses.dataclass(frozen=True)
class ExperimentSpec:
    """Everything that decides what an experiment computes. It is stored, and resuming needs nothing else."""

    algorithms: tuple[AlgorithmRequest, ...]  # trained one after the other
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    steps: int
    eval_every: int
    eval_episodes: int
    log_every: int
    transitions: int | None = None  # rows of a replica; None is D4RL's size
    data_seed: int = 0
    environment: str | None = None  # overrides what the data says; "none": do not judge
    action_bounds: tuple[float, ...] | None = None
    physics: str = "d4rl"
    checkpoint_minutes: float = 1.0
    hold_out: float | None = None  # the share of trajectories that is kept from training, to judge by
    least_usable: float = LEAST_USABLE  # share of the rows that must have a next observation
    keep_best: bool = False  # the policy with the best evaluation, beside the last
    scales_own_data: bool = True  # observations of data that are no benchmark's, by methods whose default does not

    def to_json(self) -> dict[str, Any]:
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_json(cls, stored: Fields) -> "ExperimentSpec":
        bounds = stored.list_of("action_bounds", float) if stored.values.get("action_bounds") is not None else None
        for name in stored.list_of("datasets", str):
            if name.startswith(KEPT):
                refuse_elsewhere(name.removeprefix(KEPT), stored.file)
        return cls(
            algorithms=tuple(AlgorithmRequest.from_json(each) for each in stored.inner_list("algorithms")),
            datasets=tuple(stored.list_of("datasets", str)),
            seeds=tuple(stored.list_of("seeds", int)),
            steps=stored.whole("steps", 1),
            eval_every=stored.whole("eval_every", 1),
            eval_episodes=stored.whole("eval_episodes", 1),
            log_every=stored.whole("log_every", 1),
            transitions=stored.optional("transitions", int),
            data_seed=stored.get("data_seed", int),
            environment=stored.optional("environment", str),
            action_bounds=None if bounds is None else tuple(bounds),
            physics=stored.get("physics", str),
            checkpoint_minutes=stored.get("checkpoint_minutes", float),
            hold_out=stored.optional("hold_out", float),
            least_usable=stored.get("least_usable", float) if "least_usable" in stored.values else LEAST_USABLE,
            keep_best=bool(stored.optional("keep_best", bool)),
            scales_own_data=bool(stored.optional("scales_own_data", bool)),  # earlier versions did not
        )

    def of(self, algorithm: str) -> AlgorithmRequest:
        """What is asked of one of the algorithms."""
        return next(request for request in self.algorithms if request.name == algorithm)

    def alone(self, algorithm: str) -> dict[str, Any]:
        """What is asked of one of the algorithms, and all that is asked of each: as JSON, side by side."""
        values = self.to_json()
        mine = next(request for request in values.pop("algorithms") if request["name"] == algorithm)
        return {"algorithm": mine.pop("name")} | values | mine

    def check(self, turns: int) -> None:
        """Refuse what makes no sense. `turns` is the algorithms' common cycle of updates."""
        check_counts(**{name: getattr(self, name) for name in ("steps", "eval_every", "eval_episodes", "log_every")})
        if not self.checkpoint_minutes >= 0:
            raise InputError(f"`checkpoint_minutes` is {self.checkpoint_minutes}; it must be 0 or more.")
        if self.hold_out is not None:
            check_fraction(self.hold_out)
        check_least_usable(self.least_usable)
        if not self.seeds or not self.datasets or not self.algorithms:
            raise InputError("an experiment needs at least one algorithm, one data set and one seed.")
        if any(seed < 0 for seed in self.seeds):
            raise InputError(f"`seeds` holds {min(self.seeds)}; a seed must be 0 or more.")
        names = [request.name for request in self.algorithms]
        for what, values in (("`seeds`", self.seeds), ("`dataset`", self.datasets), ("`algorithm`", names)):
            _refuse_repeated(what, values)
        for request in self.algorithms:
            request.check()
        cycle = CYCLE if len(self.algorithms) == 1 else COMMON_CYCLE
        for name, divisor, what in (
            ("steps", self.log_every, "`log_every`"),
            ("eval_every", self.log_every, "`log_every`"),
            ("log_every", turns, cycle),
        ):
            if getattr(self, name) % divisor:
                raise InputError(f"`{name}` is {getattr(self, name)}; it must be a multiple of {what}, {divisor}.")
        if self.physics not in ("d4rl", "stock"):
            raise InputError(f"`physics` is {self.physics!r}; it must be d4rl or stock.")


def refuse_elsewhere(path: str, file: Path) -> None:
    """Refuse data that should lie in the folder of a record, and do not. A stranger may have written the record."""
    folder, _, name = path.partition("/")
    if folder != KEPT_IN or not name.endswith(".hdf5") or {"/", "\\"} & set(name):
        raise InputError(
            f"{file} cannot be read: its data {printable(path)!r} do not lie in its folder as {KEPT_IN}/NAME.hdf5; "
            "restore the file from a copy."
        )


def _refuse_repeated(name: str, values: Sequence[Any]) -> None:
    if len(set(values)) < len(values):
        raise InputError(f"{name} names a value twice: {', '.join(map(str, values))}; give each once.")


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def check_counts(**counts: int | None) -> None:
    """Refuse counts below 1; None stands for a count that was not given."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise InputError(f"`{name}` is {count}; it must be 1 or more.")


def whole_number(name: str, value: float) -> int:
    """A count that may be written as 1e6; refused where it is not whole."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or value % 1:
        raise InputError(f"{name} is {value!r}; it must be a whole number.")
    return int(value)


def default_eval_every(steps: int, log_every: int | None, turns: int) -> int:
    """5,000 updates or a little less, in whole windows or cycles, so that there is one evaluation at least."""
    if steps % turns:
        raise InputError(
            f"`steps` is {steps}; it must be a multiple of {turns}, the algorithm's cycle of updates (such as "
            "actor_delay)."
        )
    grid = math.lcm(turns, log_every or 1)
    return min(steps, max(grid, 5_000 // grid * grid))


def default_log_every(steps: int, eval_every: int, turns: int) -> int:
    """About 200 points per curve, never fewer than 500 updates apart, on the grid of the evaluations."""
    wanted = max(500, steps // 200)
    divisors = [n for n in range(turns, eval_every + 1, turns) if eval_every % n == 0 and steps % n == 0]
    if not divisors:
        raise InputError(
            f"`steps`, {steps}, and `eval_every`, {eval_every}, share no multiple of {turns}, the algorithm's cycle of "
            f"updates (such as actor_delay); make both multiples of {turns}."
        )
    return max((n for n in divisors if n <= wanted), default=divisors[0])


def label(variant: Mapping[str, Any]) -> tuple[str, ...]:
    """What tells a variant from others in the name of a run."""
    return tuple(f"{name}={short(value)}" for name, value in variant.items())


def short(value: Any) -> str:
    """A setting's value in the name of a run."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
