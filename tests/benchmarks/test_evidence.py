"""The documents show what is stored, protocols are picked and choices shown by their rules, on results made up here."""

import csv
import dataclasses
import itertools
import json
from pathlib import Path

import claims
import evidence
import grid
import kept_scores
import numpy as np
import pytest
from measured import Choice

from score_rl.cli import main
from score_rl.paper.experiments.protocols import Protocol, closest, labelled, protocol_of
from score_rl.report.paper import paper_datasets
from tests.benchmarks.made_up import MILLION, complete, runs


@pytest.fixture(scope="module")
def stored():
    return evidence.read()


# -- the documents ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", evidence.DOCUMENTS)
def test_documents_show_what_is_stored(document, stored):
    path = evidence.ROOT / document
    text = path.read_text()
    assert "<!-- evidence:" in text
    assert evidence.rewritten(text, stored, path.parent) == text, "run: make evidence"


def test_every_table_stands_in_a_document():
    text = "".join((evidence.ROOT / document).read_text() for document in evidence.DOCUMENTS)
    assert all(f"<!-- evidence:{name} -->" in text for name in evidence.TABLES)


def test_figures_are_drawn_from_what_is_stored(stored):
    found = sorted(evidence.FIGURES.glob("*.svg"))
    assert "score.svg" in [path.name for path in found]
    for path in found:
        assert evidence.figure_numbers(path) == evidence.drawn_numbers(stored), "run: make evidence"


def test_the_command_writes_and_checks(tmp_path, monkeypatch, capsys):
    """In a project of its own: empty at first, with results later."""
    for name in evidence.DOCUMENTS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(
            "before\n<!-- evidence:readme -->\nout of date\n<!-- /evidence:readme -->\nafter\n"
        )
    for name, value in (("ROOT", tmp_path), ("FIGURES", tmp_path / "docs" / "figures")):
        monkeypatch.setattr(evidence, name, value)
    for scores in ([], [90.0, 92.0]):
        monkeypatch.setattr(
            evidence, "read", lambda scores=scores: kept_scores.collect(runs("score", "replica:hopper-expert", scores))
        )
        assert evidence.main(evidence.Arguments(check=True)) == 1
        assert evidence.main(evidence.Arguments()) == 0
        assert evidence.main(evidence.Arguments(check=True)) == 0
    drawn = evidence.figure_numbers(tmp_path / "docs" / "figures" / "score.svg")
    assert drawn == {"score hopper-expert": [90.0, 92.0]}
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "out of date" not in text
    assert "| hopper-expert | replica | 112.0 ± 0.3 | [91.0 ± 1.0](" in text
    assert "(**1 M × 2**) | – | -21.0 (" in text
    assert text.count("not run yet") == 14
    with pytest.raises(ValueError, match="no table is called 'nonsense'"):
        evidence.rewritten("<!-- evidence:nonsense --> <!-- /evidence:nonsense -->", evidence.read(), tmp_path)


def test_figures_are_the_same_bytes_again(tmp_path, stored):
    for folder in ("a", "b"):
        evidence.draw(stored, tmp_path / folder)
    assert (tmp_path / "a" / "score.svg").read_bytes() == (tmp_path / "b" / "score.svg").read_bytes()


@pytest.mark.usefixtures("hastily")
def test_tables_work_with_nothing_and_with_everything(tmp_path):
    nothing = kept_scores.collect([])
    everything = kept_scores.collect(complete())
    for table in evidence.TABLES.values():
        assert table(nothing, tmp_path)
        assert table(everything, tmp_path)
    assert evidence.readme(nothing, tmp_path).count("not run yet") == 15
    text = evidence.readme(everything, tmp_path)
    assert "not run yet" not in text
    assert "mean of these 15" in text
    assert evidence.aggregate(everything, tmp_path).count("Over ") == 1


# -- protocols -------------------------------------------------------------------------------------------------------


def pick(*groups):
    (found,) = closest([run for group in groups for run in group])
    return found


