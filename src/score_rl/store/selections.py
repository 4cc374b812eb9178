"""`selection.json`: what `score select` was asked, what it planned, what it did and what it chose."""

import dataclasses
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from score_rl.disk import read_own, write_file
from score_rl.errors import InputError, printable
from score_rl.store.checkpoints import FREE_AND_RESUME
from score_rl.store.fields import Fields
from score_rl.store.folder import refuse_links
from score_rl.store.judgements import VERDICTS
from score_rl.store.request import refuse_elsewhere

FILE = "selection.json"
FORMAT = 1
STAGE = re.compile(r"stage-[0-9]{1,9}")  # the folder of a stage
AGAIN = "restore the file from a copy, or select again"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else printable(str(value))


@dataclasses.dataclass(frozen=True)
class Variant:
    """A method and the settings in which it differs from the others of its grid."""

    algorithm: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def label(self) -> str:
        """Such as score alpha=0.3 beta=0.2."""
        settings = (f"{name}={_short(value)}" for name, value in self.settings.items())
        return printable(" ".join([self.algorithm, *settings]))

    @classmethod
    def from_json(cls, stored: Fields) -> "Variant":
        return cls(stored.get("algorithm", str), stored.get("settings", dict))


@dataclasses.dataclass(frozen=True)
class Size:
    """Of the networks and batches of every variant."""

    hidden: tuple[int, ...]
    batch_size: int

    @classmethod
    def from_json(cls, stored: Fields) -> "Size":
        return cls(tuple(stored.list_of("hidden", int)), stored.whole("batch_size", 1))


@dataclasses.dataclass(frozen=True)
class StagePlan:
    """So many updates, counted from the beginning, of so many variants; then all of them are judged."""

    steps: int
    variants: int
    judged_by: int  # updates of each policy's evaluators

    @classmethod
    def from_json(cls, stored: Fields) -> "StagePlan":
        return cls(**{name: stored.whole(name, 1) for name in ("steps", "variants", "judged_by")})


