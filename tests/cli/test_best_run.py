"""Which run `score export --run best` takes where there is no simulator."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from score_rl.cli.export import chosen_run
from score_rl.errors import InputError
from score_rl.store.judgements import (
    BETTER,
    DOUBTFUL,
    SAME,
    DataJudgement,
    JudgementRecord,
    PolicyJudgement,
    write_judgement,
)


class Runs(list[Any]):
    """An experiment as far as the choice looks at it."""

    def __init__(self, path: Path, names: tuple[str, ...]) -> None:
        self.path = path
        nothing = SimpleNamespace(names=[])
        sound = SimpleNamespace(state="finished")
        super().__init__(SimpleNamespace(id=name, step=20, status=sound, metrics=nothing) for name in names)


def write(folder: Path, **judged: PolicyJudgement) -> None:
    data = DataJudgement(
        name="heating", checksum="0" * 64, rows=10, trajectories=2, held_out=True, discount=0.9, recorded=-1.0,
        behaviour={}, action_names=("valve",), agreement="", runs=judged,
    )  # fmt: skip
    write_judgement(folder, JudgementRecord(data=(data,), effort={}, provenance={}))


def verdict(what: str, rank: float, step: int = 20) -> PolicyJudgement:
    return PolicyJudgement(what, (), rank_value=rank, step=step)


def test_the_one_that_the_judge_ranks_first_if_it_is_better(tmp_path: Path) -> None:
    runs = Runs(tmp_path, ("a", "b", "c", "d"))
    with pytest.raises(InputError, match="judged by score judge, so none is known as the best"):
        chosen_run(runs, "best")
    write(
        tmp_path, a=verdict(BETTER, 0.1), b=verdict(BETTER, 0.3), c=verdict(DOUBTFUL, 9.0), d=verdict(SAME, 0.5)
    )  # what is not to be trusted, or not told apart, is not taken whatever it claims
    assert chosen_run(runs, "best").id == "b"


def test_nothing_is_taken_that_is_not_better_or_not_judged_as_it_is(tmp_path: Path) -> None:
    runs = Runs(tmp_path, ("a", "b"))
    write(tmp_path, a=verdict(SAME, 0.1), b=verdict(DOUBTFUL, 0.2))
    with pytest.raises(InputError, match="was judged better than what recorded the data"):
        chosen_run(runs, "best")
    write(tmp_path, a=verdict(BETTER, 0.1, step=10))
    with pytest.raises(InputError, match="a has been trained on since it was judged"):
        chosen_run(runs, "best")
