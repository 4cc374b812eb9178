"""The judge: an experiment's policies and the behaviour itself, from recorded trajectories alone."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from score_rl.data.dataset import Dataset
from score_rl.data.progress_bar import row_progress
from score_rl.data.splitting import split_dataset
from score_rl.errors import InputError
from score_rl.judge.candidates import Act, Candidates, TrainedPolicy
from score_rl.judge.distance import between_seeds, chosen_rows, distances
from score_rl.judge.evidence import Evidence
from score_rl.judge.fitting import Effort, fit_density, fit_model, fit_q
from score_rl.judge.importance import weighted_estimates
from score_rl.judge.intervals import of_members
from score_rl.judge.model_estimate import rollout_values
from score_rl.judge.sources import Parts, parts_of
from score_rl.judge.verdict import (
    FITTED,
    IMPORTANCE,
    MODEL,
    PESSIMISTIC,
    ROBUST,
    Asked,
    agreement,
    rank_value,
    verdict,
)
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

LEAST_EFFECTIVE = 5.0  # trajectories: weighted estimates made of fewer are not shown
STARTS = 100  # of imagined rollouts, at most
LONGEST_ROLLOUT = 200
LEAST_DISCOUNT = 0.9

EffortName = Literal["auto", "quick", "normal", "thorough"]
EFFORTS: Mapping[str, Effort] = {
    "quick": Effort(updates=3_000),
    "normal": Effort(
        updates=10_000, critics=5, hidden=(128, 128), batch_size=256, density_updates=10_000, model_hidden=(128, 128)
    ),
    "thorough": Effort(
        updates=50_000, critics=5, hidden=(256, 256), batch_size=256, tau=0.05, density_updates=20_000,
        model_hidden=(200, 200, 200), model_epochs=200, rows=1_000_000,
    ),
}  # fmt: skip


def judge(
    experiment: Experiment | Path | str,
    data: str | Path | None = None,
    *,
    runs: Sequence[str] = (),
    effort: EffortName = "auto",
    discount: float | None = None,
    quiet: bool = False,
) -> JudgementRecord:
    """Judge policies without a simulator, and store what was found in the experiment's folder.

    The trajectories that training held out (`hold_out`) are what estimates are computed from, or all of `data`. Without
    either the judge has to use what was trained on, says so, and flatters.

    >>> judgement = score_rl.judge("runs/logs")
    >>> judgement.runs["logs_seed=0"].verdict
    'better than the behaviour'
    """
    keep_compiled_programs()
    opened = experiment if isinstance(experiment, Experiment) else Experiment(experiment)
    wanted = [opened[name] for name in runs] or list(opened)
    size = effort_of(effort)
    by_data: dict[str, list[TrainedRun]] = {}
    for run in wanted:
        by_data.setdefault(run.dataset, []).append(run)
    found = [
        _judge_runs(parts_of(opened, name, data, quiet), mine, size, discount, quiet) for name, mine in by_data.items()
    ]
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
    policies = {
        run.id: TrainedPolicy(run.algorithm, run.config, run.treatment, run.algorithm.policy(run.state))
        for run in sound
    }
    if not sound:
        raise InputError("every run diverged, so there is no policy to judge; train with other settings.")
    counted = discount if discount is not None else usual_discount(parts.asked, [run.config for run in sound])
    judged = judge_policies(
        parts, policies, effort=effort, discount=counted, quiet=quiet,
        groups=[_group(run) for run in sound], warnings=[run.status.warning for run in sound],
    )  # fmt: skip
    steps = {run.id: run.step for run in sound}
    found = {name: dataclasses.replace(one, step=steps[name]) for name, one in judged.runs.items()}
    broken = PolicyJudgement(DOUBTFUL, ("Training diverged: its losses were no longer finite.",))
    return dataclasses.replace(judged, runs={run.id: found.get(run.id, broken) for run in runs})


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
    """Policies under their names: trained ones, or functions from observations to actions in the data's units."""
    asked, fitted_to = parts.asked, thinned(parts.fitted_to, effort.rows)
    evidence = Evidence(asked, discount)
    candidates = Candidates(policies, asked.action_low, asked.action_high)
    work = effort.updates * (len(candidates) + 1) + effort.density_updates
    with row_progress("fitting evaluators", work, shown=not quiet, unit="updates") as advance:
        behaviour = fit_density(fitted_to, effort, advance)
        model = fit_model(fitted_to, effort)
        fitted = fit_q(fitted_to, candidates, discount, effort, advance)
    starts = evidence.starts
    first, recorded = asked.observations[starts], asked.actions[starts]
    values = fitted.per_step(first, np.concatenate([candidates.act_on(first), recorded[None]]))
    imagined = rollout_values(
        model, candidates, behaviour, asked, _spread(first, STARTS),
        horizon=int(np.clip(1 / (1 - discount), 10, LONGEST_ROLLOUT)), discount=discount,
    )  # fmt: skip
    weighted = weighted_estimates(evidence, candidates, behaviour, fitted)
    columns: dict[str, list[Estimate]] = {
        FITTED: of_members(values),
        PESSIMISTIC: of_members(values, pessimistic=True),
        MODEL: of_members(imagined.values),
        IMPORTANCE: weighted.importance,
        ROBUST: weighted.doubly_robust,
    }
    rows = chosen_rows(asked)
    learned = candidates.act_on(asked.observations[rows])
    apart = between_seeds(learned, groups or candidates.names, (asked.action_high - asked.action_low) / 2)
    far = distances(asked, learned, rows, model, behaviour)
    found = {}
    for number, name in enumerate(candidates.names):
        mine = {kind: column[number] for kind, column in columns.items()}
        says = None if warnings is None else warnings[number]
        strayed, own = (float(imagined.strayed[place]) for place in (number, -1))
        seen = Asked(mine, far[number], strayed, own, apart[number], says)
        found[name] = _judgement(seen, float(weighted.effective[number]))
    return DataJudgement(
        name=asked.name,
        checksum=asked.checksum,
        rows=len(asked),
        trajectories=len(asked.trajectories),
        held_out=parts.held_out,
        discount=discount,
        recorded=evidence.recorded_value(),
        behaviour={kind: column[-1] for kind, column in columns.items()},
        action_names=asked.action_names or tuple(f"action {number}" for number in range(asked.action_dim)),
        agreement=agreement({name: one.estimates for name, one in found.items()}),
        runs=found,
    )


def _judgement(asked: Asked, effective: float) -> PolicyJudgement:
    """The verdict, and what is worth showing beside it."""
    words, reasons = verdict(asked)
    shown = dict(asked.estimates)
    if effective < LEAST_EFFECTIVE:
        del shown[IMPORTANCE], shown[ROBUST]
    apart, ranked = asked.seeds_apart, rank_value(asked.estimates)
    return PolicyJudgement(words, reasons, shown, asked.distance, asked.strayed, apart, effective, ranked)


def thinned(dataset: Dataset, rows: int) -> Dataset:
    """About so many rows at most: whole trajectories, spread evenly."""
    if len(dataset) <= rows:
        return dataset
    count = len(dataset.trajectories)
    share = np.clip(rows / len(dataset), 2 / count, 1 - 2 / count) if count >= 4 else 1.0
    return dataset if share >= 1 else split_dataset(dataset, float(share)).held_out


def _spread(rows: np.ndarray, number: int) -> np.ndarray:
    """So many of them at most, evenly spread."""
    return rows[np.linspace(0, len(rows) - 1, min(number, len(rows))).astype(np.int64)]
