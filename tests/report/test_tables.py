"""Tables hold what the runs reached, and say over how many."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from score_rl.report.grouping import gather, group
from score_rl.report.results import RETURN, SCORE, Group
from score_rl.report.tables import escape_latex, score_table, to_csv, to_latex
from tests.report.folders import write_experiment

HOPPER, WALKER = "replica:hopper-medium", "replica:walker2d-medium"


@pytest.fixture
def groups(tmp_path: Path) -> list[Group]:
    write_experiment(tmp_path / "a", scores={0: [1.0, 90.0], 1: [2.0, 80.0], 2: [3.0]}, steps=20,
                     states={2: "diverged"})  # fmt: skip
    write_experiment(tmp_path / "b", scores={0: [50.0, 60.04], 1: [4.0, 60.0]}, steps=20, dataset=WALKER)
    write_experiment(tmp_path / "c", scores={0: [5.0, 95.0]}, steps=20, algorithm="td3-bc")
    write_experiment(tmp_path / "d", scores={0: [6.0]}, steps=20, algorithm="td3-bc", dataset=WALKER, state="running",
                     states={0: "training"})  # fmt: skip
    return group(gather([tmp_path]))


def test_cells_are_means_over_what_finished(groups: list[Group]) -> None:
    table = score_table(groups)
    cell = table.cells[HOPPER, "SCORE"]
    assert (cell.mean, cell.std, cell.seeds, cell.asked, cell.whole) == (85.0, 5.0, 2, 3, False)
    assert str(cell) == "85.0 ± 5.0"
    assert cell.interval is not None
    assert cell.interval.low == pytest.approx(85 - 12.7062 * np.sqrt(50) / np.sqrt(2), rel=1e-4)
    single = table.cells[HOPPER, "TD3-BC"].interval
    assert single is not None
    assert not single.has_interval
    assert table.unfinished == {(WALKER, "TD3-BC"): 1}
    assert (WALKER, "TD3-BC") not in table.cells, "a run that still trains has no result"


def test_the_best_is_the_highest_mean_of_its_row(groups: list[Group]) -> None:
    table = score_table(groups)
    assert [key for key, cell in table.cells.items() if cell.best] == [(HOPPER, "TD3-BC")]


def test_overall_is_only_for_those_that_have_all(groups: list[Group]) -> None:
    table = score_table(groups)
    assert list(table.overall) == ["SCORE"]
    assert table.overall["SCORE"].mean == pytest.approx((85.0 + 60.02) / 2)
    assert table.overall["SCORE"].std == pytest.approx((5.0 + 0.02) / 2)
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
    assert by_key[HOPPER, "SCORE"]["seeds"] == "2"
    assert by_key[HOPPER, "SCORE"]["asked"] == "3"
    assert by_key[WALKER, "TD3-BC"]["mean"] == ""
    assert by_key[HOPPER, "TD3-BC"]["low_95"] == ""
    assert by_key[HOPPER, "TD3-BC"]["paper_mean"] == "69.1"
    assert float(by_key[HOPPER, "TD3-BC"]["difference"]) == pytest.approx(95.0 - 69.1)
    assert by_key[HOPPER, "TD3-BC"]["overlap"] == "one seed"
    assert by_key[HOPPER, "SCORE"]["overlap"] == "yes", "two seeds have a wide interval"
    assert by_key[WALKER, "SCORE"]["overlap"] == "no"
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


def test_latex_marks_the_best_and_what_is_not_whole(groups: list[Group]) -> None:
    latex = to_latex(score_table(groups))
    assert r"$\mathbf{95.0}$" in latex  # one seed
    assert r"$85.0 \pm 5.0$ (2 of 3 seeds)" in latex
    assert "TD3-BC, paper" in latex
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
