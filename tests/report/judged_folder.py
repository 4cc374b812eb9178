"""A folder with a judgement, written through the store, with numbers that tests choose."""

from pathlib import Path

from score_rl.store.judgements import (
    BETTER,
    DOUBTFUL,
    FITTED,
    IMPORTANCE,
    MODEL,
    PESSIMISTIC,
    ROBUST,
    DataJudgement,
    Distance,
    Estimate,
    Histogram,
    JudgementRecord,
    PolicyJudgement,
    write_judgement,
)
from tests.report.folders import write_experiment

NAMES = ("valve", "pump<b>")
ESTIMATE = Estimate(-0.7, -0.8, -0.6, 0.5, 0.4, 0.6)
DATASET = "logs"


def distance(saturated: float = 0.0) -> Distance:
    histogram = Histogram(0.0, 250.0, (0.25, 0.5, 0.25), (0.0, 0.25, 0.75))
    return Distance((0.25, 0.5), (0.2, 0.2), 0.02, 0.03, saturated, 0.01, (histogram, histogram), histogram)


def policy(verdict: str, *reasons: str, effective: float = 1.3, step: int | None = 30) -> PolicyJudgement:
    estimates = dict.fromkeys((FITTED, PESSIMISTIC, MODEL, IMPORTANCE, ROBUST), ESTIMATE)
    far = distance(0.97 if verdict == DOUBTFUL else 0.0)
    return PolicyJudgement(verdict, reasons, estimates, far, 0.1, 0.2, effective, 0.4, step)


def write_judged(path: Path, *, held_out: bool = True, judged: int = 2) -> Path:
    """Three runs on logs without a simulator: one good, one ruined, one that nobody asked."""
    write_experiment(path, dataset=DATASET, scores=dict.fromkeys(range(3), (1.0, 2.0, 3.0)), environment=None)
    good, ruined = policy(BETTER, "All put it above."), policy(DOUBTFUL, "97% of its actions are at their bounds.")
    runs = dict(list({f"{DATASET}_seed=0": good, f"{DATASET}_seed=1": ruined}.items())[:judged])
    behaviour = dict.fromkeys((FITTED, PESSIMISTIC, MODEL, IMPORTANCE, ROBUST), Estimate(-1.2, -1.3, -1.1, 0, 0, 0))
    data = DataJudgement(
        DATASET, "c" * 64, 400, 12, held_out, 0.98, -1.25, behaviour, NAMES, "They agree.", runs, ("A remark.",)
    )
    write_judgement(path, JudgementRecord((data,), {"updates": 10}, {"code": "0"}))
    return path
