"""Damaged folders and messages: one sentence each, no traceback, and nothing damaged passes for sound."""

import dataclasses
import io
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import score_rl
from score_rl.cli.select import choice_table
from score_rl.errors import InputError
from score_rl.report.page_runs import reason
from score_rl.report.results import read_experiment
from score_rl.report.stored_results import read_stored, store_results
from score_rl.rollout.messages import DamagedMessage, receive, send
from score_rl.run.experiment import load
from score_rl.store.checkpoints import DamagedError, checkpoints, load_checkpoint, save_checkpoint, write_arrays
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
OTHER_ABOUTS: list[Any] = [[], {}, {"runs": 3}, None, "text"]
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


@pytest.mark.slow
def test_five_hundred_damaged_selections(folder: Path) -> None:
    write_selection(folder, selected())
    assert drill(folder, "selection.json", hostile_json, SLOW, read_and_show_selection) > 100


def test_a_selection_leads_nowhere_else(folder: Path) -> None:
    """A stranger may have packed it: neither its record nor a link in it may lead out of its folder."""
    sound = selected()
    assert sound.choice is not None
    for where in ("stage-1/../../mine", "stage-", "/stage-1", "../stage-1"):
        write_selection(folder, dataclasses.replace(sound, choice=dataclasses.replace(sound.choice, folder=where)))
        with pytest.raises(InputError, match="chose a run that it does not list"):
            read_selection(folder)
    for data in ("../mine.hdf5", "data/../mine.hdf5", "/mine.hdf5"):
        request = dataclasses.replace(sound.request, data=data, kept=True)
        write_selection(folder, dataclasses.replace(sound, request=request))
        with pytest.raises(InputError, match="do not lie in its folder"):
            read_selection(folder)
    write_selection(folder, sound)
    (folder / "stage-1").symlink_to(folder.parent)
    with pytest.raises(InputError, match="stage-1 is a link"):
        read_selection(folder)


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
    arrays = {"state.w": np.arange(600, dtype=np.float32).reshape(20, 30), "state.n": np.array([1, 2])}  # most of it
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


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "out"
    score_rl.train(
        "replica:hopper-medium", transitions=3000, steps=20, log_every=10, environment="none", quiet=True,
        config={"hidden": (16, 16), "batch_size": 16}, out=out, tensorboard=False,
    )  # fmt: skip
    return out


def hostile_content(path: Path, rng: random.Random) -> None:
    """A checkpoint with a checksum that is right, and other arrays than a training has."""
    step, arrays, about = load_checkpoint(path)
    for _ in range(rng.choice([1, 1, 3])):
        name = rng.choice(sorted(arrays))
        array = arrays[name]
        match rng.choice(["gone", "flat", "type", "odd", "more", "about", "step"]):
            case "gone":
                del arrays[name]
            case "flat":
                arrays[name] = np.ascontiguousarray(
                    rng.choice([array.reshape(-1), array[..., None], array.T, array[:0]])
                )
            case "type":
                arrays[name] = array.astype(rng.choice(["f8", "i4", "u1"]))
            case "odd":
                arrays[name] = np.full_like(
                    array, rng.choice([np.nan, np.inf, 1e30, -1]) if array.dtype.kind == "f" else 0
                )
            case "more":
                arrays[rng.choice(["state.more", "cut.q", "history", "treatment.x"])] = np.zeros(3, np.float32)
            case "about":
                about = rng.choice(OTHER_ABOUTS)
            case "step":
                step = rng.choice([0, -1, 10**12])
    write_arrays(path, step, arrays, about)


def ask_all(folder: Path) -> None:
    """What can be asked of the run in a folder."""
    run = load(folder).run
    assert run.step >= 0
    answer = run.policy(np.zeros(11))
    assert answer.shape == (3,)


def drill_contents(trained: Path, seeds: range, use: Callable[[Path], None], folder: Path) -> int:
    refused = 0
    for seed in seeds:
        out = folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(trained, out)
        for path in checkpoints(out / "fleet-0"):
            hostile_content(path, random.Random(seed))
        try:
            use(out)
        except InputError as error:
            refused, said = refused + 1, str(error)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        else:
            continue
        assert said.isprintable(), f"seed {seed}: {said}"
    return refused


def test_checkpoints_of_something_else(trained: Path, tmp_path: Path) -> None:
    assert drill_contents(trained, range(8), ask_all, tmp_path) > 2


@pytest.mark.slow
def test_three_hundred_checkpoints_of_something_else(trained: Path, tmp_path: Path) -> None:
    assert drill_contents(trained, range(1_000, 1_300), ask_all, tmp_path) > 100


@pytest.mark.slow
def test_going_on_from_checkpoints_of_something_else(trained: Path, tmp_path: Path) -> None:
    """Such a checkpoint is said to be damaged, and the training begins again."""

    def go_on(folder: Path) -> None:
        score_rl.resume(folder, steps=30, quiet=True, tensorboard=False)

    drill_contents(trained, range(2_000, 2_030), go_on, tmp_path)


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
