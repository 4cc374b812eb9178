"""A selection begins: its request is checked, the machine is measured, and the plan is made and stored."""

import dataclasses
import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from score_rl.data.catalogue import load_dataset
from score_rl.data.dataset import Dataset
from score_rl.data.splitting import check_fraction, split_dataset
from score_rl.errors import InputError, count, refuse_unwritable
from score_rl.judge.judging import effort_of
from score_rl.judge.selection.grid import variants_of
from score_rl.judge.selection.plan import check_stages
from score_rl.judge.selection.speeds import evaluator_speed, fitting_plan
from score_rl.live_line import as_duration
from score_rl.run.given_data import given_data, keep_data
from score_rl.run.messages import Announcer
from score_rl.store.folder import Folder
from score_rl.store.provenance import provenance
from score_rl.store.request import KEPT
from score_rl.store.selections import FILE, Plan, SelectionRecord, SelectionRequest, write_selection

LEAST_BUDGET = 30.0  # seconds


@dataclasses.dataclass(frozen=True)
class Asked:
    """The arguments of `select` that say what is chosen from."""

    data: Any
    columns: Mapping[str, Any] | None
    methods: Sequence[str]
    budget: str | float
    seeds: int | Sequence[int]
    hold_out: float
    transitions: int | None
    action_bounds: tuple[float, ...] | None


def begin(
    asked: Asked, plan: Plan | None, out: Path | str | None, announcer: Announcer
) -> tuple[Path, SelectionRecord]:
    """The folder of a new selection and its record, with the plan in it."""
    began = time.monotonic()
    if asked.data is None:
        raise InputError("no data is given; name a data set or a file, such as score select logs.hdf5.")
    budget, seeds = as_seconds(asked.budget), as_seeds(asked.seeds)
    check_fraction(asked.hold_out)
    variants = variants_of(asked.methods) if plan is None else list(plan.variants)
    if plan is not None:
        check_stages(plan)
    given = given_data(asked.data, asked.columns, None, asked.action_bounds)
    if len(given.names) != 1:
        raise InputError(f"{len(given.names)} data sets are given; select chooses for one, so give one.")
    (name,) = given.names
    kept = name in given.kept
    request = SelectionRequest(
        data=name.removeprefix(KEPT), kept=kept, methods=tuple(dict.fromkeys(one.algorithm for one in variants)),
        seeds=seeds, hold_out=asked.hold_out, budget=budget, transitions=asked.transitions,
        action_bounds=None if kept else asked.action_bounds,
    )  # fmt: skip
    folder = default_folder(name) if out is None else Path(out)
    refuse_unwritable(folder)
    if (folder / FILE).exists():
        raise InputError(
            f"{folder} holds a selection; go on with it by `score select --resume {folder}`, or give another `out`."
        )
    Folder.refuse_if_taken(folder)
    dataset = given.kept[name] if kept else load_named(request, quiet=announcer.quiet)
    trained_on = split_dataset(dataset, asked.hold_out).kept
    if plan is None:
        plan = _measured_plan(request, variants, trained_on, budget - (time.monotonic() - began), announcer)
    announcer.say(told(plan, len(seeds), budget))
    folder.mkdir(parents=True, exist_ok=True)
    keep_data(given.kept, folder)
    record = SelectionRecord(request, plan, provenance(), spent=time.monotonic() - began)
    write_selection(folder, record)
    return folder, record


def load_named(request: SelectionRequest, *, quiet: bool, folder: Path = Path()) -> Dataset:
    """The data of a selection, all of them; those that were given in memory lie in its folder."""
    if request.kept:
        return load_dataset(str(folder / request.data), progress=not quiet)
    return load_dataset(
        request.data, transitions=request.transitions, action_bounds=request.action_bounds, progress=not quiet
    )


def _measured_plan(
    request: SelectionRequest, variants: Sequence[Any], trained_on: Dataset, seconds: float, announcer: Announcer
) -> Plan:
    announcer.say("Measuring how fast this machine trains and judges ...")
    began = time.monotonic()
    evaluators = effort_of("auto")
    speed = evaluator_speed(trained_on, evaluators)
    left = seconds - (time.monotonic() - began)
    return fitting_plan(variants, len(request.seeds), trained_on, left, evaluators, speed)


def told(plan: Plan, seeds: int, budget: float) -> str:
    """The plan in words."""
    by_method = {one.algorithm: 0 for one in plan.variants}
    for one in plan.variants:
        by_method[one.algorithm] += 1
    listed = ", ".join(f"{name} {number}" for name, number in by_method.items())
    widths = "x".join(map(str, plan.size.hidden))
    lines = [f"Plan: {len(plan.variants)} variants ({listed}), {count(seeds, 'seed')} each, networks of {widths}."]
    before = None
    for number, stage in enumerate(plan.stages, 1):
        who = "all variants" if before is None else f"the best {stage.variants}"
        upto = f"{stage.steps:,} updates" if before is None else f"{before:,} to {stage.steps:,} updates"
        lines.append(f"  Stage {number}: train {who}, {upto}; then judge them by trajectories that were held out.")
        before = stage.steps
    if plan.seconds is not None:
        lines.append(f"  This should take about {as_duration(plan.seconds)} of the {as_duration(budget)}.")
    return "\n".join(lines)


def default_folder(name: str) -> Path:
    """runs/select-DATA-TIME."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"select-{Path(name.split(':')[-1]).stem}-{stamp}"


def as_seconds(budget: str | float) -> float:
    """90 s, 10m, 1.5h, or seconds as a number."""
    if isinstance(budget, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(s|m|h|)\w*\s*", budget)
        if found is None:
            raise InputError(f"`budget` is {budget!r}; it must be a time such as 90s, 10m or 2h.")
        seconds = float(found[1]) * {"s": 1, "": 1, "m": 60, "h": 3600}[found[2]]
    else:
        seconds = float(budget)
    if not LEAST_BUDGET <= seconds < 1e8:
        raise InputError(f"`budget` is {budget}; it must be {LEAST_BUDGET:.0f} s or more, such as 10m.")
    return seconds


def as_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """A number of seeds, or the seeds themselves."""
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError(f"`seeds` is {seeds}; it must be a number of 1 or more, or a list without repetitions.")
    return chosen
