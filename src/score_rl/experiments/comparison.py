"""The methods side by side: the big table, the aggregates and the profiles, all of the same runs."""

import dataclasses
from collections.abc import Sequence

from score_rl.algorithms.presets import preset
from score_rl.algorithms.registry import algorithm_names, get_algorithm
from score_rl.errors import unknown_name
from score_rl.experiments.curves import SCORE, as_json, shown
from score_rl.experiments.plan import Asked, Done, Experiment, Presentation, Request, Table, Variant, product
from score_rl.report.figures import aggregate_intervals, performance_profiles, score_bars
from score_rl.report.paper import paper_dataset, paper_datasets
from score_rl.report.results import Group, RunResult, group, tell_apart
from score_rl.report.statistics import AGGREGATES, aggregates, comparable, profiles
from score_rl.report.tables import ScoreTable, score_table, to_csv, to_latex

METHODS = ("score", "mopo", "morel", "bcq", "bear", "uwac", "cql", "td3-bc", "pbrl-prior", "pbrl")  # the paper's order
SMALL_METHODS = {"smoke": ("score", "td3-bc"), "trial": ("score", "td3-bc", "cql")}
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
    """Kept runs on any of the paper's data sets, under whatever tells them apart; ablations are no methods."""
    known = tell_apart([run for run in results if paper_dataset(run.dataset) and ordinary(run)])
    return [Done(each.method, run) for each in group(known) for run in each.runs]


def ordinary(run: RunResult) -> bool:
    """Whether its settings are its authors', but for schedules; of SCORE, one common β and γ_bc on all data sets."""
    config = get_algorithm(run.algorithm).Config()
    usual = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)} | preset(run.algorithm, run.dataset)
    free = ("bc_decay_every", "warmup_steps")  # schedules, which a shorter run shortens
    told = {name: value for name, value in run.config.items() if name in usual and name not in free}
    return all((list(usual[n]) if isinstance(usual[n], tuple) else usual[n]) == v for n, v in told.items())


def groups_of(done: Sequence[Done]) -> list[Group]:
    """In the paper's order, then whatever else there is."""
    places = {name: place for place, name in enumerate(METHODS)}
    ordered = sorted(done, key=lambda run: places.get(run.result.algorithm, len(places)))
    return group(tell_apart([run.result for run in ordered]))


def unfinished(done: Sequence[Done]) -> list[str]:
    return [
        f"{run.result.name} ({run.label}): {run.result.status} at update {run.result.step:,}; counts nowhere."
        for run in done
        if not run.result.finished
    ]


def main_table(request: Request, done: Sequence[Done]) -> Presentation:
    table = score_table(groups_of(done))
    made = Presentation(remarks=unfinished(done))
    paper: dict[str, dict[str, float]] = {}
    for (dataset, method), printed in table.paper.items():
        paper.setdefault(method, {})[dataset] = printed.mean
    scores = {
        method: {
            dataset: cell.interval
            for dataset in table.datasets
            if (cell := table.cells.get((dataset, method))) is not None and cell.interval is not None
        }
        for method in table.methods
    }
    made.figures["scores"] = score_bars(scores, paper)
    made.texts = {"table.csv": to_csv(table), "table.tex": to_latex(table)}
    made.tables["summary"] = _readable(table)
    made.numbers["cells"] = [
        {
            "dataset": dataset, "method": method, "mean": cell.mean, "std": cell.std, "seeds": cell.seeds,
            "asked": cell.asked, "best": cell.best,
            "paper": table.paper[dataset, method]._asdict() if (dataset, method) in table.paper else None,
        }
        for (dataset, method), cell in table.cells.items()
    ]  # fmt: skip
    made.numbers["overall"] = {method: {"mean": c.mean, "std": c.std} for method, c in table.overall.items()}
    return made


def _readable(table: ScoreTable) -> Table:
    """As the paper prints it, the paper's own cell in brackets; * marks the best of a row."""
    rows = []
    for dataset in table.datasets:
        row = [dataset]
        for method in table.methods:
            cell, paper = table.cells.get((dataset, method)), table.paper.get((dataset, method))
            text = "-" if cell is None else f"{cell}{'*' if cell.best else ''}"
            row.append(text + (f" ({paper})" if paper is not None else ""))
        rows.append(row)
    if table.overall:
        overall = ["overall"]
        for method in table.methods:
            cell, paper = table.overall.get(method), table.paper_overall.get(method)
            text = "-" if cell is None else f"{cell}{'*' if cell.best else ''}"
            overall.append(text + (f" ({paper})" if paper is not None else ""))
        rows.append(overall)
    title = "Normalised score (%), mean ± std over seeds, * best; in brackets what the paper prints for D4RL"
    return Table(title, ("data set", *table.methods), rows)


def aggregate(request: Request, done: Sequence[Done]) -> Presentation:
    matrices, datasets, notes = comparable(final_scores(done))
    found = aggregates(matrices)
    made = Presentation(remarks=[*unfinished(done), *notes])
    made.figures["aggregates"] = aggregate_intervals(found)
    rows = [(method, *(shown(mine[name]) for name in AGGREGATES)) for method, mine in found.items()]
    made.tables["aggregates"] = Table(
        f"Over {len(datasets)} data sets, [95 % stratified bootstrap interval]", ("method", *AGGREGATES), rows
    )
    made.numbers = {
        "datasets": datasets,
        "aggregates": {m: {name: as_json(mine[name]) for name in AGGREGATES} for m, mine in found.items()},
    }
    return made


def profile(request: Request, done: Sequence[Done]) -> Presentation:
    matrices, datasets, notes = comparable(final_scores(done))
    found = profiles(matrices)
    made = Presentation(remarks=[*unfinished(done), *notes])
    made.figures["profiles"] = performance_profiles(found)
    rows = [
        (method, f"{threshold:.2f}", f"{share:.4f}", f"{low:.4f}", f"{high:.4f}")
        for method, mine in found.items()
        for threshold, share, low, high in zip(mine.thresholds, mine.share, mine.low, mine.high, strict=True)
    ]
    title = f"Share of runs above each score, over {len(datasets)} data sets"
    made.tables["profiles"] = Table(title, ("method", "threshold", "share", "low_95", "high_95"), rows)
    made.numbers["datasets"] = datasets
    return made


def final_scores(done: Sequence[Done]) -> dict[str, dict[str, list[float]]]:
    """{method: {data set: the last scores of the runs that finished}}."""
    scores: dict[str, dict[str, list[float]]] = {}
    for each in groups_of(done):
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
        compares=True,
    ),
    Experiment(
        "aggregates",
        "figure 3: median, IQM, mean and optimality gap with 95 % intervals",
        "SCORE is best in all four, before PBRL and CQL.",
        plan,
        aggregate,
        stored=stored,
        compares=True,
    ),
    Experiment(
        "profiles",
        "figure 4: performance profiles with bands",
        "The area under SCORE's profile is the largest.",
        plan,
        profile,
        stored=stored,
        compares=True,
    ),
)
