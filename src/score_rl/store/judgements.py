"""`judgement.json`: what is said of an experiment's policies from recorded data alone."""

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from score_rl.disk import read_own, write_file
from score_rl.errors import InputError, printable
from score_rl.store.checkpoints import FREE_AND_RESUME
from score_rl.store.fields import Fields

FILE = "judgement.json"
FORMAT = 1
AGAIN = "judge the runs again"
BETTER, SAME, WORSE, DOUBTFUL = "better than the behaviour", "not distinguishable", "worse", "not to be trusted"
VERDICTS = (BETTER, SAME, WORSE, DOUBTFUL)
FITTED, PESSIMISTIC, MODEL = "fitted Q", "fitted Q, pessimistic", "model"
IMPORTANCE, ROBUST = "importance sampling", "doubly robust"
LEAST_EFFECTIVE = 5.0  # trajectories: weighted estimates made of fewer are not shown


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What an estimator says of one policy, per step, and how much more that is than the behaviour's."""

    value: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float

    @property
    def sign(self) -> int:
        """1 if it is above the behaviour, -1 if below, 0 where the interval of the difference holds 0."""
        return int(self.difference_low > 0) - int(self.difference_high < 0)

    @classmethod
    def from_json(cls, stored: Fields) -> "Estimate":
        return cls(**{field.name: stored.get(field.name, float) for field in dataclasses.fields(cls)})


@dataclasses.dataclass(frozen=True)
class Histogram:
    """Shares in equal bins between two ends."""

    low: float
    high: float
    data: tuple[float, ...]
    policy: tuple[float, ...]

    @classmethod
    def from_json(cls, stored: Fields) -> "Histogram":
        shares = {name: tuple(stored.list_of(name, float)) for name in ("data", "policy")}
        return cls(stored.get("low", float), stored.get("high", float), **shares)


@dataclasses.dataclass(frozen=True)
class Distance:
    """How far a policy is from the data. Moves are in half-ranges of each action: 2 is from bound to bound."""

    moved: tuple[float, ...]  # mean |π(s) - a|, for each action
    behaviour_spread: tuple[float, ...]  # the same of the behaviour around its own mean
    unknown: float  # share of states whose action is less known than all but 1 % of the recorded ones
    unlikely: float  # share of states whose action the behaviour takes less often than all but 1 % of its own
    saturated: float  # share of actions at a bound
    saturated_in_data: float
    actions: tuple[Histogram, ...]
    uncertainty: Histogram  # logarithms (base 10) of the dynamics ensemble's disagreement

    @classmethod
    def from_json(cls, stored: Fields) -> "Distance":
        numbers = {name: stored.get(name, float) for name in ("unknown", "unlikely", "saturated", "saturated_in_data")}
        return cls(
            moved=tuple(stored.list_of("moved", float)),
            behaviour_spread=tuple(stored.list_of("behaviour_spread", float)),
            actions=tuple(Histogram.from_json(each) for each in stored.inner_list("actions")),
            uncertainty=Histogram.from_json(stored.inner("uncertainty")),
            **numbers,
        )


@dataclasses.dataclass(frozen=True)
class PolicyJudgement:
    """One policy."""

    verdict: str
    reasons: tuple[str, ...]
    estimates: Mapping[str, Estimate] = dataclasses.field(default_factory=dict)  # by the estimator's name
    distance: Distance | None = None  # None where nothing could be asked of it
    strayed: float | None = None  # share of imagined steps outside of what was recorded
    seeds_apart: float | None = None  # how far the actions of its seeds spread, in half-ranges; None for one seed
    effective: float | None = None  # of how many trajectories the weighted estimates are in effect made
    rank_value: float | None = None  # policies are ranked by it: what it gains on the behaviour at least
    step: int | None = None  # updates after which the policy was taken

    @property
    def shown(self) -> dict[str, Estimate]:
        """The estimates that are made of enough to be shown."""
        enough = self.effective is not None and self.effective >= LEAST_EFFECTIVE
        return {name: each for name, each in self.estimates.items() if enough or name not in (IMPORTANCE, ROBUST)}

    @classmethod
    def from_json(cls, stored: Fields) -> "PolicyJudgement":
        return cls(
            verdict=stored.choice("verdict", VERDICTS),
            reasons=tuple(stored.list_of("reasons", str)),
            estimates={name: Estimate.from_json(each) for name, each in stored.inner_by_name("estimates")},
            distance=None if stored.values.get("distance") is None else Distance.from_json(stored.inner("distance")),
            strayed=stored.optional("strayed", float),
            seeds_apart=stored.optional("seeds_apart", float),
            effective=stored.optional("effective", float),
            rank_value=stored.optional("rank_value", float),
            step=stored.optional("step", int),
        )


