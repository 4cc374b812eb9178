"""Damaged folders and messages: one sentence each, no traceback, and nothing damaged passes for sound."""

import dataclasses
import io
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from score_rl.cli.select import choice_table
from score_rl.errors import InputError
from score_rl.report.page_runs import reason
from score_rl.report.results import read_experiment
from score_rl.report.stored_results import read_stored, store_results
from score_rl.rollout.messages import DamagedMessage, receive, send
from score_rl.run.experiment import load
from score_rl.store.checkpoints import DamagedError, checkpoints, load_checkpoint, save_checkpoint
from score_rl.store.folder import Folder
from score_rl.store.judgements import (
    BETTER,
    SAME,
    VERDICTS,
    DataJudgement,
    Distance,
    Estimate,
    Histogram,
    JudgementRecord,
    PolicyJudgement,
    read_judgement,
    write_judgement,
)
from score_rl.store.metrics import read_metrics
from score_rl.store.selections import (
    Choice,
    Plan,
    Ranked,
    SelectionRecord,
    SelectionRequest,
    Size,
    Speeds,
    StageDone,
    StagePlan,
    Variant,
    read_selection,
    write_selection,
)
from tests.drills.records import hostile_bytes, hostile_header, hostile_json
from tests.report.folders import write_experiment

Change = Callable[[bytes, random.Random], bytes]
FAST, SLOW = range(40), range(1_000, 1_500)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_experiment(tmp_path / "out", scores={0: (10, 20, 30), 1: (5, 6, 7)})


def read_all(folder: Path) -> None:
    """What the commands read of a folder before they do their own work."""
    Folder.open(folder).experiment()
    Folder.open(folder).status()
    read_metrics(folder)
    for run in read_experiment(folder):
        if not run.finished:
            reason(run)
    experiment = load(folder)
    assert repr(experiment)
    for trained in experiment:
        assert repr(trained)
        assert trained.status.step >= 0
        assert len(trained.metrics) >= 0


def drill(folder: Path, name: str, change: Change, seeds: range, read: Callable[[Path], None]) -> int:
    """How many of the changed files were refused; each in one line, that names the folder, and can be printed."""
    path = folder / name
    content, refused = path.read_bytes(), 0
    for seed in seeds:
        path.write_bytes(change(content, random.Random(seed)))
        try:
            read(folder)
        except InputError as error:
            refused += 1
            said = str(error)
        else:
            continue
        assert said.isprintable(), f"seed {seed}: {said!r}"
        assert folder.name in said or "unknown" in said, f"seed {seed}: {said}"
    path.write_bytes(content)
    read(folder)
    return refused


CASES = [("experiment.json", hostile_json), ("status.json", hostile_json), ("metrics.csv", hostile_bytes)]


def judged(folder: Path) -> JudgementRecord:
    """A judgement with a number in every field."""
    estimate = Estimate(1.0, 0.5, 1.5, 0.2, 0.1, 0.3)
    histogram = Histogram(-1.0, 1.0, (0.5, 0.5), (0.25, 0.75))
    distance = Distance((0.1,), (0.2,), 0.0, 0.01, 0.0, 0.0, (histogram,), histogram)
    policy = PolicyJudgement(BETTER, ("it is",), {"fitted": estimate}, distance, 0.1, 0.2, 12.0, 0.1, 30)
    data = DataJudgement(
        "hopper", "abc", 100, 5, True, 0.99, 1.0, {"fitted": estimate}, ("a",), "they agree", {"r": policy}
    )
    return JudgementRecord((data,), {"name": "quick"}, {"code": "a test"})


def read_and_show_judgement(folder: Path) -> None:
    found = read_judgement(folder)
    assert found is not None
    assert all(run.verdict in VERDICTS for run in found.runs.values())


def test_damaged_judgements(folder: Path) -> None:
    write_judgement(folder, judged(folder))
    assert drill(folder, "judgement.json", hostile_json, FAST, read_and_show_judgement) > 10


@pytest.mark.slow
def test_five_hundred_damaged_judgements(folder: Path) -> None:
    write_judgement(folder, judged(folder))
    assert drill(folder, "judgement.json", hostile_json, SLOW, read_and_show_judgement) > 100


def selected() -> SelectionRecord:
    """A finished selection with something in every field."""
    variants = (Variant("score", {"alpha": 0.3}), Variant("bc"))
    speeds = Speeds({"score": 100.0, "bc": 900.0}, {"score": 9.0, "bc": 2.0}, 3_000.0)
    stages = (StagePlan(100, 2, 50), StagePlan(400, 2, 100))
    table = (Ranked(variants[0], BETTER, 0.2, ("r_seed=0",), ("it is",), 400), Ranked(variants[1], SAME, -0.1, ("b",)))
    return SelectionRecord(
        SelectionRequest("logs.hdf5", False, ("score", "bc"), (0,), 0.1, 600.0, 1_000, (-1.0, 1.0)),
        Plan(variants, Size((64, 64), 128), stages, 500.0, speeds),
        {"code": "a test"},
        400.0,
        (StageDone("stage-1", 100.0, 50.0, (variants[0].label, "bc")),),
        Choice("stage-2", "r_seed=0", True, "it is better", "very", table),
    )


