"""Runs, their identity, and the fleets that they form."""

import dataclasses

from score_rl.engine.runs import group_fleets, run_identity
from tests.engine.made_up import make_runs, recording


def test_an_identity_is_of_algorithm_data_and_seed_alone() -> None:
    runs = make_runs([recording("one"), recording("two", seed=1)], seeds=(0, 1), beta=(0.1, 0.5))
    assert len({run.identity for run in runs}) == 4
    assert len({run.key_seed() for run in runs}) == 4
    run = runs[0]
    assert run.identity == run_identity("score", run.dataset.checksum, 0) == f"score|{run.dataset.checksum}|0"
    renamed = dataclasses.replace(run, id="other", dataset=dataclasses.replace(run.dataset, name="other"))
    assert renamed.identity == run.identity


def test_a_key_is_what_it_was() -> None:
    """The numbers of 0.1.0: other ones would train every stored run again to something else."""
    run = dataclasses.replace(make_runs([recording()])[0], dataset=dataclasses.replace(recording(), checksum="0" * 64))
    assert run.key_seed() == (1310263969, 1158520663)


def test_other_shapes_are_other_fleets() -> None:
    data = [recording("one"), recording("wide", observation=7)]
    fleets = group_fleets(make_runs(data, seeds=(0, 1), critics=(3, 5), beta=(0.1, 0.2)))
    assert [len(fleet) for fleet in fleets] == [4, 4, 4, 4]
    assert {(f[0].config.critics, f[0].dataset.name) for f in fleets} == {
        (3, "one"), (5, "one"), (3, "wide"), (5, "wide")
    }  # fmt: skip
