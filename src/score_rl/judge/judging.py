"""The judge: an experiment's policies and the behaviour itself, from recorded trajectories alone."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from score_rl.data.dataset import Dataset
from score_rl.data.splitting import split_dataset
from score_rl.errors import InputError
from score_rl.judge.candidates import Act, Candidates, TrainedPolicy
from score_rl.judge.distance import between_seeds, chosen_rows, distances
from score_rl.judge.estimates import estimates_by, fit_evaluators
from score_rl.judge.evidence import FEW, Evidence, in_pieces
from score_rl.judge.fitting import Effort
from score_rl.judge.sources import Parts, parts_of
from score_rl.judge.verdict import CALLED, Asked, agreement, rank_value, verdict
from score_rl.run.compiled_programs import keep_compiled_programs
from score_rl.run.experiment import Experiment, TrainedRun
from score_rl.store.judgements import (
    DOUBTFUL,
    DataJudgement,
    Estimate,
    JudgementRecord,
    PolicyJudgement,
    write_judgement,
)
from score_rl.store.provenance import provenance

LEAST_DISCOUNT = 0.9
ASTRAY = 0.5  # of the steps imagined with the behaviour: what a model says from there on is made up
DIVERGED = PolicyJudgement(DOUBTFUL, ("Training diverged: its losses were no longer finite.",))
NOT_A_NUMBER = PolicyJudgement(DOUBTFUL, ("Some of its actions are not finite numbers.",))

EffortName = Literal["auto", "quick", "normal", "thorough"]
EFFORTS: Mapping[str, Effort] = {
    "quick": Effort(updates=3_000),
    "normal": Effort(
        updates=10_000, critics=5, hidden=(128, 128), batch_size=256, density_updates=10_000, model_hidden=(128, 128)
    ),
    "thorough": Effort(
        updates=50_000, behaviour_updates=100_000, critics=5, hidden=(256, 256), batch_size=256, tau=0.05,
        density_updates=20_000, model_hidden=(200, 200, 200), model_epochs=200, rows=1_000_000,
    ),
}  # fmt: skip


def judge(
    experiment: Experiment | Path | str,
    data: str | Path | None = None,
    *,
    runs: Sequence[str] = (),
    effort: EffortName | Effort = "auto",
    discount: float | None = None,
    quiet: bool = False,
) -> JudgementRecord:
    """Judge policies without a simulator, and store what was found in the experiment's folder.

    The trajectories that training held out (`hold_out`) are what estimates are computed from, or all of `data`. Without
    either the judge has to use what was trained on, says so, and flatters. Runs without a checkpoint yet are left out,
    and the record says which.

    >>> judgement = score_rl.judge("runs/logs")
    >>> judgement.runs["logs_seed=0"].verdict
    'better than the behaviour'

    Args:
        experiment: An experiment, or its folder.
        data: A data set that took no part in training; what was held out unless given.
        runs: Ids of the runs to judge; all unless given.
        effort: How large the evaluators are: "quick", "normal", "thorough", or "auto" by the device.
        discount: γ of all estimates; the methods' own unless given, but no horizon beyond the trajectories.
        quiet: Whether to show no progress.
    """
    keep_compiled_programs()
    opened = experiment if isinstance(experiment, Experiment) else Experiment(experiment)
    size = effort if isinstance(effort, Effort) else effort_of(effort)
    if discount is not None and not 0 <= discount < 1:
        raise InputError(f"`discount` is {discount:g}; it must be at least 0 and below 1.")
    wanted = [opened[name] for name in dict.fromkeys(runs)] or list(opened)
    begun = [run for run in wanted if run.status.step > 0]
    if not begun:
        raise InputError(f"{opened.path} holds no trained policy yet; wait for the first checkpoint, or train first.")
    by_data: dict[str, list[TrainedRun]] = {}
    for run in begun:
        by_data.setdefault(run.dataset, []).append(run)
    found = [
        _judge_runs(parts_of(opened, name, data, quiet), mine, size, discount, quiet) for name, mine in by_data.items()
    ]
    left_out = tuple(f"{run.id} has no checkpoint yet and was not judged." for run in wanted if run not in begun)
    found[0] = dataclasses.replace(found[0], remarks=(*found[0].remarks, *left_out))
    record = JudgementRecord(tuple(found), dataclasses.asdict(size), provenance())
    write_judgement(opened.path, record)
    return record


def effort_of(name: str) -> Effort:
    """How large the evaluators are; auto is quick on a CPU and normal on an accelerator."""
    if name == "auto":
        name = "quick" if jax.default_backend() == "cpu" else "normal"
    if name not in EFFORTS:
        raise InputError(
            f"`effort` is {name!r}; it must be auto, {', '.join(list(EFFORTS)[:-1])} or {list(EFFORTS)[-1]}."
        )
    return EFFORTS[name]


def _judge_runs(
    parts: Parts, runs: Sequence[TrainedRun], effort: Effort, discount: float | None, quiet: bool
) -> DataJudgement:
    """The runs of one data set; one that diverged has no policy to ask."""
    sound = [run for run in runs if run.status.state != "diverged"]
    counted = discount if discount is not None else usual_discount(parts.asked, [run.config for run in runs])
    judged = judge_policies(
        parts, {run.id: _policy_of(run) for run in sound}, effort=effort, discount=counted, quiet=quiet,
        groups=[_group(run) for run in sound], warnings=[run.status.warning for run in sound],
    )  # fmt: skip
    steps = {run.id: run.step for run in sound}
    found = {name: dataclasses.replace(one, step=steps[name]) for name, one in judged.runs.items()}
    return dataclasses.replace(judged, runs={run.id: found.get(run.id, DIVERGED) for run in runs})


def _policy_of(run: TrainedRun) -> TrainedPolicy:
    return TrainedPolicy(run.algorithm, run.config, run.treatment, run.algorithm.policy(run.state))


def _group(run: TrainedRun) -> Any:
    """Runs that differ in the seed alone."""
    return run.record.algorithm, tuple(sorted((name, str(value)) for name, value in run.record.config.items()))


def usual_discount(dataset: Dataset, configs: Sequence[Any]) -> float:
    """The methods' own, but no horizon 1/(1 - γ) longer than recordings are that merely stopped.

    What comes after the end of every recording is nowhere in the data.
    """
    own = max((getattr(config, "discount", 0.0) for config in configs), default=0.0) or 0.99
    lengths = np.diff(dataset.trajectories, axis=1)[:, 0]
    stopped = ~dataset.terminals[dataset.trajectories[:, 1] - 1]
    if not stopped.any():
        return min(own, 0.999)
    return float(np.clip(1 - 1 / lengths[stopped].mean(), LEAST_DISCOUNT, min(own, 0.999)))


def judge_policies(
    parts: Parts,
    policies: Mapping[str, TrainedPolicy | Act],
    *,
    effort: Effort,
    discount: float,
    groups: Sequence[Any] | None = None,
    warnings: Sequence[str | None] | None = None,
    quiet: bool = True,
) -> DataJudgement:
    """Policies under their names: trained ones, or functions from observations to actions in the data's units.

    `groups` tells which of them differ in the seed alone. `warnings` are what training found wrong with them.
    """
    asked, fitted_to = in_pieces(thinned(parts.asked, effort.rows), discount), thinned(parts.fitted_to, effort.rows)
    rows = chosen_rows(asked)
    acts = Candidates(policies, asked.action_low, asked.action_high).act_on(asked.observations[rows])
    sound = {name: bool(np.isfinite(mine).all()) for name, mine in zip(policies, acts, strict=True)}
    kept = [number for number, name in enumerate(policies) if sound[name]]
    candidates = Candidates({n: p for n, p in policies.items() if sound[n]}, asked.action_low, asked.action_high)
    evidence = Evidence(asked, discount)
    fits = fit_evaluators(fitted_to, candidates, discount, effort, quiet)
    columns, strayed, effective = estimates_by(evidence, candidates, fits)
    apart = between_seeds(
        acts[kept], [(groups or list(policies))[number] for number in kept], (asked.action_high - asked.action_low) / 2
    )
    far = distances(asked, acts[kept], rows, fits.model, fits.behaviour)
    found = dict.fromkeys(policies, NOT_A_NUMBER)
    for place, (number, name) in enumerate(zip(kept, candidates.names, strict=True)):
        mine = {kind: column[place] for kind, column in columns.items()}
        says = None if warnings is None else warnings[number]
        seen = Asked(mine, far[place], float(strayed[place]), float(strayed[-1]), apart[place], says)
        found[name] = _judgement(seen, float(effective[place]))
    return DataJudgement(
        name=asked.name,
        checksum=parts.asked.checksum,
        rows=len(parts.asked),
        trajectories=len(parts.asked.trajectories),
        held_out=parts.held_out,
        discount=discount,
        recorded=evidence.recorded_value(),
        behaviour={kind: column[-1] for kind, column in columns.items()},
        action_names=asked.action_names or tuple(f"action {number}" for number in range(asked.action_dim)),
        agreement=agreement({name: one.estimates for name, one in found.items() if one.estimates}),
        runs=found,
        remarks=(*_remarks(parts.asked, asked), *_of_behaviour(evidence, columns, float(strayed[-1]))),
    )


def _remarks(recorded: Dataset, asked: Dataset) -> tuple[str, ...]:
    """What was done to the recording before it was judged by."""
    pieces, trajectories = len(asked.trajectories), len(recorded.trajectories)
    if trajectories >= FEW:
        used = f"Estimates are computed from {len(asked):,} of these rows, in whole trajectories spread evenly."
        return (used,) if len(asked) < len(recorded) else ()
    only = f"Only {trajectories} {'trajectory' if trajectories == 1 else 'trajectories'}"
    if pieces == trajectories:
        return (f"{only}: intervals over so few say little.",)
    return (f"{only}, cut into {pieces} pieces, which are taken as independent.",)


def _of_behaviour(evidence: Evidence, columns: Mapping[str, Sequence[Estimate]], strayed: float) -> tuple[str, ...]:
    """What the estimators make of the behaviour, whose value is known."""
    said = " and ".join(f"{columns[kind][-1].value:.4g} by {called}" for kind, called in CALLED.items())
    missed = (
        f"The behaviour earned {evidence.recorded_value():.4g} per step, and is worth {said}: a policy's gain that is "
        "smaller than what an estimator misses there says little."
    )
    if strayed <= ASTRAY:
        return (missed,)
    return missed, (
        f"Even with the behaviour {strayed:.0%} of the imagined steps lie outside of everything recorded: the model "
        "knows these data badly."
    )


def _judgement(asked: Asked, effective: float) -> PolicyJudgement:
    """The verdict, and what it was made of."""
    words, reasons = verdict(asked)
    apart, ranked = asked.seeds_apart, rank_value(asked.estimates)
    return PolicyJudgement(words, reasons, asked.estimates, asked.distance, asked.strayed, apart, effective, ranked)


def thinned(dataset: Dataset, rows: int) -> Dataset:
    """About so many rows at most: whole trajectories, spread evenly."""
    if len(dataset) <= rows:
        return dataset
    count = len(dataset.trajectories)
    share = np.clip(rows / len(dataset), 2 / count, 1 - 2 / count) if count >= 4 else 1.0
    return dataset if share >= 1 else split_dataset(dataset, float(share)).held_out
