"""The rule of the choice, on judgements written by hand."""

from collections.abc import Mapping, Sequence

import pytest

from score_rl.judge.selection.choosing import choose, ranked
from score_rl.judge.verdict import FITTED, MODEL, PESSIMISTIC
from score_rl.store.judgements import BETTER, DOUBTFUL, SAME, WORSE, DataJudgement, Estimate, PolicyJudgement
from score_rl.store.records import RunRecord
from score_rl.store.selections import Choice, Variant

BOLD, CAREFUL, CLONING = Variant("score", {"alpha": 2.5}), Variant("score", {"alpha": 0.3}), Variant("bc")
Seeds = Sequence[tuple[str, float]]


def estimate(gain: float) -> Estimate:
    return Estimate(gain, gain - 0.1, gain + 0.1, gain, gain - 0.1, gain + 0.1)


def judged(verdict: str, gain: float) -> PolicyJudgement:
    said = {kind: estimate(gain) for kind in (FITTED, PESSIMISTIC, MODEL)}
    return PolicyJudgement(verdict, (f"because it is {verdict}",), said, rank_value=gain - 0.1)


def chosen(found: Mapping[str, tuple[Variant, Seeds]]) -> Choice:
    """The choice where each of these variants has these verdicts and gains, one a seed."""
    records: list[RunRecord] = []
    runs: dict[str, PolicyJudgement] = {}
    for name, (variant, seeds) in found.items():
        for seed, (verdict, gain) in enumerate(seeds):
            identity = f"{name}_seed={seed}"
            records.append(
                RunRecord(identity, variant.algorithm, "logs", "x", None, 2, 1, seed, variant.settings, 0, len(records))
            )
            runs[identity] = judged(verdict, gain)
    data = DataJudgement(
        name="logs", checksum="x", rows=100, trajectories=10, held_out=True, discount=0.98, recorded=-1.2, behaviour={},
        action_names=("valve",), agreement="", runs=runs,
    )  # fmt: skip
    table = ranked([variant for variant, _ in found.values()], records, runs, 1_000)
    return choose(table, [], data, "stage-1")


def test_a_variant_counts_as_its_worst_seed() -> None:
    choice = chosen(
        {"bold": (BOLD, [(BETTER, 0.9), (BETTER, 0.2)]), "careful": (CAREFUL, [(BETTER, 0.3), (BETTER, 0.4)])}
    )
    assert (choice.run, choice.better) == ("careful_seed=1", True)
    assert "its worst seed gains most for sure: +0.2" in choice.why


@pytest.mark.parametrize("bad", [DOUBTFUL, WORSE, SAME])
def test_one_bad_seed_spoils_a_variant(bad: str) -> None:
    choice = chosen({"bold": (BOLD, [(BETTER, 0.9), (bad, 0.8)]), "careful": (CAREFUL, [(BETTER, 0.3)] * 2)})
    assert choice.run is not None
    assert choice.run.startswith("careful")


def test_where_nothing_is_better_cloning_is_recommended_and_not_called_better() -> None:
    choice = chosen({"bold": (BOLD, [(DOUBTFUL, 5.0)]), "cloning": (CLONING, [(SAME, -0.01)])})
    assert (choice.run, choice.better) == ("cloning_seed=0", False)
    assert "none is better" in choice.why
    assert choice.table[-1].variant == BOLD, "who is not to be trusted stands last, whatever it claims"


@pytest.mark.parametrize("verdict", [DOUBTFUL, WORSE])
def test_where_cloning_is_bad_too_no_policy_is_recommended(verdict: str) -> None:
    choice = chosen({"bold": (BOLD, [(DOUBTFUL, 5.0)]), "cloning": (CLONING, [(verdict, -0.5)])})
    assert (choice.run, choice.folder, choice.better) == (None, None, False)
    assert "No policy is recommended" in choice.why


def test_it_says_from_whom_the_data_do_not_tell_the_choice() -> None:
    near = chosen({"bold": (BOLD, [(BETTER, 0.40)]), "careful": (CAREFUL, [(BETTER, 0.35)])})
    assert "do not tell it from 1 other (score alpha=0.3)" in near.sure
    far = chosen({"bold": (BOLD, [(BETTER, 0.90)]), "careful": (CAREFUL, [(BETTER, 0.35)])})
    assert "No other variant comes within its interval" in far.sure


def test_few_held_out_trajectories_are_said_to_tell_little() -> None:
    assert "so few trajectories mean little" in chosen({"bold": (BOLD, [(BETTER, 0.4)])}).sure


def test_a_run_belongs_to_the_variant_that_says_most_of_it() -> None:
    plain, normalised = Variant("score", {"alpha": 1.0}), Variant("score", {"alpha": 1.0, "critic_norm": True})
    records = [
        RunRecord("plain", "score", "logs", "x", None, 2, 1, 0, {"alpha": 1.0, "critic_norm": False}, 0, 0),
        RunRecord("normalised", "score", "logs", "x", None, 2, 1, 0, {"alpha": 1.0, "critic_norm": True}, 1, 0),
    ]
    table = ranked([plain, normalised], records, {one.id: judged(SAME, 0.1) for one in records}, 10)
    assert {one.variant.label: one.runs for one in table} == {
        plain.label: ("plain",),
        normalised.label: ("normalised",),
    }