def test_most_updates_then_most_seeds_then_the_nearest_data():
    replica, again = "replica:hopper-medium", "hopper-medium-recollected"
    brief = runs("score", again, [1, 2, 3, 4, 5], 300_000, folder="brief")
    few = runs("score", replica, [10, 11], folder="few")
    more = runs("score", replica, [20, 21, 22], folder="more")
    near = runs("score", again, [30, 31, 32], folder="near")
    assert pick(brief, few).final("evaluation/score").tolist() == [10, 11]
    assert pick(few, brief, more).final("evaluation/score").tolist() == [20, 21, 22]
    assert pick(more, near, few).final("evaluation/score").tolist() == [30, 31, 32]
    assert pick(near, runs("score", again, [7] * 9, status="failed")).dataset == again, "what did not finish is nothing"


def test_a_cell_never_mixes_protocols():
    """Other lengths, other data under one name, other settings and a repetition are other cells."""
    name = "replica:hopper-medium"
    one = runs("score", name, [1, 2], folder="a")
    for other in (
        runs("score", name, [5, 6, 7], 500_000, folder="a"),
        runs("score", name, [5], folder="b"),
        runs("score", name, [5], folder="a", request={"precision": "bfloat16"}),
        runs("score", name, [50, 60, 70], folder="a", beta=2.0),
        runs("score", name, [50, 60, 70], folder="a", request={"physics": "stock"}),
    ):
        assert pick(one, other).final("evaluation/score").tolist() == [1, 2]


def test_of_equals_the_folder_with_most_data_sets_counts():
    """A method's cells come from one training where they can, whatever the folders are called and trained in."""
    few = runs("td3-bc", "replica:hopper-medium", [1, 1], folder="a")
    many = [
        dataclasses.replace(run, data={"checksum": "a"})
        for dataset in ("replica:hopper-medium", "replica:hopper-expert")
        for run in runs("td3-bc", dataset, [7, 7], folder="b", request={"precision": "bfloat16"})
    ]
    for order in (few + many, many + few):
        found = kept_scores.collect(order).results["td3-bc", "hopper-medium"]
        assert (found.scores, found.precision) == ([7, 7], "bfloat16")


def test_schedules_may_be_shorter_and_morel_counts_iterations():
    assert protocol_of(pick(runs("score", "replica:hopper-medium", [1], 300_000, bc_decay_every=3_000))).shorter
    whole = protocol_of(pick(runs("morel", "replica:hopper-medium", [1] * 5, 1_000)))
    assert whole == Protocol(MILLION, 5, 10, each=1_000)
    assert not whole.shorter
    half = protocol_of(pick(runs("morel", "replica:hopper-medium", [1] * 2, 500)))
    assert half.shorter
    assert str(half) == "500 iterations × 2"


def test_what_is_shorter_says_so_in_its_name():
    found = closest(
        runs("cql", "replica:hopper-medium", [1, 2], 200_000)
        + runs("cql", "replica:hopper-expert", [1, 2, 3])
        + runs("score", "replica:hopper-expert", [1] * 5)
        + runs("bc", "replica:hopper-expert", [1] * 5, request={"eval_episodes": 3})
    )
    assert {each.method for each in labelled(found)} == {
        "SCORE",
        "CQL, 200k to 1M × 2 to 3",
        "BC, 1M × 5, 3 episodes",
    }


def test_everything_else_that_is_stored_is_named(tmp_path):
    found = kept_scores.collect(
        runs("score", "hopper-medium-recollected", [1, 3], folder="b", request={"precision": "bfloat16"})
        + runs("score", "hopper-medium-recollected", [4, 6], folder="b-float32")
        + runs("score", "replica:hopper-medium", [7, 9], 300_000, folder="day")
        + runs("score", "replica:hopper-medium", [7, 9], 300_000, folder="same-day")
    )
    assert found.results["score", "hopper-medium"].scores == [1, 3]
    text = evidence.methods(found, tmp_path)
    assert "(re-collected, **1 M × 2**, float32): [5.0 ± 1.0]" in text
    assert text.count("**300 k × 2**") == 1


