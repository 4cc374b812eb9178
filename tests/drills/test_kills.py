"""Whoever is killed, and whenever: what comes out is what an undisturbed training gives, to the bit."""

import itertools
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.drills.kills import (
    Kill,
    Training,
    a_judge,
    after_writing,
    at_any_time,
    drill,
    in_a_stage,
    while_compiling,
    while_resuming,
    while_writing,
)
from tests.end_to_end.test_interruption import assert_same_result

KILLS, PARTS = 100, 4  # each part is a test, so that it can be run alone
LASTING, FEW, MORE, MOST = 20.0, 40, 400, 8_000  # seconds of a training beside its start, and updates
COMMON: list[object] = [
    "--dataset", "replica:hopper-medium", "--seeds", 0, 1, "--transitions", 3000, "--eval-every", 20,
    "--eval-episodes", 2, "--config.hidden", "16,16", "--config.batch-size", 16, "--checkpoint-minutes", 0,
    "--precision", "float32",
]  # fmt: skip
SCORE = [*COMMON, "--log-every", 10]
MOPO: list[object] = [
    *COMMON, "--log-every", 20, "--algorithm", "mopo", "--config.dynamics-hidden", "16,16,16,16", "--config.models", 3,
    "--config.elites", 2, "--config.dynamics-epochs", 15, "--config.patience", 15, "--config.rollouts", 64,
    "--config.rollout-every", 20, "--config.held-out", 100,
]  # fmt: skip
TRAINING: list[Kill] = [
    at_any_time,
    while_writing,
    while_resuming,
    a_judge,
    after_writing,
    while_resuming,
    while_writing,
]
STAGES: list[Kill] = [in_a_stage, while_resuming, in_a_stage, while_writing, in_a_stage]


@pytest.fixture(scope="module")
def own_cache(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without compiled programs and results of stages, and with the recording."""
    folder = tmp_path_factory.mktemp("kills")
    lasted([*SCORE, "--steps", FEW], folder / "first")  # records and compiles, if no other test has
    shutil.copytree(cache / "replica", folder / "cache" / "replica")
    return folder / "cache"


def forget(cache: Path, *kinds: str) -> None:
    for kind in kinds:
        shutil.rmtree(cache / kind, ignore_errors=True)


class Undisturbed(NamedTuple):
    """What comes out where nobody is killed."""

    request: list[object]
    folder: Path


@pytest.fixture(scope="module")
def undisturbed(own_cache: Path) -> dict[str, Undisturbed]:
    """Trainings that last long enough for somebody to be killed in them, on this machine."""
    seconds = {steps: lasted([*SCORE, "--steps", steps], own_cache.parent / f"{steps}") for steps in (FEW, MORE)}
    rate = (MORE - FEW) / max(seconds[MORE] - seconds[FEW], 0.1)
    steps = min(max(int(LASTING * rate) // FEW * FEW, MORE), MOST)
    found = {}
    for name, request in (("score", SCORE), ("mopo", MOPO)):
        found[name] = Undisturbed([*request, "--steps", steps], own_cache.parent / name)
        lasted(found[name].request, found[name].folder, own_cache)
    return found


def lasted(request: list[object], folder: Path, cache: Path | None = None) -> float:
    training = Training(*request, "--out", folder, cache=cache)
    training.end()
    return training.seconds


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_a_hundred_kills_change_nothing(
    tmp_path: Path, own_cache: Path, undisturbed: dict[str, Undisturbed], part: int
) -> None:
    """Moments are drawn anew in every run of the test, by a seed that it prints."""
    seed = random.SystemRandom().randrange(2**32)
    rng, killed = random.Random(seed), Counter[str]()
    for number in itertools.count():
        if killed.total() >= KILLS // PARTS:
            break
        folder = tmp_path / f"killed-{number}"
        name = "mopo" if number % 4 == 1 else "score"
        kinds = [*(STAGES if name == "mopo" else TRAINING)]
        forget(own_cache, "stages")
        if number % 2 == 0:
            forget(own_cache, "compiled")
            kinds = [while_compiling, while_compiling, *kinds]
        killed += drill(undisturbed[name].request, folder, kinds, rng, own_cache)
        assert_same_result(folder, undisturbed[name].folder)
        print(f"part {part}, seed {seed}: {killed.total()} kills {dict(killed)}", flush=True)
        shutil.rmtree(folder)
    missed = {kind.__name__ for kind in (*TRAINING, *STAGES, while_compiling)} - set(+killed)
    assert not missed, f"seed {seed}: {missed}, {killed}"
