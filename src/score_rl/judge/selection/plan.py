"""How much is trained within a budget: arithmetic on measured speeds, decided before training begins."""

import dataclasses
from collections.abc import Sequence

from score_rl.errors import InputError
from score_rl.judge.fitting import Effort
from score_rl.judge.judging import effort_of
from score_rl.judge.selection.grid import REFERENCE
from score_rl.live_line import as_duration
from score_rl.store.selections import Plan, Size, Speeds, StagePlan, Variant

LENGTHS = (300_000, 200_000, 100_000, 50_000, 30_000, 20_000, 10_000, 5_000, 2_000)  # updates, the most first
COUNTS = (48, 32, 24, 16, 12, 8, 4)  # variants, where not all can be trained
ENOUGH_UPDATES, ENOUGH_VARIANTS = 10_000, 16  # more variants are taken only where each gets so many updates
PART = 4  # a first stage has a quarter of the updates and leaves a quarter of the variants
LEAST_KEPT = 4  # variants after a first stage
FITTED_BESIDE = ("behaviour_updates", "model_epochs", "density_updates")
SHARE = 0.8  # of the time left that is planned for: machines are not always equally fast
SIZES = (Size((256, 256), 256), Size((128, 128), 128), Size((64, 64), 128))  # of networks and batches


def check_stages(plan: Plan) -> None:
    """Refuse stages that cannot be trained. A plan may be a user's own, or from a folder of somebody else's."""
    steps = [stage.steps for stage in plan.stages]
    if not steps or sorted(set(steps)) != steps or any(step % 2 for step in steps):
        shown = ", ".join(map(str, steps)) or "none"
        raise InputError(
            f"the stages of the plan end after these updates: {shown}; they must be even numbers, each larger than the "
            "one before."
        )


def make_plan(
    variants: Sequence[Variant], seeds: int, size: Size, speeds: Speeds, seconds: float, judged_by: int
) -> Plan:
    """The plan for so many seconds; refused where even the smallest takes longer."""
    room = SHARE * seconds
    few = min(ENOUGH_VARIANTS, len(variants))
    counts = [len(variants), *(count for count in COUNTS if count < len(variants))]
    many = [count for count in counts if count >= few]
    least = [count for count in counts if count <= few]
    wanted = [(count, steps) for count in many for steps in LENGTHS if steps >= ENOUGH_UPDATES]
    wanted += [(count, steps) for count in least for steps in LENGTHS]
    for count, steps in wanted:
        chosen = list(variants[:count])
        for stages in (one_stage(steps, count, judged_by), two_stages(steps, count, judged_by)):
            needed = seconds_of(chosen, seeds, stages, speeds)
            if needed <= room:
                return Plan(tuple(chosen), size, stages, needed, speeds)
    smallest = seconds_of(variants[: counts[-1]], seeds, two_stages(LENGTHS[-1], counts[-1], judged_by), speeds)
    raise InputError(
        f"`budget` leaves {as_duration(seconds)} after this machine's speed was measured, and the smallest plan takes "
        f"{as_duration(smallest / SHARE)}; give a longer budget, fewer methods or fewer seeds."
    )


def is_usual(
    variants: Sequence[Variant], seeds: int, size: Size, speeds: Speeds, seconds: float, judged_by: int
) -> bool:
    """Whether the time suffices for enough variants with enough updates."""
    try:
        plan = make_plan(variants, seeds, size, speeds, seconds, judged_by)
    except InputError:
        return False
    return plan.steps >= ENOUGH_UPDATES and len(plan.variants) >= min(ENOUGH_VARIANTS, len(variants))


def one_stage(steps: int, variants: int, judged_by: int) -> tuple[StagePlan, ...]:
    """All variants to the end."""
    return (StagePlan(steps, variants, judged_by),)


def two_stages(steps: int, variants: int, judged_by: int) -> tuple[StagePlan, ...]:
    """All variants for a quarter of the updates, then the best quarter to the end."""
    kept = max(LEAST_KEPT, -(-variants // PART))
    if kept >= variants:
        return one_stage(steps, variants, judged_by)
    return StagePlan(steps // PART, variants, max(1, judged_by // 2)), StagePlan(steps, kept, judged_by)


def seconds_of(variants: Sequence[Variant], seeds: int, stages: Sequence[StagePlan], speeds: Speeds) -> float:
    """What stages take. Which variants a stage leaves is not known before: their mean speed counts."""
    total, before = 0.0, 0
    for stage in stages:
        updates = seeds * (stage.steps - before) * stage.variants / len(variants)
        training = sum(updates / speeds.updates[variant.algorithm] for variant in variants)
        compiling = sum(speeds.compiling[name] for name in {variant.algorithm for variant in variants})
        judging = (stage.variants * seeds + 1) * stage.judged_by / speeds.evaluators
        total += training + compiling + judging + speeds.start
        before = stage.steps
    return total


def affordable(
    ranked: Sequence[Variant], plan: Plan, number: int, seeds: int, seconds: float, slower: float
) -> list[Variant]:
    """Of the variants, the best first, those that stage `number` can go on with in the time that is left.

    So many as planned, or fewer where the machine proved `slower` than measured. One of behaviour cloning is always
    among them: it is what is recommended where nothing else is.
    """
    stage, before = plan.stages[number], plan.stages[number - 1].steps
    reference = [variant for variant in ranked if variant.algorithm == REFERENCE][:1]
    for count in range(min(stage.variants, len(ranked)), 1, -1):
        kept = list(ranked[:count])
        kept = kept if set_of(reference) <= set_of(kept) else [*kept[:-1], *reference]
        rest = StagePlan(stage.steps - before, len(kept), stage.judged_by)
        if plan.speeds is None or slower * seconds_of(kept, seeds, [rest], plan.speeds) <= seconds:
            return kept
    return kept


def final_effort(updates: int) -> Effort:
    """The evaluators of this machine, with so many updates each; what is fitted beside them shrinks in proportion."""
    usual = effort_of("auto")
    share = min(1.0, updates / usual.updates)
    beside = {name: max(1, round(getattr(usual, name) * share)) for name in FITTED_BESIDE}
    return dataclasses.replace(usual, updates=updates, **beside)


def set_of(variants: Sequence[Variant]) -> set[str]:
    return {variant.label for variant in variants}