def test_fresh_episodes_belong_to_their_seeds():
    made = runs("score", "hopper-medium-recollected", [1, 2, 3])
    facts = {"seeds": [0, 1, 2], "diverged": [1], "last_policies_100_episodes": [10.0, 30.0]}
    made = [dataclasses.replace(run, data=facts, status="diverged" if run.seed == 1 else "finished") for run in made]
    found = kept_scores.collect(made).results["score", "hopper-medium"]
    assert (found.scores, found.fresh) == ([1, 3], [10, 30])
    assert (
        kept_scores.collect(runs("score", "replica:hopper-medium", [1])).results["score", "hopper-medium"].fresh is None
    )


def test_intervals_overlap_or_not():
    """The paper's SCORE on hopper-medium is 99.6 ± 2.8: Student's interval reaches from 95.7 to 103.5."""
    assert agree([101.2, 101.3, 101.4]) == "yes"
    assert agree([104.0, 104.1, 104.2]) == "no"
    assert agree([103.0]) == "one seed"
    assert agree([95.0] * 5) == "no"
    assert agree([95.8] * 5) == "yes"
    assert agree([102.2, 103.6, 105.0, 106.4, 107.8]) == "yes, but p = 0.02", "they overlap, and Welch tells them apart"


def agree(scores):
    return evidence.agree(
        kept_scores.collect(runs("score", "replica:hopper-medium", scores)).results["score", "hopper-medium"]
    )


# -- the command that shows all methods ------------------------------------------------------------------------------


def test_the_main_table_from_stored_has_the_same_numbers(tmp_path, monkeypatch, capsys, stored):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(evidence.ROOT)
    with pytest.raises(SystemExit) as end:
        main(["experiment", "run", "main-table", "aggregates", "profiles", "--out", str(tmp_path), "--from-stored"])
    shown = capsys.readouterr().out
    assert not end.value.code
    assert "…" not in shown, "no name is cut"
    with (tmp_path / "main-table" / "stored" / "table.csv").open() as file:
        rows = {(row["method"], row["dataset"]): row for row in csv.DictReader(file) if row["dataset"] != "overall"}
    titles = {(evidence.algorithm_title(algorithm), dataset): r for (algorithm, dataset), r in stored.results.items()}
    assert rows.keys() == titles.keys()
    for key, result in titles.items():
        assert float(rows[key]["mean"]) == pytest.approx(np.mean(result.scores))
        assert float(rows[key]["std"]) == pytest.approx(np.std(result.scores))
        assert int(rows[key]["seeds"]) == result.protocol.seeds
    with (tmp_path / "main-table" / "stored" / "chosen.csv").open() as file:
        *chosen, both = csv.DictReader(file)
    assert [row["data set"] for row in chosen] == list(stored.chosen)
    for row in chosen:
        assert row["here"] == evidence.spread(stored.chosen[row["data set"]].scores)
        assert row["one for all"] == evidence.spread(stored.results["score", row["data set"]].scores)
    ours = list(stored.with_choices().values())
    assert both["here"] == evidence.overall(ours)[1], "as README's last line has it"
    first, again = tmp_path / "main-table" / "stored" / "runs", tmp_path / "again"
    with pytest.raises(SystemExit):
        main(["experiment", "run", "main-table", "--out", str(again), "--from-stored", str(first), "--quiet"])
    for name in ("table.csv", "chosen.csv", "runs/curves.csv"):
        made = [folder / "main-table" / "stored" / name for folder in (tmp_path, again)]
        assert made[0].read_text() == made[1].read_text(), "what it keeps is enough to rebuild it"
    about = json.loads((tmp_path / "main-table" / "stored" / "result.json").read_text())
    assert set(about["source"]) == {result.data for result in stored.results.values()}, "what the data are"
    assert about["trained_by"], "and who trained, not only who drew"
    together, _ = evidence.in_companies(stored)
    numbers = json.loads((tmp_path / "aggregates" / "stored" / "result.json").read_text())["numbers"]["companies"]
    assert [(c["datasets"], list(c["aggregates"])) for c in numbers] == [
        (c.datasets, list(c.matrices)) for c in together
    ]
    for written, company in zip(numbers, together, strict=True):
        for method, found in evidence.aggregates(company.matrices).items():
            assert written["aggregates"][method]["iqm"]["mean"] == pytest.approx(found["iqm"].value)
    assert (tmp_path / "profiles" / "stored" / "profiles.svg").exists()


