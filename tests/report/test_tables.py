"""Tables hold what the runs reached, and say over how many."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from score_rl.report.grouping import gather, group
from score_rl.report.results import RETURN, SCORE, Group
from score_rl.report.tables import escape_latex, mean_and_std, score_table, to_csv, to_latex
from tests.report.folders import write_experiment

HOPPER, WALKER = "replica:hopper-medium", "replica:walker2d-medium"


@pytest.fixture
def groups(tmp_path: Path) -> list[Group]:
    write_experiment(tmp_path / "a", scores={0: [1.0, 90.0], 1: [2.0, 80.0], 2: [3.0], 3: [4.0, 85.0]}, steps=20,
                     states={2: "diverged"})  # fmt: skip
    write_experiment(tmp_path / "b", scores={0: [50.0, 60.04], 1: [4.0, 60.0]}, steps=20, dataset=WALKER)
    write_experiment(tmp_path / "c", scores={0: [5.0, 95.0]}, steps=20, algorithm="td3-bc")
    write_experiment(tmp_path / "d", scores={0: [6.0]}, steps=20, algorithm="td3-bc", dataset=WALKER, state="running",
                     states={0: "training"})  # fmt: skip
    return group(gather([tmp_path]))


def test_cells_are_means_over_what_finished(groups: list[Group]) -> None:
    table = score_table(groups)
    cell = table.cells[HOPPER, "SCORE"]
    assert (cell.mean, cell.seeds, cell.asked, cell.whole) == (85.0, 3, 4, False)
    assert cell.std == pytest.approx(np.std([90, 80, 85]))
    assert str(cell) == "85.0 ± 4.1"
    assert cell.interval is not None
    assert cell.interval.low == pytest.approx(85 - 4.30265 * 5 / np.sqrt(3), rel=1e-4)
    assert cell.late == pytest.approx(np.mean([45.5, 41.0, 44.5])), "the mean of each run's last evaluations"
    single, two = table.cells[HOPPER, "TD3-BC"], table.cells[WALKER, "SCORE"]
    assert single.interval is not None
    assert two.interval is not None
    assert not single.interval.has_interval
    assert not two.interval.has_interval, "two seeds are too few for an interval"
    assert single.std is None, "one seed has no deviation"
    assert str(single) == "95.0"
    assert table.unfinished == {(WALKER, "TD3-BC"): 1}
    assert (WALKER, "TD3-BC") not in table.cells, "a run that still trains has no result"


def best(groups: list[Group]) -> list[tuple[str, str]]:
    return [key for key, cell in score_table(groups).cells.items() if cell.best]


def test_the_best_is_the_highest_mean_whose_interval_is_apart(groups: list[Group], tmp_path: Path) -> None:
    assert best(groups) == [], "one seed of TD3-BC has no interval"
    near = {"near": {0: [84.0], 1: [88.0], 2: [95.0]}, "apart": {0: [199.0], 1: [200.0], 2: [201.0]}}
    for folder, scores in near.items():
        write_experiment(tmp_path / folder, scores=scores, steps=10, algorithm="iql" if folder == "near" else "bc")
    near_only = [each for each in group(gather([tmp_path / "a", tmp_path / "near"])) if each.dataset == HOPPER]
    assert best(near_only) == [], "their intervals meet"
    all_three = group(gather([tmp_path / "a", tmp_path / "near", tmp_path / "apart"]))
    assert best([each for each in all_three if each.dataset == HOPPER]) == [(HOPPER, "BC")]


def test_a_missing_deviation_is_not_averaged_as_zero(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [90.0], 1: [80.0]}, steps=10)
    write_experiment(tmp_path / "b", scores={0: [50.0]}, steps=10, dataset=WALKER)
    overall = score_table(group(gather([tmp_path]))).overall["SCORE"]
    assert (overall.mean, overall.std) == (67.5, None)
    rows = list(csv.DictReader(to_csv(score_table(group(gather([tmp_path])))).splitlines()))
    assert [row["std"] for row in rows] == ["5.0", "", ""]


def test_overall_is_only_for_those_that_have_all(groups: list[Group]) -> None:
    table = score_table(groups)
    assert list(table.overall) == ["SCORE"]
    assert table.overall["SCORE"].mean == pytest.approx((85.0 + 60.02) / 2)
    assert table.overall["SCORE"].std == pytest.approx((np.std([90, 80, 85]) + 0.02) / 2)
    assert not table.overall["SCORE"].whole


def test_the_papers_figures_stand_apart(groups: list[Group]) -> None:
    table = score_table(groups)
    assert table.paper[HOPPER, "SCORE"] == (99.6, 2.8)
    assert table.paper[WALKER, "TD3-BC"] == (81.3, 3.0)
    assert table.paper_overall == {}, "two data sets are not the paper's fifteen"
    assert score_table(groups, RETURN).paper == {}


def test_all_fifteen_have_the_papers_overall(tmp_path: Path) -> None:
    from score_rl.report.published import paper_datasets

    for dataset in reversed(paper_datasets()):
        write_experiment(tmp_path / dataset, scores={0: [1.0]}, steps=10, dataset=f"replica:{dataset}")
    table = score_table(group(gather([tmp_path])))
    assert table.paper_overall == {"SCORE": (77.0, 2.0)}
    assert [name.removeprefix("replica:") for name in table.datasets] == paper_datasets(), "in the paper's order"


def test_csv_has_full_precision_and_every_gap(groups: list[Group]) -> None:
    rows = list(csv.DictReader(to_csv(score_table(groups)).splitlines()))
    by_key = {(row["dataset"], row["method"]): row for row in rows}
    assert float(by_key[WALKER, "SCORE"]["mean"]) == np.mean([60.04, 60.0])
    assert by_key[HOPPER, "SCORE"]["seeds"] == "3"
    assert by_key[HOPPER, "SCORE"]["asked"] == "4"
    assert by_key[WALKER, "TD3-BC"]["mean"] == ""
    assert by_key[HOPPER, "TD3-BC"]["low_95"] == ""
    assert by_key[HOPPER, "TD3-BC"]["paper_mean"] == "69.1"
    assert float(by_key[HOPPER, "TD3-BC"]["difference"]) == pytest.approx(95.0 - 69.1)
    assert by_key[HOPPER, "TD3-BC"]["overlap"] == "too few seeds"
    assert by_key[HOPPER, "SCORE"]["overlap"] == "yes, but p = 0.02"
    assert by_key[WALKER, "SCORE"]["overlap"] == "too few seeds", "two are not enough"
    assert by_key[WALKER, "TD3-BC"]["overlap"] == by_key[WALKER, "TD3-BC"]["difference"] == ""
    assert by_key["overall", "SCORE"]["mean"]


def test_latex_prints_names_as_they_are_written(tmp_path: Path) -> None:
    nasty = "a_b&c%d$e#f{g}~h^i\\<j>"
    write_experiment(tmp_path / "a", scores={0: [1.5]}, steps=10, dataset=nasty)
    latex = to_latex(score_table(group(gather([tmp_path]))))
    assert (
        r"a\_b\&c\%d\$e\#f\{g\}\textasciitilde{}h\textasciicircum{}i\textbackslash{}\textless{}j\textgreater{}" in latex
    )
    assert "$1.5$" in latex  # one seed
    assert latex.count(" & ") == 2, "one column beside the name, in head and row"
    assert escape_latex("50 ± 2") == r"50 $\pm$ 2"


def test_rows_under_the_papers_names_say_what_their_data_are(groups: list[Group]) -> None:
    under = [dataclasses.replace(each, dataset=each.dataset.removeprefix("replica:")) for each in groups]
    assert "hopper-medium (replica) &" in to_latex(score_table(under))
    assert "replica:hopper-medium &" in to_latex(score_table(groups))


def test_latex_marks_the_best_and_what_is_not_whole(groups: list[Group], tmp_path: Path) -> None:
    write_experiment(tmp_path / "best", scores={0: [199.0], 1: [200.0], 2: [201.0]}, steps=10, algorithm="bc")
    latex = to_latex(score_table([*groups, *group(gather([tmp_path / "best"]))]))
    assert "$95.0$" in latex, "one seed is not the best"
    assert r"$85.0 \pm 4.1$ (3 of 4 seeds)" in latex
    assert r"$\mathbf{" not in latex
    assert "TD3-BC, paper" in latex
    latex = to_latex(
        score_table([each for each in groups if each.method == "SCORE"] + group(gather([tmp_path / "best"])))
    )
    assert r"$\mathbf{200.0 \pm 0.8}$" in latex
    lines = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert len({line.count(" & ") for line in lines}) == 1, "every row has as many columns"


def test_returns_are_tabled_without_the_paper(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [-300.0]}, steps=10, dataset="swings", environment="Pendulum-v1",
                     metric=RETURN)  # fmt: skip
    groups = group(gather([tmp_path]))
    assert score_table(groups, RETURN).cells["swings", "SCORE"].mean == -300
    assert not score_table(groups, SCORE).cells


def test_settings_that_the_paper_did_not_run_have_no_figure_of_it(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0, 90.0]}, steps=20, algorithm="td3-bc",
                     settings=[{"alpha": 1.0}, {"alpha": 2.5}, {"alpha": 4.0}])  # fmt: skip
    table = score_table(group(gather([tmp_path])))
    assert table.methods == ["TD3-BC (alpha=1)", "TD3-BC (alpha=2.5)", "TD3-BC (alpha=4)"]
    assert list(table.paper) == [(HOPPER, "TD3-BC (alpha=2.5)")]


def test_the_papers_figure_is_not_repeated_for_every_folder(tmp_path: Path) -> None:
    for folder in "abc":
        write_experiment(tmp_path / folder, scores={0: [1.0, 90.0]}, steps=20)
    table = score_table(group(gather([tmp_path])))
    assert len(table.methods) == 3
    assert len(table.paper) == 1


def test_small_returns_keep_their_figures() -> None:
    """Rewards of the order of 0.001 add up to returns that one decimal would show as 0.1 or 0.0."""
    assert mean_and_std(-0.0654, 0.0349) == "-0.0654 ± 0.0349"
    assert mean_and_std(0.3, None) == "0.300"
    assert mean_and_std(4.26, 0.03) == "4.3 ± 0.0"
    assert mean_and_std(0.0, 0.0) == "0.0 ± 0.0"
