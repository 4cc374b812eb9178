"""The records of an experiment: what is written is read again, and what cannot be read is named."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from score_rl.data.labels import Labels
from score_rl.errors import InputError
from score_rl.store.folder import Folder
from score_rl.store.records import (
    FORMAT,
    DatasetRecord,
    ExperimentRecord,
    RunRecord,
    RunStatus,
    StatusRecord,
)
from score_rl.store.request import AlgorithmRequest, ExperimentSpec

ALGORITHMS = (
    AlgorithmRequest("score", {"hidden": ((8, 8),), "beta": (0.1, 0.5)}, ({}, {"hidden": (4, 4)}), "bfloat16"),
    AlgorithmRequest("bc"),
)
RECORD = ExperimentRecord(
    request=ExperimentSpec(
        ALGORITHMS, ("noise.hdf5",), (0, 1), steps=40, eval_every=20, eval_episodes=2, log_every=10,
        action_bounds=(-1.0, 2),
    ),
    provenance={"code": "abc", "versions": {"jax": "1"}},
    datasets={"noise": DatasetRecord("c" * 64, 300, 3, None, {"kind": "file"}, 1.5, 0.5)},
    runs=(RunRecord("noise_seed=0", "score", "noise", "c" * 64, None, 11, 3, 0, {"hidden": [8, 8]}, 0, 1),),
    began_in="somewhere",
)  # fmt: skip
STATUS = StatusRecord(
    "failed", "no space", {"a": RunStatus("training", 10, warning="odd"), "b": RunStatus("diverged", 20, 20)}
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "out", RECORD)
    assert folder.status() == StatusRecord("started")
    folder.write_status(STATUS)
    assert Folder.open(tmp_path / "out").experiment() == RECORD
    assert folder.status() == STATUS
    assert {
        json.loads((tmp_path / "out" / name).read_text())["format"] for name in ("experiment.json", "status.json")
    } == {FORMAT}


def test_names_and_units_of_columns_are_kept(tmp_path: Path) -> None:
    plain = RECORD.datasets["noise"]
    assert "observation_names" not in plain.to_json()
    named = dataclasses.replace(plain, labels=Labels(("a", "b"), ("valve",), {"a": "°C"}))
    record = dataclasses.replace(RECORD, datasets={"noise": named})
    folder = Folder.create(tmp_path / "out", record)
    assert folder.experiment() == record
    assert json.loads((tmp_path / "out" / "experiment.json").read_text())["datasets"]["noise"]["units"] == {"a": "°C"}


def test_a_run_that_training_has_not_reached_has_not_started() -> None:
    assert STATUS.of("c") == RunStatus("not started", 0)
    STATUS.of("a").state = "finished"
    assert STATUS.runs["a"].state == "training", "a status that was looked at must not change"


def spoiled(folder: Folder, name: str, change: Callable[..., Any]) -> None:
    values = json.loads((folder.path / name).read_text())
    change(values)
    (folder.path / name).write_text(json.dumps(values))


@pytest.mark.parametrize(("change", "says"), [
    (lambda v: v["runs"][0].pop("seed"), r"runs\[0\].seed is missing, expected a whole number; restore"),
    (lambda v: v["runs"][0].update(seed="0"), r"runs\[0\].seed is '0', expected a whole number; restore"),
    (lambda v: v["runs"][0].update(seed=True), r"runs\[0\].seed is True, expected a whole number; restore"),
    (lambda v: v.update(runs=None), r"runs is None, expected a list"),
    (lambda v: v["runs"].append(3), r"runs\[1\] is 3, expected an object"),
    (lambda v: v["datasets"]["noise"].pop("checksum"), r"datasets\['noise'\].checksum is missing, expected a text"),
    (lambda v: v["request"].pop("algorithms"), r"request.algorithms is missing, expected a list"),
    (lambda v: v["request"]["algorithms"][0].update(settings=[]), r"algorithms\[0\].settings is \[\], expected an obj"),
    (lambda v: v["request"]["algorithms"][0].update(precision="half"), r"precision is 'half', expected one of float32"),
    (lambda v: v["runs"][0].update(algorithm="iql"), r"noise_seed=0 trains iql, and the request names score, bc; res"),
    (lambda v: v["request"].update(seeds=[0, 1.5]), r"request.seeds\[1\] is 1.5, expected a whole number"),
    (lambda v: v.update(format=4), r"out was written in format 4, this version reads formats 1 to 3; use the version"),
    (lambda v: v.pop("format"), r"out was written in format None"),
])  # fmt: skip
def test_an_unreadable_experiment_is_refused_by_file_and_field(
    tmp_path: Path, change: Callable[..., Any], says: str
) -> None:
    folder = Folder.create(tmp_path / "out", RECORD)
    spoiled(folder, "experiment.json", change)
    with pytest.raises(InputError, match=says) as refused:
        folder.experiment()
    assert str(tmp_path / "out") in str(refused.value)


def test_an_unreadable_status_is_refused_by_file_and_field(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "out", RECORD)
    folder.write_status(STATUS)
    spoiled(folder, "status.json", lambda values: values["runs"]["a"].update(state="asleep"))
    with pytest.raises(InputError, match=r"status.json cannot be read: runs\['a'\].state is 'asleep', expected one of"):
        folder.status()


def one_algorithm(values: dict[str, Any]) -> None:
    """As formats 1 and 2 had it: one algorithm, its settings beside everything else."""
    (asked,) = values["request"].pop("algorithms")
    values["request"] |= {"algorithm": asked.pop("name")} | asked


def test_format_2_is_read(tmp_path: Path) -> None:
    """It had one algorithm in a request."""
    record = dataclasses.replace(RECORD, request=dataclasses.replace(RECORD.request, algorithms=ALGORITHMS[:1]))
    folder = Folder.create(tmp_path / "out", record)
    spoiled(folder, "experiment.json", lambda values: (values.update(format=2), one_algorithm(values)))
    assert "algorithms" not in json.loads((folder.path / "experiment.json").read_text())["request"]
    assert folder.experiment() == record


def test_format_1_is_read(tmp_path: Path) -> None:
    """It had other names for three fields, and its status had no format."""
    record = dataclasses.replace(RECORD, request=dataclasses.replace(RECORD.request, algorithms=ALGORITHMS[:1]))
    folder = Folder.create(tmp_path / "out", record)
    folder.write_status(STATUS)

    def older(values: dict[str, Any]) -> None:
        values["format"] = 1
        values["datasets"]["noise"]["episodes"] = values["datasets"]["noise"].pop("trajectories")
        values["runs"][0]["place"] = values["runs"][0].pop("position")
        one_algorithm(values)

    def older_status(values: dict[str, Any]) -> None:
        del values["format"]
        values["runs"]["a"]["doubt"] = values["runs"]["a"].pop("warning")

    spoiled(folder, "experiment.json", older)
    spoiled(folder, "status.json", older_status)
    assert folder.experiment() == record
    assert folder.status() == STATUS