# -- settings chosen for each data set -------------------------------------------------------------------------------


def kept_grid(folder, scores):
    """A stored grid: every setting has the score given for it, or 1."""
    (folder / "grid-hopper").mkdir(parents=True)
    lines = ["dataset,beta,bc_decay,seed,step,score"]
    for beta, decay in itertools.product(grid.BETAS, grid.DECAYS):
        for dataset in ("replica:hopper-expert", "replica:hopper-random"):
            lines.append(f"{dataset},{beta},{decay},5,{MILLION},{scores.get((dataset, beta, decay), 1.0)}")
    (folder / "grid-hopper" / grid.TABLE).write_text("\n".join(lines) + "\n")
    (folder / "grid-hopper" / "grid.json").write_text(json.dumps({"request": {"seeds": [5], "steps": MILLION}}))


def test_a_grids_choices_stand_beside_the_common_setting(tmp_path):
    assert evidence.grids(evidence.Stored({}), tmp_path) == "Not run yet."
    kept_grid(tmp_path, {("replica:hopper-expert", 0.1, 1.0): 110.0, ("replica:hopper-random", 0.2, 0.98): 30.0})
    by = {"chosen_by_seeds": [5]}
    chosen = runs("score", "replica:hopper-expert", [108, 112], folder="a", request=by, beta=0.1, bc_decay=1.0)
    other = runs("score", "replica:hopper-expert", [1, 2], folder="b", request=by, beta=0.5, bc_decay=1.0)
    unmarked = runs("score", "replica:hopper-expert", [3, 4], folder="c", beta=0.1, bc_decay=1.0)
    common = runs("score", "replica:hopper-expert", [85, 85]) + runs("score", "replica:hopper-random", [31, 31])
    stored = kept_scores.collect(common)
    expert, random = sorted(
        kept_scores.read_choices(tmp_path, unmarked + chosen + other + common, stored),
        key=lambda choice: choice.dataset,
    )
    assert (expert.dataset, expert.beta, expert.bc_decay, expert.seeds) == ("hopper-expert", 0.1, 1.0, (5,))
    assert (expert.chosen, expert.common) == (110.0, 1.0)
    assert expert.result.scores == [108, 112]
    assert random.result is stored.results["score", "hopper-random"]  # the common setting was chosen
    table = evidence.grids(dataclasses.replace(stored, choices=[expert, random]), tmp_path)
    line = next(line for line in table.splitlines() if line.startswith("| hopper-expert"))
    assert "β 0.1, γ_bc 1" in line
    assert "110.0 ± 2.0" in line
    assert "85.0 ± 0.0" in line
    assert "112.0" in line  # the paper's