@dataclasses.dataclass(frozen=True)
class DataJudgement:
    """What the policies trained on one data set were judged by."""

    name: str
    checksum: str  # of the trajectories that estimates are computed from
    rows: int
    trajectories: int
    held_out: bool  # whether they took no part in training
    discount: float
    recorded: float  # what the behaviour earned per step
    behaviour: Mapping[str, Estimate]  # by the estimator's name
    action_names: tuple[str, ...]
    agreement: str  # how far the estimators agree, in words
    runs: Mapping[str, PolicyJudgement]
    remarks: tuple[str, ...] = ()  # what was done to the data, and which runs were left out

    @classmethod
    def from_json(cls, stored: Fields) -> "DataJudgement":
        return cls(
            name=stored.get("name", str),
            checksum=stored.get("checksum", str),
            agreement=stored.get("agreement", str),
            rows=stored.get("rows", int),
            trajectories=stored.get("trajectories", int),
            held_out=stored.get("held_out", bool),
            discount=stored.get("discount", float),
            recorded=stored.get("recorded", float),
            behaviour={name: Estimate.from_json(each) for name, each in stored.inner_by_name("behaviour")},
            action_names=tuple(stored.list_of("action_names", str)),
            runs={name: PolicyJudgement.from_json(each) for name, each in stored.inner_by_name("runs")},
            remarks=tuple(stored.list_of("remarks", str)) if "remarks" in stored.values else (),
        )


@dataclasses.dataclass(frozen=True)
class JudgementRecord:
    """The judgement of an experiment."""

    data: tuple[DataJudgement, ...]
    effort: Mapping[str, Any]  # how large the evaluators were
    provenance: Mapping[str, Any]
    created: str = dataclasses.field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def runs(self) -> dict[str, PolicyJudgement]:
        """All policies by the ids of their runs, the highest ranked first."""
        every = {name: run for data in self.data for name, run in data.runs.items()}
        return dict(sorted(every.items(), key=lambda item: -rank_of(item[1])))

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **json.loads(json.dumps(dataclasses.asdict(self)))}

    @classmethod
    def from_json(cls, stored: Any, file: Path) -> "JudgementRecord":
        fields = Fields(stored, file)
        if fields.get("format", int) != FORMAT:
            raise InputError(f"{file} was written in another format; {AGAIN}.")
        return cls(
            data=tuple(DataJudgement.from_json(each) for each in fields.inner_list("data")),
            effort=fields.get("effort", dict),
            provenance=fields.get("provenance", dict),
            created=fields.get("created", str),
        )


def rank_of(judged: PolicyJudgement) -> float:
    """Who is not to be trusted comes last."""
    if judged.rank_value is None:
        return float("-inf")
    return judged.rank_value - (1e12 if judged.verdict == DOUBTFUL else 0.0)


def doubt_of(folder: Path, run: str, step: int) -> str | None:
    """In a sentence what was judged against this policy; None where nothing was, or where it was trained on since."""
    record = read_judgement(folder)
    judged = None if record is None else record.runs.get(run)
    if judged is None or judged.step not in (None, step) or judged.verdict not in (WORSE, DOUBTFUL):
        return None
    words = f"{judged.verdict} than the behaviour" if judged.verdict == WORSE else judged.verdict
    return f"score judge calls it {words}. {' '.join(judged.reasons)}"


def write_judgement(folder: Path, record: JudgementRecord) -> None:
    """Into the folder of the experiment."""
    write_file(folder / FILE, (json.dumps(record.to_json(), indent=1) + "\n").encode(), if_full=FREE_AND_RESUME)


def read_judgement(folder: Path) -> JudgementRecord | None:
    """None where the experiment was not judged."""
    file = folder / FILE
    if not file.exists() and not file.is_symlink():
        return None
    try:
        stored = json.loads(read_own(file, AGAIN))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file} is not valid JSON ({printable(str(error))}); {AGAIN}.") from error
    return JudgementRecord.from_json(stored, file)
