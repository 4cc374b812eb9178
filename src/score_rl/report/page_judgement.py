"""What a page says of policies that were judged without a simulator: verdicts, estimates, distances, histograms."""

import dataclasses
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.report.figure_style import line_styles
from score_rl.report.judgement_figures import (
    SHOWN,
    action_histograms,
    estimate_dots,
    estimate_intervals,
    uncertainty_histograms,
)
from score_rl.report.page_charts import dots_json
from score_rl.report.page_files import Drawn, PageFiles
from score_rl.report.results import RunResult
from score_rl.store.judgements import (
    BETTER,
    DOUBTFUL,
    IMPORTANCE,
    SAME,
    WORSE,
    DataJudgement,
    Estimate,
    PolicyJudgement,
    rank_of,
    read_judgement,
)

CLASSES = {BETTER: "finished", SAME: "neutral", WORSE: "failed", DOUBTFUL: "failed"}
MOST_DRAWN = 6  # policies in the figures: more cannot be told apart, and the tables have all


@dataclasses.dataclass(frozen=True)
class JudgedPolicy:
    """A policy in the tables of the page."""

    name: str
    judged: PolicyJudgement
    stale: bool  # whether it was trained on since

    @property
    def look(self) -> str:
        """The class of its verdict."""
        return CLASSES[self.judged.verdict]

    @property
    def moved(self) -> float | None:
        """How far its actions are from the recorded ones, over all actions."""
        return None if self.judged.distance is None else float(np.mean(self.judged.distance.moved))


@dataclasses.dataclass(frozen=True)
class JudgementSection:
    """What was judged by one data set."""

    data: DataJudgement
    created: str
    policies: Sequence[JudgedPolicy]  # best first
    left_out: Sequence[str]  # runs of the experiment that were not judged
    estimators: Sequence[str]
    figures: Mapping[str, Drawn | None]
    csv: Sequence[tuple[str, str]]

    @property
    def counts(self) -> list[tuple[str, str, int]]:
        """Verdict, its look, and how many policies got it."""
        verdicts = [policy.judged.verdict for policy in self.policies]
        return [(verdict, look, verdicts.count(verdict)) for verdict, look in CLASSES.items() if verdict in verdicts]

    @property
    def hidden_weighted(self) -> bool:
        """Whether weighted estimates of a policy are left out, being made of too little."""
        return any(IMPORTANCE in p.judged.estimates and IMPORTANCE not in p.judged.shown for p in self.policies)

    @property
    def with_seeds(self) -> bool:
        return any(policy.judged.seeds_apart is not None for policy in self.policies)

    @property
    def undrawn(self) -> int:
        """How many judged policies the figures leave out."""
        return max(0, sum(policy.judged.distance is not None for policy in self.policies) - MOST_DRAWN)


def judgement_sections(runs: Sequence[RunResult], files: PageFiles) -> list[JudgementSection]:
    """A section for each folder and data set that was judged."""
    folders: dict[Path, list[RunResult]] = {}
    for run in runs:
        folders.setdefault(run.folder, []).append(run)
    sections = []
    for folder, mine in folders.items():
        record = read_judgement(folder)
        for data in () if record is None else record.data:
            sections.append(_section(data, record.created if record else "", mine, files))
    return sections


def _section(data: DataJudgement, created: str, runs: Sequence[RunResult], files: PageFiles) -> JudgementSection:
    steps = {run.name: run.step for run in runs}
    policies = [
        JudgedPolicy(name, judged, judged.step is not None and judged.step != steps.get(name, judged.step))
        for name, judged in sorted(data.runs.items(), key=lambda item: -rank_of(item[1]))
    ]
    drawn = {policy.name: policy.judged for policy in policies if policy.judged.distance is not None}
    chosen = dict(list(drawn.items())[:MOST_DRAWN])
    figures: Mapping[str, Drawn | None] = {"estimates": None, "actions": None, "uncertainty": None}
    if chosen:
        what = {
            "estimates": (estimate_intervals(drawn), "Reward per step beside the behaviour's, with 90 % intervals"),
            "actions": (action_histograms(chosen, data.action_names), "Actions: the policy's against the data's"),
            "uncertainty": (uncertainty_histograms(chosen), "How little is known of actions: the policy's, the data's"),
        }
        stills = {k: files.draw(figure, f"judged-{k}-{data.name}", title) for k, (figure, title) in what.items()}
        figures = stills | {"estimates": _for_script(stills["estimates"], drawn)}
    return JudgementSection(
        data=data,
        created=created,
        policies=policies,
        left_out=[run.name for run in runs if run.dataset == data.name and run.name not in data.runs],
        estimators=[kind for kind in data.behaviour if any(kind in policy.judged.shown for policy in policies)],
        figures=figures,
        csv=files.write_csv(f"judgement-{data.name}", judgement_csv(data)),
    )


def _for_script(still: Drawn, drawn: Mapping[str, PolicyJudgement]) -> Drawn:
    """The estimates as data for the page's script beside the still figure."""
    from markupsafe import Markup

    colours = {kind: colour for kind, (colour, _) in line_styles(list(SHOWN)).items()}
    data = dots_json(
        still.title, "reward per step, less the behaviour's", estimate_dots(drawn), colours,
        level=90, zero="the behaviour",
    )  # fmt: skip
    return dataclasses.replace(still, curves=Markup(data))  # it escapes


def render_judgement(sections: Sequence[JudgementSection], environment: Any) -> Any:
    """The sections as HTML; empty where nothing was judged."""
    from markupsafe import Markup

    if not sections:
        return Markup("")
    source = resources.files("score_rl.report").joinpath("page_judgement.html").read_text()
    template = environment.from_string(source)
    functions = {"against": against, "share": share, "beside": zip_names}
    return Markup(template.render(sections=sections, most_drawn=MOST_DRAWN, **functions))  # its texts are escaped


def zip_names(names: Sequence[str], values: Sequence[float]) -> list[tuple[str, float]]:
    """Each value under its name."""
    return list(zip(names, values, strict=True))


def verdict_counts(runs: Sequence[RunResult]) -> list[tuple[str, str, int]]:
    """Verdict, its look, and how many of these runs got it."""
    found = [run.verdict for run in runs]
    return [(verdict, look, found.count(verdict)) for verdict, look in CLASSES.items() if verdict in found]


def against(estimate: Estimate) -> str:
    """How much more than the behaviour's it is."""
    return f"{estimate.difference:+.3g}"


def share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}" if value < 0.995 or value == 1 else "99%"


def judgement_csv(data: DataJudgement) -> str:
    """One row for each policy and estimator; the behaviour is one of the policies."""
    lines = ["policy,verdict,estimator,value,low_90,high_90,difference,difference_low_90,difference_high_90"]
    rows = [(name, one.verdict, one.shown) for name, one in data.runs.items()] + [("behaviour", "", data.behaviour)]
    for name, verdict, estimates in rows:
        for kind, each in estimates.items():
            numbers = (each.value, each.low, each.high, each.difference, each.difference_low, each.difference_high)
            cells = (name, verdict, kind, *map(repr, numbers))
            lines.append(",".join(f'"{cell}"' if "," in cell else cell for cell in cells))
    return "\n".join([*lines, ""])
