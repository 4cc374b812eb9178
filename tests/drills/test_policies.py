"""Exported policies from strangers: refused in one sentence, or acting as a file that is in order acts."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from score_rl.data.sources import file_trial
from score_rl.deploy.exporting import export_policy
from score_rl.deploy.opening import open_policy
from score_rl.deploy.table_acting import act_on_table
from score_rl.errors import InputError
from tests.deploy.trained import logs, policy
from tests.drills.policies import hostile_policy
from tests.plants import heating

SECONDS = 15.0  # of this process's time, for one small file: it takes milliseconds, and a busy machine is no hang
FORMATS = {"numpy": ".npz", "onnx": ".onnx", "stablehlo": ".stablehlo"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    file_trial.end_idle()
    monkeypatch.setattr(file_trial, "SECONDS", 2)
    yield
    file_trial.end_idle()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A policy as a file of a format, written once."""
    folder = tmp_path_factory.mktemp("policies")

    @cache
    def exported(kind: str) -> Path:
        path = folder / f"policy{FORMATS[kind]}"
        export_policy(policy("td3-bc"), path, kind)
        return path

    return exported


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "today.csv"
    pl.DataFrame({name: logs().observations[:20, place] for place, name in enumerate(heating.OBSERVATIONS)}).write_csv(
        path
    )
    return path


def drill(sound: Path, table: Path, seeds: range, folder: Path) -> Counter[str]:
    counted: Counter[str] = Counter()
    path, out = folder / f"drill{sound.suffix}", folder / "actions.csv"
    act_on_table(open_policy(sound), table, folder / "sound.csv")
    exported = pl.read_csv(folder / "sound.csv")
    for seed in seeds:
        done, is_signed = hostile_policy(sound, path, seed)
        out.unlink(missing_ok=True)
        began, refused = time.process_time(), None
        try:
            act_on_table(open_policy(path), table, out, ignore=["*"])
        except InputError as error:
            refused = str(error)
        except BaseException as error:
            raise AssertionError(f"{sound.suffix}, seed {seed}: {done}") from error
        assert time.process_time() - began < SECONDS, f"{sound.suffix}, seed {seed}: {done}"
        if refused is None:
            answered = pl.read_csv(out)
            assert is_signed or answered.equals(exported), f"seed {seed}: it acts otherwise, and passed for sound"
            assert len(answered) == 20
            numbers = answered.select(pl.selectors.numeric()).to_numpy()
            assert np.isfinite(numbers[:, : len(heating.ACTIONS)]).all()
        else:
            assert refused.isprintable(), f"seed {seed}: {refused!r}"
            assert not out.exists(), f"seed {seed}: {done}"
        counted["refused" if refused else "accepted"] += 1
    return counted


@pytest.mark.parametrize(("kind", "seeds"), [("numpy", range(20)), ("onnx", range(20))])
def test_hostile_policies(sound: Callable[[str], Path], table: Path, tmp_path: Path, kind: str, seeds: range) -> None:
    counted = drill(sound(kind), table, seeds, tmp_path)
    assert counted["refused"] > len(seeds) // 3, counted


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("kind", "number"), [("numpy", 500), ("onnx", 400), ("stablehlo", 100)])
def test_a_thousand_hostile_policies(
    sound: Callable[[str], Path], table: Path, tmp_path: Path, kind: str, number: int
) -> None:
    counted = drill(sound(kind), table, range(1_000, 1_000 + number), tmp_path)
    print(kind, counted)
    assert counted["refused"] > number // 3, counted
