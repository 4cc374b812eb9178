"""What a grid of settings chooses."""

import pytest

from benchmarks.training import grid
from score_rl.paper.evidence import grids
from score_rl.paper.experiments.choice import Setting

HEAD = "dataset,beta,bc_decay,seed,step,score\n"


def table(path, rows):
    path.write_text(HEAD + "".join(f"{','.join(map(str, row))}\n" for row in rows))
    return path


def test_the_last_evaluations_of_all_seeds_decide_and_nothing_else(tmp_path):
    early = [("hopper", 0.1, 0.96, seed, step, 100.0) for seed in (5, 6) for step in range(1, 16)]
    late = [("hopper", 0.1, 0.96, seed, step, 10.0) for seed in (5, 6) for step in range(16, 21)]
    lucky = [("hopper", 0.2, 0.98, 5, step, 30.0) for step in range(1, 21)]
    unlucky = [("hopper", 0.2, 0.98, 6, step, 0.0) for step in range(1, 21)]
    stored = table(tmp_path / "scores.csv", reversed(early + late + lucky + unlucky))
    assert grids.judged(stored)["hopper"] == {Setting(0.1, 0.96): 10.0, Setting(0.2, 0.98): 15.0}
    assert grids.choices(stored) == {"hopper": Setting(0.2, 0.98)}


def test_each_data_set_has_its_own_choice_and_equals_go_by_the_grids_order(tmp_path):
    rows = [
        ("a", 0.5, 1.0, 5, 1, 7.0),
        ("a", 0.1, 0.98, 5, 1, 7.0),
        ("b", 0.5, 1.0, 5, 1, 2.0),
        ("b", 0.2, 1.0, 5, 1, 1.0),
    ]
    stored = table(tmp_path / "scores.csv", rows)
    assert grids.choices(stored) == {"a": Setting(0.1, 0.98), "b": Setting(0.5, 1.0)}


def test_a_setting_that_diverged_is_not_chosen(tmp_path):
    diverged = [("a", 0.5, 1.0, 5, 1, 99.0), ("a", 0.5, 1.0, 6, 1, 99.0), ("a", 0.5, 1.0, 6, 2, 99.0)]
    ended = [("a", 0.1, 1.0, seed, step, 1.0) for seed in (5, 6) for step in (1, 2)]
    assert grids.choices(table(tmp_path / "scores.csv", diverged + ended)) == {"a": Setting(0.1, 1.0)}


@pytest.mark.slow
def test_a_grid_is_trained_chosen_from_and_reported(tmp_path, capsys):
    def asked(stage):
        return grid.Arguments(
            stage=stage, sources=tmp_path, out=tmp_path, data="hopper-random", updates=8, choosing=(5,),
            reported=(0, 1), evaluations=2, transitions=2_000, episodes=2,
        )  # fmt: skip

    grid.choose(asked("choose"))
    chosen = grids.choices(tmp_path / "results" / "grid-hopper-random" / grids.TABLE)["replica:hopper-random"]
    grid.report(asked("report"))
    kept = list((tmp_path / "results").glob("chosen-*/summary.json"))
    names = [f"chosen-beta-{chosen.beta:g}-decay-{chosen.bc_decay:g}-hopper-random"]
    assert [path.parent.name for path in kept] == ([] if chosen == grids.COMMON else names)
    assert ("already reported" in capsys.readouterr().out) == (chosen == grids.COMMON)
