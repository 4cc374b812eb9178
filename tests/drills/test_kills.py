"""Whoever is killed, and whenever: what comes out is what an undisturbed training gives, to the bit."""

import itertools
import random
import shutil
from collections import Counter
from pathlib import Path

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

KILLS = 100
COMMON: list[object] = [
    "--dataset", "replica:hopper-medium", "--seeds", 0, 1, "--transitions", 3000, "--steps", 60, "--eval-every", 20,
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


@pytest.fixture
def own_cache(cache: Path, tmp_path: Path) -> Path:
    """Without compiled programs and results of stages, and with the recording."""
    own = tmp_path / "cache"
    training = Training(*SCORE, "--out", tmp_path / "first")  # records, if no other test has
    training.end()
    shutil.copytree(cache / "replica", own / "replica")
    return own


def forget(cache: Path, *kinds: str) -> None:
    for kind in kinds:
        shutil.rmtree(cache / kind, ignore_errors=True)


def undisturbed(request: list[object], folder: Path, cache: Path) -> Path:
    Training(*request, "--out", folder, cache=cache).end()
    return folder


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_hundred_kills_change_nothing(tmp_path: Path, own_cache: Path) -> None:
    """Moments are drawn anew in every run of the test, by a seed that it prints."""
    seed = random.SystemRandom().randrange(2**32)
    rng, killed = random.Random(seed), Counter[str]()
    expected = {"score": undisturbed(SCORE, tmp_path / "score", own_cache)}
    expected["mopo"] = undisturbed(MOPO, tmp_path / "mopo", own_cache)
    for number in itertools.count():
        if killed.total() >= KILLS:
            break
        folder = tmp_path / f"killed-{number}"
        name, request = ("mopo", MOPO) if number % 4 == 2 else ("score", SCORE)
        kinds = [*(STAGES if name == "mopo" else TRAINING)]
        forget(own_cache, "stages")
        if number % 2:
            forget(own_cache, "compiled")
            kinds = [while_compiling, while_compiling, *kinds]
        killed += drill(request, folder, kinds, rng, own_cache)
        assert_same_result(folder, expected[name])
        print(f"seed {seed}: {killed.total()} kills {dict(killed)}", flush=True)
        shutil.rmtree(folder)
    assert min(killed[kind.__name__] for kind in (*TRAINING, *STAGES, while_compiling)) >= 3, killed