@dataclasses.dataclass(frozen=True)
class Speeds:
    """Measured on this machine before anything is planned. Updates are summed over runs."""

    updates: Mapping[str, float]  # a second, by method
    compiling: Mapping[str, float]  # seconds, by method
    evaluators: float  # updates a second of the judge's critics
    start: float = 2.0  # seconds of each stage that nothing else holds

    @classmethod
    def from_json(cls, stored: Fields) -> "Speeds":
        rates, seconds = stored.inner("updates"), stored.inner("compiling")
        return cls(
            {name: rates.get(name, float) for name in rates.values},
            {name: seconds.get(name, float) for name in seconds.values},
            stored.get("evaluators", float),
            stored.get("start", float),
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is trained: decided before anything is."""

    variants: tuple[Variant, ...]
    size: Size
    stages: tuple[StagePlan, ...]
    seconds: float | None = None  # that all of it should take
    speeds: Speeds | None = None

    @property
    def steps(self) -> int:
        """Updates of what is trained to the end."""
        return self.stages[-1].steps

    @classmethod
    def from_json(cls, stored: Fields) -> "Plan":
        stages = tuple(StagePlan.from_json(each) for each in stored.inner_list("stages"))
        if not stages:
            raise InputError(f"{stored.file} cannot be read: its plan has no stages; {AGAIN}.")
        return cls(
            variants=tuple(Variant.from_json(each) for each in stored.inner_list("variants")),
            size=Size.from_json(stored.inner("size")),
            stages=stages,
            seconds=stored.optional("seconds", float),
            speeds=None if stored.values.get("speeds") is None else Speeds.from_json(stored.inner("speeds")),
        )


@dataclasses.dataclass(frozen=True)
class StageDone:
    """What a stage took, and which variants it left."""

    folder: str
    training_seconds: float
    judging_seconds: float
    kept: tuple[str, ...]  # labels

    @classmethod
    def from_json(cls, stored: Fields) -> "StageDone":
        return cls(
            folder=stored.get("folder", str),
            training_seconds=stored.get("training_seconds", float),
            judging_seconds=stored.get("judging_seconds", float),
            kept=tuple(stored.list_of("kept", str)),
        )


@dataclasses.dataclass(frozen=True)
class Ranked:
    """One variant as the judge sees it, all its seeds together."""

    variant: Variant
    verdict: str
    value: float | None  # what it gains per step over the behaviour at least: of its worst seed
    runs: tuple[str, ...]  # ids of its runs, the best first
    reasons: tuple[str, ...] = ()
    steps: int | None = None  # updates after which it was judged

    @classmethod
    def from_json(cls, stored: Fields) -> "Ranked":
        return cls(
            variant=Variant.from_json(stored.inner("variant")),
            verdict=stored.choice("verdict", VERDICTS),
            value=stored.optional("value", float),
            runs=tuple(stored.list_of("runs", str)),
            reasons=tuple(stored.list_of("reasons", str)),
            steps=stored.optional("steps", int),
        )


@dataclasses.dataclass(frozen=True)
class Choice:
    """What is recommended."""

    folder: str | None  # of the experiment that holds the policy, within the selection's; None: no policy
    run: str | None
    better: bool  # whether it is better than the behaviour by the judge's rules
    why: str
    sure: str  # how sure that is
    table: tuple[Ranked, ...]  # the best first

    @classmethod
    def from_json(cls, stored: Fields) -> "Choice":
        folder, run = stored.optional("folder", str), stored.optional("run", str)
        table = tuple(Ranked.from_json(each) for each in stored.inner_list("table"))
        known = run is None or any(run in one.runs for one in table)
        if not known or (folder is None) != (run is None) or (folder and not STAGE.fullmatch(folder)):
            raise InputError(f"{stored.file} cannot be read: it chose a run that it does not list; {AGAIN}.")
        return cls(
            folder=folder,
            run=run,
            better=stored.get("better", bool),
            why=stored.get("why", str),
            sure=stored.get("sure", str),
            table=table,
        )


@dataclasses.dataclass(frozen=True)
class SelectionRequest:
    """What is asked for."""

    data: str  # a name, a path, or a file in the selection's own folder
    kept: bool  # whether it is that
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    hold_out: float
    budget: float  # seconds
    transitions: int | None = None
    action_bounds: tuple[float, ...] | None = None

    @classmethod
    def from_json(cls, stored: Fields) -> "SelectionRequest":
        bounds = stored.values.get("action_bounds")
        data, kept = stored.get("data", str), stored.get("kept", bool)
        if kept:
            refuse_elsewhere(data, stored.file)
        return cls(
            data=data,
            kept=kept,
            methods=tuple(stored.list_of("methods", str)),
            seeds=tuple(stored.list_of("seeds", int)),
            hold_out=stored.get("hold_out", float),
            budget=stored.get("budget", float),
            transitions=stored.optional("transitions", int),
            action_bounds=None if bounds is None else tuple(stored.list_of("action_bounds", float)),
        )


@dataclasses.dataclass(frozen=True)
class SelectionRecord:
    """A selection from request to choice."""

    request: SelectionRequest
    plan: Plan
    provenance: Mapping[str, Any]
    spent: float = 0.0  # seconds until the record was last written
    stages: tuple[StageDone, ...] = ()
    choice: Choice | None = None  # None until all is done
    created: str = dataclasses.field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **json.loads(json.dumps(dataclasses.asdict(self)))}

    @classmethod
    def from_json(cls, stored: Any, file: Path) -> "SelectionRecord":
        fields = Fields(stored, file)
        if fields.get("format", int) != FORMAT:
            raise InputError(f"{file} was written in another format; {AGAIN}.")
        return cls(
            request=SelectionRequest.from_json(fields.inner("request")),
            plan=Plan.from_json(fields.inner("plan")),
            provenance=fields.get("provenance", dict),
            spent=fields.get("spent", float),
            stages=tuple(StageDone.from_json(each) for each in fields.inner_list("stages")),
            choice=None if fields.values.get("choice") is None else Choice.from_json(fields.inner("choice")),
            created=fields.get("created", str),
        )


def write_selection(folder: Path, record: SelectionRecord) -> None:
    """Into the folder of the selection."""
    write_file(folder / FILE, (json.dumps(record.to_json(), indent=1) + "\n").encode(), if_full=FREE_AND_RESUME)


def read_selection(folder: Path) -> SelectionRecord:
    """Refused where the folder holds none."""
    file = folder / FILE
    if not file.exists() and not file.is_symlink():
        raise InputError(f"{folder} holds no selection (no {FILE}); give the folder that `score select` wrote.")
    refuse_links(folder)
    try:
        stored = json.loads(read_own(file, AGAIN))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file} is not valid JSON ({printable(str(error))}); {AGAIN}.") from error
    return SelectionRecord.from_json(stored, file)
