"""What is told before training, and whose observations are standardised."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import score_rl
from score_rl.data.dataset import Dataset
from score_rl.data.ownership import is_own, recorded_source
from score_rl.run.expansion import expand_runs
from score_rl.run.notes import all_notes, warnings_again
from score_rl.store.request import AlgorithmRequest, ExperimentSpec
from tests.deploy.trained import logs
from tests.run.conftest import recording
from tests.run.test_spec import SPEC, stored

RAW = ("iql", "cql", "rebrac", "sac-n", "mopo")  # some of those whose authors take observations raw


def asking(name: str, **settings: Any) -> ExperimentSpec:
    request = AlgorithmRequest(name, {key: (value,) for key, value in settings.items()})
    return dataclasses.replace(SPEC, algorithms=(request,), datasets=("heating",))


def scales(spec: ExperimentSpec, dataset: Dataset) -> bool:
    return bool(expand_runs(spec, [dataset])[0].config.normalise_states)


def of_kind(kind: str, environment: str | None = None, **source: Any) -> Dataset:
    return dataclasses.replace(recording(), source={"kind": kind, **source}, environment=environment)


@pytest.mark.parametrize("name", RAW)
def test_methods_that_take_observations_raw_standardise_somebodys_own(name: str) -> None:
    spec = asking(name)
    assert scales(spec, logs())
    (note,) = [note for note in all_notes(expand_runs(spec, [logs()]), spec) if "are standardised" in note]
    assert "config.normalise_states=False" in note
    for kind in ("replica", "d4rl", "ogbench", "minari"):
        assert not scales(spec, of_kind(kind)), "its authors chose the default for benchmarks"


def test_a_task_of_a_benchmark_is_one_whatever_file_it_is_in() -> None:
    assert not is_own(of_kind("file", "hopper"))
    assert not is_own(of_kind("file", "walker2d"))
    assert is_own(of_kind("file", "Pendulum-v1"))
    assert is_own(of_kind("arrays"))


def test_data_stay_whose_they_are_where_they_are_kept_for_resuming() -> None:
    kept = {"kind": "saved", "source": {"kind": "replica", "recipe": {"name": "hopper-medium"}}}
    assert not is_own(of_kind("file", recipe=kept))
    assert recorded_source({"kind": "file", "recipe": kept})["kind"] == "replica"
    assert is_own(of_kind("file", recipe={"kind": "saved", "source": {"kind": "frame"}}))
    assert is_own(of_kind("file", recipe={"kind": "import"}))


def test_the_users_own_word_counts() -> None:
    spec = asking("iql", normalise_states=False)
    assert not scales(spec, logs())
    notes = all_notes(expand_runs(spec, [logs()]), spec)
    assert not any("are standardised" in note for note in notes)
    (doubt,) = [note for note in notes if "drown the others" in note]
    assert next(iter(warnings_again(notes))).endswith(f"- {doubt}")


def test_the_rule_of_a_task_needs_observations_as_recorded() -> None:
    assert not scales(asking("mopo", task="hopper"), of_kind("file"))


def test_experiments_of_before_go_on_as_they_began() -> None:
    values = asking("iql").to_json()
    del values["scales_own_data"]
    before = ExperimentSpec.from_json(stored(values))
    assert not scales(before, logs())
    assert not any("are standardised" in note for note in all_notes(expand_runs(before, [logs()]), before))
    assert scales(ExperimentSpec.from_json(stored(asking("iql").to_json())), logs())


def test_what_was_told_is_stored_and_shown_at_the_end(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    data = {
        "observations": np.column_stack([rng.normal(size=(300, 2)), np.ones(300)]),
        "actions": rng.uniform(-1, 1, (300, 1)),
        "rewards": rng.normal(size=300),
        "episodes": np.arange(300) // 30,
        "times": np.arange(300),
    }  # fmt: skip
    options: dict[str, Any] = {
        "config": {"hidden": (8, 8), "batch_size": 8}, "log_every": 10, "tensorboard": False,
    }  # fmt: skip
    experiment = score_rl.train(data, algorithm="iql", steps=20, out=tmp_path / "runs", **options)
    said = capsys.readouterr().err
    doubts = [note for note in experiment.notes if note.startswith("Warning,")]
    assert [what for what in ("look shuffled", "Observation 2 never changes") if any(what in d for d in doubts)] == [
        "look shuffled", "Observation 2 never changes",
    ]  # fmt: skip
    assert any("schedule_steps is 1,000,000" in note for note in experiment.notes)
    before, _, end = said.partition("As said before training:")
    assert all(doubt in before and doubt in end for doubt in doubts)
    (tmp_path / "runs" / "status.json").unlink()
    assert score_rl.resume(tmp_path / "runs", quiet=True, steps=40).notes == tuple(
        note.replace("has 20 updates", "has 40 updates").replace("schedule_steps=20", "schedule_steps=40")
        for note in experiment.notes
    )
