"""The methods side by side: the big table, the aggregates and the profiles, all of the same runs."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from score_rl.algorithms.registry import algorithm_names, get_algorithm
from score_rl.errors import unknown_name
from score_rl.paper.experiments.curves import SCORE, as_json, shown
from score_rl.paper.experiments.plan import Asked, Done, Experiment, Presentation, Request, Table, Variant, product
from score_rl.paper.experiments.protocols import METHODS, as_rows, chosen, closest, labelled, protocol_of, was_chosen
from score_rl.report.grouping import group, tell_apart
from score_rl.report.published import SEEDS, Printed, data_kind, paper_dataset, paper_datasets, printed
from score_rl.report.results import Group, RunResult
from score_rl.report.score_figures import aggregate_intervals, performance_profiles, score_bars
from score_rl.report.statistics import AGGREGATES, Company, aggregates, agreement, companies, profiles, require_rliable
from score_rl.report.tables import Cell, ScoreTable, mean_and_std, score_table, to_csv, to_latex

SMALL_METHODS = {"smoke": ("score", "td3-bc"), "trial": ("score", "td3-bc", "cql")}
NOTHING = "-"
SMALL_DATASETS = ("hopper-medium", "hopper-medium-replay")


def plan(request: Request) -> list[Asked]:
    """Methods × the paper's fifteen data sets × seeds."""
    methods = request.methods or SMALL_METHODS.get(request.scale.name, METHODS)
    for method in methods:
        if method not in algorithm_names():
            raise unknown_name("method", method, algorithm_names())
    datasets = request.data(SMALL_DATASETS if request.scale.small else paper_datasets())
    return product(request, [Variant(get_algorithm(m).title, algorithm=m) for m in methods], datasets)


def stored(results: Sequence[RunResult]) -> list[Done]:
    """Of the kept runs on the paper's data sets those whose protocol is closest to the paper's, and those with settings
    that a grid chose; ablations are no methods."""
    return [Done(each.method, run) for each in (*closest(results), *chosen(results)) for run in each.runs]


def groups_of(done: Sequence[Done]) -> list[Group]:
    """In the paper's order, then whatever else there is, under the paper's names of the data sets. Chosen settings are
    no methods of their own."""
    places = {name: place for place, name in enumerate(METHODS)}
    usual = [run for run in done if not was_chosen(run.result)]
    ordered = sorted(usual, key=lambda run: places.get(run.result.algorithm, len(places)))
    return as_rows(group(tell_apart([run.result for run in ordered])))


def unfinished(done: Sequence[Done]) -> list[str]:
    return [
        f"{run.result.name} ({run.label}): {run.result.status} at update {run.result.step:,}; counts nowhere."
        for run in done
        if not run.result.finished
    ]


def main_table(request: Request, done: Sequence[Done]) -> Presentation:
    groups = groups_of(done)
    plain, named = score_table(groups), score_table(labelled(groups))
    made = Presentation(remarks=unfinished(done))
    paper: dict[str, dict[str, float]] = {}
    for (dataset, method), theirs in named.paper.items():
        paper.setdefault(method, {})[dataset] = theirs.mean
    scores = {
        method: {
            dataset: cell.interval
            for dataset in named.datasets
            if (cell := named.cells.get((dataset, method))) is not None and cell.interval is not None
        }
        for method in named.methods
    }
    labels = {dataset: label.replace(" (", "\n(") for dataset, label in named.labels.items()}
    made.figures["scores"] = score_bars(scores, paper, labels=labels)
    made.texts = {"table.csv": to_csv(plain), "table.tex": to_latex(named)}
    made.tables["summary"] = _readable(plain, groups)
    if picked := chosen([run.result for run in done]):
        made.tables["chosen"] = _with_choices(plain, picked)
        made.numbers["chosen"] = [
            {
                "dataset": paper_dataset(each.dataset), "settings": _settings(each), "seeds": len(each.finished),
                "by_seeds": each.runs[0].request["chosen_by_seeds"], "mean": _mean(each), "std": _std(each),
            }
            for each in picked
        ]  # fmt: skip
    made.numbers["cells"] = [
        {
            "dataset": dataset, "method": method, "mean": cell.mean, "std": cell.std, "seeds": cell.seeds,
            "asked": cell.asked, "best": cell.best, "data": cell.data, "updates": cell.updates,
            "paper": plain.paper[dataset, method]._asdict() if (dataset, method) in plain.paper else None,
            "overlap": cell.agrees or None,
        }
        for (dataset, method), cell in plain.cells.items()
    ]  # fmt: skip
    made.numbers["overall"] = {method: {"mean": c.mean, "std": c.std} for method, c in plain.overall.items()}
    return made


