"""Which of the stored runs stand for a method on a data set, on results made up here."""

import dataclasses
from pathlib import Path

import numpy as np

from score_rl.paper.evidence import cells, reading, tables
from score_rl.paper.experiments.protocols import Protocol, closest, labelled, protocol_of
from score_rl.report.results import Group, RunResult
from tests.paper.evidence.made_up import MILLION, curve_of, runs

# -- protocols -------------------------------------------------------------------------------------------------------


def pick(*groups: list[RunResult]) -> Group:
    (found,) = closest([run for group in groups for run in group])
    return found


def test_most_updates_then_most_seeds_then_the_nearest_data() -> None:
    replica, again = "replica:hopper-medium", "hopper-medium-recollected"
    brief = runs("score", again, [1, 2, 3, 4, 5], 300_000, folder="brief")
    few = runs("score", replica, [10, 11], folder="few")
    more = runs("score", replica, [20, 21, 22], folder="more")
    near = runs("score", again, [30, 31, 32], folder="near")
    assert pick(brief, few).final("evaluation/score").tolist() == [10, 11]
    assert pick(few, brief, more).final("evaluation/score").tolist() == [20, 21, 22]
    assert pick(more, near, few).final("evaluation/score").tolist() == [30, 31, 32]
    assert pick(near, runs("score", again, [7] * 9, status="failed")).dataset == again, "what did not finish is nothing"


def test_a_cell_never_mixes_protocols() -> None:
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


def test_of_equals_the_folder_with_most_data_sets_counts() -> None:
    """A method's cells come from one training where they can, whatever the folders are called and trained in."""
    few = runs("td3-bc", "replica:hopper-medium", [1, 1], folder="a")
    many = [
        dataclasses.replace(run, data={"checksum": "a"})
        for dataset in ("replica:hopper-medium", "replica:hopper-expert")
        for run in runs("td3-bc", dataset, [7, 7], folder="b", request={"precision": "bfloat16"})
    ]
    for order in (few + many, many + few):
        found = reading.collect(order).results["td3-bc", "hopper-medium"]
        assert (found.scores, found.precision) == ([7, 7], "bfloat16")


def test_schedules_may_be_shorter_and_morel_counts_iterations() -> None:
    assert protocol_of(pick(runs("score", "replica:hopper-medium", [1], 300_000, bc_decay_every=3_000))).shorter
    whole = protocol_of(pick(runs("morel", "replica:hopper-medium", [1] * 5, 1_000)))
    assert whole == Protocol(MILLION, 5, 10, each=1_000)
    assert not whole.shorter
    half = protocol_of(pick(runs("morel", "replica:hopper-medium", [1] * 2, 500)))
    assert half.shorter
    assert str(half) == "500 iterations × 2"


def test_what_is_shorter_says_so_in_its_name() -> None:
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


def test_everything_else_that_is_stored_is_named(tmp_path: Path) -> None:
    found = reading.collect(
        runs("score", "hopper-medium-recollected", [1, 3], folder="b", request={"precision": "bfloat16"})
        + runs("score", "hopper-medium-recollected", [4, 6], folder="b-float32")
        + runs("score", "replica:hopper-medium", [7, 9], 300_000, folder="day")
        + runs("score", "replica:hopper-medium", [7, 9], 300_000, folder="same-day")
    )
    assert found.results["score", "hopper-medium"].scores == [1, 3]
    text = tables.methods(found, tmp_path)
    assert "| re-collected | **1 M × 2** | float32 | [5.0 ± 1.0]" in text
    assert text.count("**300 k × 2**") == 1


def test_fresh_episodes_belong_to_their_seeds() -> None:
    made = runs("score", "hopper-medium-recollected", [1, 2, 3])
    fresh = {0: {100: 10.0}, 1: {}, 2: {100: 30.0}}
    made = [dataclasses.replace(r, fresh_scores=fresh[r.seed]) for r in made]
    made[1] = dataclasses.replace(made[1], status="diverged")
    found = reading.collect(made).results["score", "hopper-medium"]
    assert (found.scores, found.fresh) == ([1, 3], [10, 30])
    assert reading.collect(runs("score", "replica:hopper-medium", [1])).results["score", "hopper-medium"].fresh is None


def test_beside_last_policies_stand_the_means_of_the_last_six_evaluations(tmp_path: Path) -> None:
    """A seed's last policy is 60 lower than what it had: the mean shows it, and its interval is Student's."""
    made = [curve_of("score", "replica:hopper-medium", [9, 9, *[70 + seed] * 5, 10], seed=seed) for seed in range(3)]
    found = reading.collect(made).results["score", "hopper-medium"]
    assert found.scores == [10, 10, 10]
    np.testing.assert_allclose(found.late, [60, 60 + 5 / 6, 60 + 10 / 6])
    assert cells.late(found) == "60.8 [58.8, 62.9]"
    assert "| 60.8 [58.8, 62.9] |" in tables.methods(reading.collect(made), tmp_path)


def test_intervals_overlap_or_not() -> None:
    """The paper's SCORE on hopper-medium is 99.6 ± 2.8: Student's interval reaches from 95.7 to 103.5."""
    assert agree([101.2, 101.3, 101.4]) == "yes"
    assert agree([104.0, 104.1, 104.2]) == "no"
    assert agree([103.0]) == agree([103.0, 104.0]) == "too few seeds"
    assert agree([95.0] * 5) == "no"
    assert agree([95.8] * 5) == "yes"
    assert agree([102.2, 103.6, 105.0, 106.4, 107.8]) == "yes, but p = 0.02", "they overlap, and Welch tells them apart"


def agree(scores: list[float]) -> str:
    return cells.overlaps(
        reading.collect(runs("score", "replica:hopper-medium", scores)).results["score", "hopper-medium"]
    )


def test_other_settings_than_the_authors_are_shown_with_their_names(tmp_path: Path) -> None:
    usual = runs("uwac", "hopper-medium-recollected", [40.0, 42.0], dropout_masks="row")
    changed = runs("uwac", "hopper-medium-recollected", [50.0, 60.0], steps=200_000, dropout_masks="pass")
    chosen = runs("score", "replica:hopper-expert", [90.0, 92.0], request={"chosen_by_seeds": [5, 6]}, beta=0.5)
    found = reading.read_variants([*usual, *changed, *chosen])
    assert [(each.unusual, list(each.scores)) for each in found] == [("dropout_masks = pass", [50.0, 60.0])]
    stored = dataclasses.replace(reading.collect([*usual, *changed]), variants=found)
    assert list(stored.results["uwac", "hopper-medium"].scores) == [40.0, 42.0]
    text = tables.methods(stored, tmp_path)
    line = "| UWAC | hopper-medium | dropout_masks = pass | re-collected | **200 k × 2** | float32 | [55.0 ± 5.0]"
    assert line in text
