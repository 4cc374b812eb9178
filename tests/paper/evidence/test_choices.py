"""Settings that a grid chose stand beside the common one, on results made up here."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from score_rl.paper.evidence import figures, main_table, reading, tables
from score_rl.paper.evidence.method_claims import all_aggregates, first_overall, low_and_medium
from score_rl.paper.evidence.records import Choice, Evidence
from score_rl.paper.experiments.choice import BETAS, DECAYS
from score_rl.report.published import paper_datasets
from score_rl.report.results import RunResult
from tests.paper.evidence.made_up import complete, runs

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def stored() -> Evidence:
    return reading.read(CHECKOUT)


# -- settings chosen for each data set -------------------------------------------------------------------------------


def stored_grid(scores: dict[tuple[str, float, float], float]) -> list[RunResult]:
    """The runs of a grid: every setting has the score given for it, or 1."""
    return [
        run
        for beta, decay in itertools.product(BETAS, DECAYS)
        for dataset in ("replica:hopper-expert", "replica:hopper-random")
        for run in runs(
            "score", dataset, [scores.get((dataset, beta, decay), 1.0)], folder="grid-hopper", first=5,
            request={"chooses_settings": True}, beta=beta, bc_decay=decay,
        )
    ]  # fmt: skip


def test_a_grids_choices_stand_beside_the_common_setting(tmp_path: Path) -> None:
    assert tables.grid(Evidence({}), tmp_path) == "Not run yet."
    grid = stored_grid({("replica:hopper-expert", 0.1, 1.0): 110.0, ("replica:hopper-random", 0.2, 0.98): 30.0})
    by = {"chosen_by_seeds": [5]}
    chosen = runs("score", "replica:hopper-expert", [108, 112], folder="a", request=by, beta=0.1, bc_decay=1.0)
    other = runs("score", "replica:hopper-expert", [1, 2], folder="b", request=by, beta=0.5, bc_decay=1.0)
    unmarked = runs("score", "replica:hopper-expert", [3, 4], folder="c", beta=0.1, bc_decay=1.0)
    common = runs("score", "replica:hopper-expert", [85, 85]) + runs("score", "replica:hopper-random", [31, 31])
    stored = reading.collect(common)
    expert, random = sorted(
        reading.read_choices(grid, unmarked + chosen + other + common, stored),
        key=lambda choice: choice.dataset,
    )
    assert (expert.dataset, expert.beta, expert.bc_decay, expert.seeds) == ("hopper-expert", 0.1, 1.0, (5,))
    assert (expert.chosen, expert.common) == (110.0, 1.0)
    assert expert.result is not None
    assert expert.result.scores == [108, 112]
    assert random.result is stored.results["score", "hopper-random"]  # the common setting was chosen
    table = tables.grid(dataclasses.replace(stored, choices=[expert, random]), tmp_path)
    line = next(line for line in table.splitlines() if line.startswith("| hopper-expert"))
    assert "β 0.1, γ_bc 1" in line
    assert "110.0 ± 2.0" in line
    assert "85.0 ± 0.0" in line
    assert "112.0" in line  # the paper's


@pytest.mark.usefixtures("hastily")
def test_chosen_settings_stand_beside_the_common_one_and_decide_nothing(tmp_path: Path) -> None:
    methods = ("score", "td3-bc")
    stored = reading.collect(complete({"score": -30.0}, methods))
    assert stored.with_choices() == {}
    with_grid = dataclasses.replace(stored, choices=chosen(stored, "hopper-expert", 30.0))
    ours = with_grid.with_choices()
    assert list(ours) == paper_datasets()
    assert [d for d in ours if ours[d] is not stored.results["score", d]] == ["hopper-expert"]
    for claim in (first_overall, all_aggregates, low_and_medium):
        plain, both = claim(stored), claim(with_grid)
        assert both.word == plain.word
        assert "With settings chosen on 1 of the 15" in both.because
        assert "With settings chosen" not in plain.because
        assert Path("chosen-it/summary.json") in both.files
    text = tables.aggregate(with_grid, tmp_path)
    assert text.count("SCORE, settings chosen on 1") == 1
    row = next(line for line in main_table.main_table(with_grid, tmp_path).splitlines() if line.startswith("| mean of"))
    common = float(np.mean([np.mean(stored.results["score", d].scores) for d in paper_datasets()]))
    assert f"{common:.1f}" in row
    assert f"{common + 30 / 15:.1f}" in row, "30 more on one of fifteen"
    assert "chosen" not in tables.aggregate(stored, tmp_path)


def chosen(stored: Evidence, dataset: str, more: float) -> list[Choice]:
    """A grid that chose for a data set, and reported so much more than the common setting has."""
    common = stored.results["score", dataset]
    better = dataclasses.replace(
        common, scores=[score + more for score in common.scores], files=(Path("chosen-it/summary.json"),)
    )
    means = dict.fromkeys(itertools.product(BETAS, DECAYS), 1.0)
    return [Choice(dataset, 0.5, 0.96, (5, 6), 1.0, 1.0, Path("grid-it/curves.csv"), better, means)]


@pytest.mark.usefixtures("hastily")
def test_a_shorter_report_of_a_choice_is_in_no_mean() -> None:
    stored = reading.collect(complete(methods=("score",)))
    (choice,) = chosen(stored, "hopper-expert", 5.0)
    assert choice.result is not None
    short = dataclasses.replace(choice.result, protocol=dataclasses.replace(choice.result.protocol, updates=300_000))
    stored = dataclasses.replace(stored, choices=[dataclasses.replace(choice, result=short)])
    assert stored.chosen == {}
    assert stored.with_choices() == {}


def test_a_grid_of_any_size_is_drawn(stored: Evidence) -> None:
    for number in (1, 4, 5):
        figure = figures.grid_figure([stored.choices[0]] * number)
        shown = [axis for axis in figure.axes if axis.get_visible()]
        assert len(shown) == number
        assert {text.get_text() for text in shown[0].texts} == {f"{v:.1f}" for v in stored.choices[0].means.values()}
    lost = dict(list(stored.choices[0].means.items())[1:])
    axis = figures.grid_figure([dataclasses.replace(stored.choices[0], means=lost)]).axes[0]
    assert [text.get_text() for text in axis.texts].count("diverged") == 1


def test_a_choice_that_has_not_been_trained_says_so(tmp_path: Path) -> None:
    grid = stored_grid({("replica:hopper-expert", 0.1, 1.0): 110.0})
    stored = reading.collect([])
    choices = reading.read_choices(grid, [], stored)
    table = tables.grid(dataclasses.replace(stored, choices=choices), tmp_path)
    assert table.count("not run yet") == 2