def _readable(table: ScoreTable, groups: Sequence[Group]) -> Table:
    """A row for each data set and method, so that it fits a terminal whatever the number of methods."""
    protocols = {(each.dataset, each.method): protocol_of(each) for each in groups}
    rows = []
    for dataset in table.datasets:
        for method in table.methods:
            cell, paper = table.cells.get((dataset, method)), table.paper.get((dataset, method))
            if cell is not None:
                name = f"{dataset} ({data_kind(cell.data)})" if paper_dataset(dataset) == dataset else dataset
                beside = _beside(cell, paper)
                rows.append((name, method, _starred(cell), *beside, str(protocols[dataset, method])))
    for method, cell in table.overall.items():
        name = f"overall ({len(table.datasets)} data sets)"
        rows.append((name, method, _starred(cell), *_beside(cell, table.paper_overall.get(method)), ""))
    title = (
        "Normalised score (%), mean ± std over seeds, * best on its data set; in brackets whether the 95 % intervals "
        "overlap, with p where they do and Welch's test still tells the means apart; length: updates × seeds, the "
        "paper's being 1M × 5, on D4RL's own data"
    )
    return Table(title, ("data set", "method", "here", "paper", "apart", "length"), rows)


def _with_choices(table: ScoreTable, picked: Sequence[Group]) -> Table:
    """Settings that other seeds chose for a data set, beside the method's one setting for all and the paper's cell."""
    rows: list[tuple[str, ...]] = []
    for each in picked:
        dataset, protocol = paper_dataset(each.dataset) or each.dataset, protocol_of(each)
        common, paper = table.cells.get((dataset, each.method)), printed(each.algorithm, dataset)
        here = f"{_mean(each):.1f} ± {_std(each):.1f}" + (f" ({protocol})" if protocol.shorter else "")
        apart = ""
        if paper is not None:
            apart = f"{_mean(each) - paper.mean:+.1f} ({agreement(each.final(SCORE).tolist(), *paper, SEEDS)})"
        settings = ", ".join(f"{value:g}" for value in _settings(each).values())
        rows.append((dataset, settings, here, _or_nothing(common), _or_nothing(paper), apart))
    method = picked[0].method
    whole = [each for each in picked if not protocol_of(each).shorter]
    if whole and method in table.overall:
        rows.append(_overall_with_choices(table, method, whole))
    title = (
        f"{method} with settings for each data set, chosen from a grid by other seeds than these. Overall: with these "
        "settings, and with the one for all on the other data sets"
    )
    return Table(title, ("data set", ", ".join(_settings(picked[0])), "here", "one for all", "paper", "apart"), rows)


def _overall_with_choices(table: ScoreTable, method: str, picked: Sequence[Group]) -> tuple[str, ...]:
    mine = {paper_dataset(each.dataset): (_mean(each), _std(each)) for each in picked}
    cells = {dataset: table.cells[dataset, method] for dataset in table.datasets}
    both = [mine.get(dataset, (cell.mean, cell.std)) for dataset, cell in cells.items()]
    mean, stds = float(np.mean([mean for mean, _ in both])), [std for _, std in both if std is not None]
    whole = mean_and_std(mean, float(np.mean(stds)) if len(stds) == len(both) else None)
    paper = table.paper_overall.get(method)
    beside = (str(table.overall[method]), _or_nothing(paper), "" if paper is None else f"{mean - paper.mean:+.1f}")
    return (f"overall ({len(both)} data sets)", f"on {len(mine)} of {len(both)}", whole, *beside)


def _or_nothing(cell: Cell | Printed | None) -> str:
    return NOTHING if cell is None else str(cell)


def _settings(each: Group) -> dict[str, float]:
    """What the grid went over."""
    return {name: each.runs[0].config[name] for name in each.runs[0].request["settings"]}


def _mean(each: Group) -> float:
    return float(np.mean(each.final(SCORE)))