@pytest.mark.usefixtures("hastily")
def test_chosen_settings_stand_beside_the_common_one_and_decide_nothing(tmp_path):
    methods = ("score", "td3-bc")
    stored = kept_scores.collect(complete({"score": -30.0}, methods))
    assert stored.with_choices() == {}
    with_grid = dataclasses.replace(stored, choices=chosen(stored, "hopper-expert", 30.0))
    ours = with_grid.with_choices()
    assert list(ours) == paper_datasets()
    assert [d for d in ours if ours[d] is not stored.results["score", d]] == ["hopper-expert"]
    for claim in (claims.first_overall, claims.all_aggregates, claims.low_and_medium):
        plain, both = claim(stored), claim(with_grid)
        assert both.word == plain.word
        assert "With settings chosen on 1 of the 15" in both.because
        assert "With settings chosen" not in plain.because
        assert Path("chosen-it/summary.json") in both.files
    text = evidence.aggregate(with_grid, tmp_path)
    assert text.count("SCORE, settings chosen on 1") == 1
    row = next(line for line in evidence.readme(with_grid, tmp_path).splitlines() if line.startswith("| mean of"))
    common = float(np.mean([np.mean(stored.results["score", d].scores) for d in paper_datasets()]))
    assert f"{common:.1f}" in row
    assert f"{common + 30 / 15:.1f}" in row, "30 more on one of fifteen"
    assert "chosen" not in evidence.aggregate(stored, tmp_path)


def chosen(stored, dataset, more):
    """A grid that chose for a data set, and reported so much more than the common setting has."""
    common = stored.results["score", dataset]
    better = dataclasses.replace(
        common, scores=[score + more for score in common.scores], files=(Path("chosen-it/summary.json"),)
    )
    means = dict.fromkeys(itertools.product(grid.BETAS, grid.DECAYS), 1.0)
    return [Choice(dataset, 0.5, 0.96, (5, 6), 1.0, 1.0, Path("grid-it/scores.csv"), better, means)]


@pytest.mark.usefixtures("hastily")
def test_a_shorter_report_of_a_choice_is_in_no_mean():
    stored = kept_scores.collect(complete(methods=("score",)))
    (choice,) = chosen(stored, "hopper-expert", 5.0)
    short = dataclasses.replace(choice.result, protocol=dataclasses.replace(choice.result.protocol, updates=300_000))
    stored = dataclasses.replace(stored, choices=[dataclasses.replace(choice, result=short)])
    assert stored.chosen == {}
    assert stored.with_choices() == {}


def test_a_grid_of_any_size_is_drawn(stored):
    for number in (1, 4, 5):
        figure = evidence.grid_figure([stored.choices[0]] * number)
        shown = [axis for axis in figure.axes if axis.get_visible()]
        assert len(shown) == number
        assert {text.get_text() for text in shown[0].texts} == {f"{v:.1f}" for v in stored.choices[0].means.values()}
    lost = dict(list(stored.choices[0].means.items())[1:])
    axis = evidence.grid_figure([dataclasses.replace(stored.choices[0], means=lost)]).axes[0]
    assert [text.get_text() for text in axis.texts].count("diverged") == 1


def test_a_choice_that_has_not_been_trained_says_so(tmp_path):
    kept_grid(tmp_path, {("replica:hopper-expert", 0.1, 1.0): 110.0})
    stored = kept_scores.collect([])
    choices = kept_scores.read_choices(tmp_path, [], stored)
    table = evidence.grids(dataclasses.replace(stored, choices=choices), tmp_path)
    assert table.count("not run yet") == 2


def test_other_settings_than_the_authors_are_shown_with_their_names(tmp_path):
    usual = runs("uwac", "hopper-medium-recollected", [40.0, 42.0], dropout_masks="row")
    changed = runs("uwac", "hopper-medium-recollected", [50.0, 60.0], steps=200_000, dropout_masks="pass")
    chosen = runs("score", "replica:hopper-expert", [90.0, 92.0], request={"chosen_by_seeds": [5, 6]}, beta=0.5)
    found = kept_scores.read_variants([*usual, *changed, *chosen])
    assert [(each.unusual, list(each.scores)) for each in found] == [("dropout_masks = pass", [50.0, 60.0])]
    stored = dataclasses.replace(kept_scores.collect([*usual, *changed]), variants=found)
    assert list(stored.results["uwac", "hopper-medium"].scores) == [40.0, 42.0]
    text = evidence.methods(stored, tmp_path)
    assert "UWAC on hopper-medium (dropout_masks = pass, re-collected, **200 k × 2**, float32): [55.0 ± 5.0]" in text
