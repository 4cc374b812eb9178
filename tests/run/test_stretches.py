"""Going on with other libraries: said, recorded, and refused by those who want the same bits."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import score_rl
from score_rl.errors import InputError
from score_rl.run import launch
from score_rl.run.stretches import differences
from score_rl.store.provenance import provenance

SMALL: dict[str, Any] = {
    "transitions": 3000, "log_every": 10, "environment": "none", "config": {"hidden": (16, 16), "batch_size": 16},
    "tensorboard": False,
}  # fmt: skip


def trained_elsewhere(folder: Path, **other: Any) -> None:
    """As if other libraries had trained what is there."""
    path = folder / "experiment.json"
    stored = json.loads(path.read_text())
    stored["provenance"]["versions"] |= other
    path.write_text(json.dumps(stored))


def test_other_libraries_are_said_and_recorded_and_refused_by_strict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    score_rl.train("replica:hopper-medium", steps=20, out=folder, quiet=True, **SMALL)
    score_rl.resume(folder, steps=30, tensorboard=False)
    assert "something else" not in capsys.readouterr().err
    trained_elsewhere(folder, jax="0.0.1", mujoco="0.0.2")
    with pytest.raises(InputError, match=r"trained by something else .jax was 0\.0\.1 and is .*; mujoco was 0\.0\.2"):
        score_rl.resume(folder, steps=40, strict=True, tensorboard=False)
    assert "stretches" not in score_rl.load(folder).record.provenance
    score_rl.resume(folder, steps=40, tensorboard=False)
    assert "jax was 0.0.1 and is " in capsys.readouterr().err
    (stretch,) = score_rl.load(folder).record.provenance["stretches"]
    assert stretch["from_update"] == 30
    assert stretch["versions"] == provenance()["versions"]
    assert score_rl.load(folder).record.provenance["versions"]["jax"] == "0.0.1", "what began it stays"
    score_rl.resume(folder, steps=50, strict=True, quiet=True, tensorboard=False)
    assert len(score_rl.load(folder).record.provenance["stretches"]) == 1, "the same as before"


def test_what_a_stranger_wrote_as_provenance_is_compared_as_far_as_it_goes(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    score_rl.train("replica:hopper-medium", steps=20, out=folder, quiet=True, **SMALL)
    record, now = score_rl.load(folder).record, provenance()
    for odd in ({}, {"versions": 3, "device": []}, {"stretches": [4, {"versions": None}]}, {"stretches": {"a": 1}}):
        assert differences(dataclasses.replace(record, provenance=odd), now) == []
    found = differences(dataclasses.replace(record, provenance={"device": {"kind": "abacus"}, "python": "2"}), now)
    assert [words.split(" was ")[0] for words in found] == ["Python", "the device"]


def test_a_finished_experiment_has_no_further_stretch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    score_rl.train("replica:hopper-medium", steps=20, out=folder, quiet=True, **SMALL)
    monkeypatch.setattr(launch, "provenance", lambda: {**provenance(), "python": "9.9"})
    score_rl.resume(folder, quiet=True, tensorboard=False)
    assert "stretches" not in score_rl.load(folder).record.provenance