def _std(each: Group) -> float:
    return float(np.std(each.final(SCORE)))


def _beside(cell: Cell, paper: Printed | None) -> tuple[str, str]:
    """The paper's, how far it is from here, and whether the intervals overlap."""
    if paper is None:
        return NOTHING, ""
    return str(paper), f"{cell.mean - paper.mean:+.1f}" + (f" ({cell.agrees})" if cell.agrees else "")


def _starred(cell: Cell) -> str:
    return f"{cell}{'*' if cell.best else ''}"


def aggregate(request: Request, done: Sequence[Done]) -> Presentation:
    together, notes = companies(final_scores(done))
    made = Presentation(remarks=[*unfinished(done), *notes])
    for name, company in _numbered("aggregates", together).items():
        found = aggregates(company.matrices)
        rows = [(method, *(shown(mine[name]) for name in AGGREGATES)) for method, mine in found.items()]
        title = f"{_over(company)}, [95 % stratified bootstrap interval]"
        columns = ("method", "median", "IQM", "mean", "optimality gap")
        made.tables[name] = Table(title, columns, rows)
        if company in _drawn(together):
            made.figures[name] = aggregate_intervals(found)
        made.numbers.setdefault("companies", []).append({
            "datasets": company.datasets,
            "aggregates": {m: {name: as_json(mine[name]) for name in AGGREGATES} for m, mine in found.items()},
        })  # fmt: skip
    return made


def profile(request: Request, done: Sequence[Done]) -> Presentation:
    together, notes = companies(final_scores(done))
    made = Presentation(remarks=[*unfinished(done), *notes])
    for name, company in _numbered("profiles", _drawn(together)).items():
        found = profiles(company.matrices)
        made.figures[name] = performance_profiles(found)
        rows = [
            (method, f"{threshold:.2f}", f"{share:.4f}", f"{low:.4f}", f"{high:.4f}")
            for method, mine in found.items()
            for threshold, share, low, high in zip(mine.thresholds, mine.share, mine.low, mine.high, strict=True)
        ]
        columns = ("method", "threshold", "share", "low_95", "high_95")
        made.tables[name] = Table(f"Share of runs above each score. {_over(company)}", columns, rows, printed=False)
        made.numbers.setdefault("companies", []).append(
            {"datasets": company.datasets, "methods": list(company.matrices)}
        )
    return made


def _drawn(together: Sequence[Company]) -> Sequence[Company]:
    """Pictures compare: a method alone is drawn only where there is nothing else."""
    return [company for company in together if len(company.matrices) > 1] or together[:1]


def _numbered(name: str, together: Sequence[Company]) -> dict[str, Company]:
    """name, name-2, name-3: as files are called."""
    return {name if place == 1 else f"{name}-{place}": company for place, company in enumerate(together, 1)}


def _over(company: Company) -> str:
    number = len(company.datasets)
    return f"Over {number} data set{'s' if number > 1 else ''} ({', '.join(company.datasets)})"


def final_scores(done: Sequence[Done]) -> dict[str, dict[str, list[float]]]:
    """{method: {data set: the last scores of the runs that finished}}."""
    scores: dict[str, dict[str, list[float]]] = {}
    for each in labelled(groups_of(done)):
        scores.setdefault(each.method, {})[each.dataset] = each.final(SCORE).tolist()
    return scores


EXPERIMENTS = (
    Experiment(
        "main-table",
        "table 4: all methods on 15 data sets, beside the paper's own figures",
        "SCORE has the highest overall score, 77.0, before PBRL's 76.6 and CQL's 70.5.",
        plan,
        main_table,
        stored=stored,
        check_tools=partial(require_rliable, "paper"),
        compares=True,
    ),
    Experiment(
        "aggregates",
        "figure 3: median, IQM, mean and optimality gap with 95 % intervals",
        "SCORE is best in all four, before PBRL and CQL.",
        plan,
        aggregate,
        stored=stored,
        check_tools=partial(require_rliable, "paper"),
        compares=True,
    ),
    Experiment(
        "profiles",
        "figure 4: performance profiles with bands",
        "The area under SCORE's profile is the largest.",
        plan,
        profile,
        stored=stored,
        check_tools=partial(require_rliable, "paper"),
        compares=True,
    ),
)
