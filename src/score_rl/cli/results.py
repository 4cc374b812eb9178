"""The tables at the end of a training: every run, and the mean over seeds of each setting, best first."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group as Lines
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from score_rl.cli.terminal import plus_minus
from score_rl.report.results import LAST_EVALUATIONS, LENGTH, RETURN, SCORE, Group, RunResult, score_name
from score_rl.report.tables import mean_and_std
from score_rl.store.judgements import WORSE

MOST_RUNS = 40  # that are listed; of more, only those that need a look


def results_tables(experiment: Any, width: int) -> Lines:
    """What a training came to: its runs, and for each data set the mean over seeds of each method and setting."""
    from score_rl.report.grouping import gather, group

    runs = gather([experiment.path])
    metric = SCORE if any(SCORE in run.curves for run in runs) else RETURN
    groups = group(runs)
    if len(runs) == 1 or not any(each.measured(metric) for each in groups):
        return Lines(runs_table(experiment, runs, metric, width))
    shown = runs if len(runs) <= MOST_RUNS else [run for run in runs if not run.finished or run.is_suspect]
    left_out = len(runs) - len(shown)
    parts: list[Any] = [runs_table(experiment, shown, metric, width)] if shown else []
    parts += [f"{left_out} more runs finished; `score report` shows each.\n"] if left_out else []
    datasets = dict.fromkeys(each.dataset for each in groups)
    return Lines(*parts, *(settings_table(experiment, dataset, groups, metric) for dataset in datasets))


def runs_table(experiment: Any, runs: Sequence[RunResult], metric: str, width: int) -> Table:
    """The last policy of every run; of a run that is alone, beside the policy that recorded the data."""
    judged, alone = any(metric in run.curves for run in runs), len(experiment) == 1
    together = len({run.step for run in runs}) == 1
    unit = score_name(runs) if metric == SCORE else "return"
    several = ", mean ± std over episodes" if _episodes(experiment) > 1 else ""
    headings = [*([] if together else ["updates"]), *(["behaviour policy"] if alone and judged else [])]
    states = [state_of(run) for run in runs]
    longest = max(map(len, ("not to be trusted", *(run.status for run in runs))))
    others = sum(map(len, headings)) + 14 * judged + longest + 3 * (len(headings) + judged + 1) + 2
    names, room = [run.name for run in runs], max(20, width - others)
    shared = shared_beginning(names) if max(map(len, names)) > room else ""
    table = new_table(
        (f"last policies after {runs[0].step:,} updates" if together else "last policies")
        + f"\n{unit + several if judged else 'not judged in episodes'}"
        + (f"\neach name begins with {shared}" if shared else "")
    )
    table.add_column("run", no_wrap=True)
    for heading in headings + ["learned policy"] * judged:
        table.add_column(heading, justify="right")
    table.add_column("state")
    for run, state in zip(runs, states, strict=True):
        name = f"… {run.name.removeprefix(shared)}" if shared else run.name
        cells = [name_in_lines(name, room)] + ([] if together else [f"{run.step:,}"])
        cells += [_behaviour(experiment, run.dataset, metric)] if alone and judged else []
        cells += [_learned(experiment, run, metric)] if judged else []
        table.add_row(*cells, state)
    return table


def shared_beginning(names: Sequence[str]) -> str:
    """The parts with which all of several names begin; of one name there is none."""
    if len(names) < 2:
        return ""
    places = zip(*(name.split("_")[:-1] for name in names), strict=False)
    return "".join(f"{parts[0]}_" for parts in takewhile(lambda parts: len(set(parts)) == 1, places))


def state_of(run: RunResult) -> Text:
    """How a run ended, and in words what speaks against its policy."""
    words = [run.status]
    if run.warning is not None:
        words.append("doubtful")
    if run.verdict is not None:
        words.append(f"judged {run.verdict}" if run.verdict == WORSE else run.verdict)
    return Text(",\n".join(words), style="bold red" if run.is_suspect else "")


def settings_table(experiment: Any, dataset: str, groups: Sequence[Group], metric: str) -> Table:
    """The mean over seeds for each method and setting on one data set, best first."""
    behaviour = _behaviour(experiment, dataset, metric)
    mine = [each for each in groups if each.dataset == dataset]
    spread = "mean ± std over seeds" if any(len(each.runs) > 1 for each in mine) else "one seed each"
    table = new_table(f"{escape(dataset)}, behaviour policy {behaviour}\n{spread}, best first")
    table.add_column("method and settings")
    for heading in ("seeds", "last policy", f"last {LAST_EVALUATIONS} evaluations"):
        table.add_column(heading, justify="right")
    said = any(run.is_suspect for each in mine for run in each.runs)
    if said:
        table.add_column("suspect")
    for each in sorted(mine, key=lambda each: _mean(each.final(metric)), reverse=True):
        last, late = each.final(metric), each.late(metric)
        seeds = str(len(last)) if len(last) == len(each.runs) else f"{len(last)} of {len(each.runs)}"
        suspects = sum(run.is_suspect for run in each.runs)
        doubt = [f"[bold red]{suspects} of {len(each.runs)}[/]" if suspects else ""] if said else []
        table.add_row(Text(each.method), seeds, _over_seeds(last), _over_seeds(late), *doubt)
    return table


def new_table(title: str) -> Table:
    """A table that leaves the width of a terminal to what it says."""
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)


def name_in_lines(name: str, longest: int) -> str:
    """A run's name, broken between its parts where it is longer than a line."""
    lines = [""]
    for part in name.split("_"):
        joined = f"{lines[-1]}_{part}" if lines[-1] else part
        if lines[-1] and len(joined) > longest:
            lines[-1] += "_"
            lines.append(part)
        else:
            lines[-1] = joined
    return escape("\n".join(lines))


def _behaviour(experiment: Any, dataset: str, metric: str) -> str:
    """What the policy that recorded the data reaches: per episode where it recorded whole ones, else per step."""
    data = experiment.record.datasets[dataset].to_json()
    key = "behaviour_score" if metric == SCORE else "behaviour_return"
    if key not in data and metric == RETURN and "behaviour_reward" in data:
        return f"{data['behaviour_reward']:.4g} per step"
    return plus_minus(data[key], data.get(f"{key}_std")) if key in data else "not known"


def _learned(experiment: Any, run: RunResult, metric: str) -> str:
    """What a run's last policy reaches; per step too, where that is all that is known of the behaviour policy."""
    spread = run.last(f"{metric}_std") if _episodes(experiment) > 1 else None
    reached, length = plus_minus(run.last(metric), spread), run.last(LENGTH)
    whole = "behaviour_return" in experiment.record.datasets[run.dataset].to_json()
    if metric == SCORE or whole or not length:
        return reached
    return f"{reached}\n{(run.last(metric) or 0.0) / length:.4g} per step"


def _episodes(experiment: Any) -> int:
    """How many a judgement had; of one nothing is known of the spread."""
    return int(experiment.spec.eval_episodes)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else -np.inf


def _over_seeds(values: np.ndarray) -> str:
    """The deviation is divided by n, as on the page and in the paper. One seed alone has none."""
    if not len(values):
        return "not judged"
    return mean_and_std(float(values.mean()), float(values.std()) if len(values) > 1 else None)
