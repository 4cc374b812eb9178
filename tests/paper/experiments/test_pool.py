"""A run is trained once, and an interrupted fleet is gone on with."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from score_rl.paper.experiments import pool
from score_rl.paper.experiments.plan import Request, Variant, Wanted, product
from score_rl.paper.experiments.scales import SCALES
from score_rl.run.experiment import Experiment
from score_rl.run.launch import resume
from score_rl.store.folder import Folder


def wanted(*variants: Variant, seeds: tuple[int, ...] = (0,)) -> list[Wanted]:
    request = Request(SCALES["smoke"], seeds=seeds)
    return [asked.run for asked in product(request, variants, ["replica:hopper-medium"])]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """How many runs each call of training had."""
    calls = []
    train = pool.train

    def counted(*arguments: list[str], **options: Any) -> Experiment:
        calls.append(len(options["variants"]) * len(options["seeds"]))
        return train(*arguments, **options)

    monkeypatch.setattr(pool, "train", counted)
    return calls


def test_shared_runs_are_trained_once(tmp_path: Path, trained: list[Any]) -> None:
    said: list[str] = []
    first = wanted(Variant("a"), Variant("b", {"beta": 0.0}))
    pool.ready(tmp_path, first, quiet=True, say=said.append)
    assert trained == [2]
    second = wanted(Variant("c", {"beta": 0.2}), Variant("d", {"beta": 0.5}))  # 0.2 is the default: the same run
    stored = pool.ready(tmp_path, second, quiet=True, say=said.append)
    assert trained == [2, 1]
    assert "1 of 2 runs are there already." in said
    assert all(stored[run.key()].ended for run in [*first, *second])
    assert stored[first[0].key()] == stored[second[0].key()]
    pool.ready(tmp_path, [*first, *second], quiet=True, say=said.append)
    assert trained == [2, 1]


def test_an_interrupted_fleet_is_gone_on_with(
    tmp_path: Path, trained: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = wanted(Variant("a"), seeds=(0, 1))
    stored = pool.ready(tmp_path, runs, quiet=True, say=print)
    folder = Folder.open(stored[runs[0].key()].folder)
    undisturbed = folder.metrics_path.read_text()
    folder.write_status(dataclasses.replace(folder.status(), state="interrupted"))  # as Ctrl-C leaves it
    resumed = []
    monkeypatch.setattr(pool, "resume", lambda path, **options: resumed.append(path) or resume(path, **options))
    stored = pool.ready(tmp_path, runs, quiet=True, say=print)
    assert resumed == [folder.path]
    assert trained == [2]
    assert all(stored[run.key()].ended for run in runs)
    assert folder.metrics_path.read_text() == undisturbed