def read_and_show_selection(folder: Path) -> None:
    found = read_selection(folder)
    if found.choice is not None:
        assert choice_table(found.choice).row_count == len(found.choice.table)
    assert all(variant.label.isprintable() for variant in found.plan.variants)


def test_damaged_selections(folder: Path) -> None:
    write_selection(folder, selected())
    read = read_selection(folder)
    assert read == dataclasses.replace(selected(), created=read.created)
    assert drill(folder, "selection.json", hostile_json, FAST, read_and_show_selection) > 10


@pytest.mark.parametrize(("name", "change"), CASES)
def test_damaged_records(folder: Path, name: str, change: Change) -> None:
    assert drill(folder, name, change, FAST, read_all) > 10


@pytest.mark.slow
@pytest.mark.parametrize(("name", "change"), CASES)
def test_five_hundred_damaged_records(folder: Path, name: str, change: Change) -> None:
    assert drill(folder, name, change, SLOW, read_all) > 100


def read_results(folder: Path) -> None:
    for run in read_stored(folder):
        assert run.name is not None


def stored(folder: Path) -> Path:
    store_results(read_experiment(folder), folder.parent / "stored")
    return folder.parent / "stored"


STORED_CASES = [("summary.json", hostile_json), ("curves.csv", hostile_bytes)]


@pytest.mark.parametrize(("name", "change"), STORED_CASES)
def test_damaged_stored_results(folder: Path, name: str, change: Change) -> None:
    assert drill(stored(folder), name, change, FAST, read_results) > 5


@pytest.mark.slow
@pytest.mark.parametrize(("name", "change"), STORED_CASES)
def test_five_hundred_damaged_stored_results(folder: Path, name: str, change: Change) -> None:
    assert drill(stored(folder), name, change, SLOW, read_results) > 50


def damage_checkpoints(folder: Path, seeds: range, change: Change) -> None:
    """Every change is noticed: a checkpoint that loads is the one that was written."""
    arrays = {"state.w": np.arange(6, dtype=np.float32).reshape(2, 3), "state.n": np.array([1, 2])}
    path = save_checkpoint(folder, 7, arrays, {"runs": ["a"]})
    content = path.read_bytes()
    for seed in seeds:
        changed = change(content, random.Random(seed))
        path.write_bytes(changed)
        try:
            step, found, about = load_checkpoint(path)
        except DamagedError:
            continue
        assert step == 7
        assert found.keys() == arrays.keys()
        for name, values in arrays.items():
            np.testing.assert_array_equal(found[name], values, err_msg=f"seed {seed}")
        assert changed == content or about == {"runs": ["a"]}, f"seed {seed}"


@pytest.mark.parametrize("change", [hostile_bytes, hostile_header])
def test_damaged_checkpoints(tmp_path: Path, change: Change) -> None:
    damage_checkpoints(tmp_path / "fleet-0", FAST, change)


@pytest.mark.slow
@pytest.mark.parametrize("change", [hostile_bytes, hostile_header])
def test_five_hundred_damaged_checkpoints(tmp_path: Path, change: Change) -> None:
    damage_checkpoints(tmp_path / "fleet-0", SLOW, change)


def test_a_checkpoint_that_is_a_folder(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 7, {"state.w": np.ones(3)}, {})
    (tmp_path / "step-0000000009.safetensors").mkdir()
    with pytest.raises(DamagedError, match="it is a folder"):
        load_checkpoint(checkpoints(tmp_path)[0])
    for step in (10, 11, 12):
        save_checkpoint(tmp_path, step, {"state.w": np.ones(3)}, {})
    assert (tmp_path / "step-0000000009.safetensors").is_dir(), "it is not ours"


def damage_messages(seeds: range) -> int:
    """A judge's message arrives whole or not at all."""
    stream = io.BytesIO()
    arrays: list[np.ndarray] = [np.arange(5, dtype=np.float64), np.ones((2, 3), np.int32)]
    send(stream, {"environment": "hopper", "seeds": [[1, 2]]}, arrays)
    content, refused = stream.getvalue(), 0
    for seed in seeds:
        try:
            message = receive(io.BytesIO(hostile_bytes(content, random.Random(seed))))
        except DamagedMessage:
            refused += 1
            continue
        if message is not None:
            facts, found = message
            assert facts == {"environment": "hopper", "seeds": [[1, 2]]}, f"seed {seed}"
            for array, expected in zip(found, arrays, strict=True):
                np.testing.assert_array_equal(array, expected, err_msg=f"seed {seed}")
    return refused


def test_damaged_messages_of_judges() -> None:
    assert damage_messages(FAST) > 5


@pytest.mark.slow
def test_five_hundred_damaged_messages_of_judges() -> None:
    assert damage_messages(SLOW) > 100
