"""What is doubtful is said, of rows as a plant would log them; and nothing is said of good ones."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.check import check_file
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.data.warnings import find_large_observations, find_warnings

from .recordings import EPISODES, STEPS, plant, write


def made(**changes: Any) -> Dataset:
    bounds = changes.pop("bounds", (-1.0, 1.0))
    arrays = plant(**changes)
    return make_dataset("plant", **arrays, action_bounds=bounds, source={"rows": len(arrays["rewards"])})


def only(dataset: Dataset) -> str:
    (doubt,) = find_warnings(dataset)
    return doubt


def test_good_rows_raise_no_doubt() -> None:
    assert find_warnings(made()) == []
    assert list(find_large_observations(made(), "IQL")) == []


@pytest.mark.parametrize("task", ["halfcheetah", "hopper", "walker2d"])
@pytest.mark.parametrize("kind", ["random", "medium-replay", "expert"])
def test_neither_do_replicas(task: str, kind: str) -> None:
    dataset = load_dataset(f"replica:{task}-{kind}", transitions=2_000, progress=False)
    assert find_warnings(dataset) == []
    assert list(find_large_observations(dataset, "IQL")) == []


def test_a_terminal_in_a_task_that_has_none(tmp_path: Path) -> None:
    """As in D4RL's halfcheetah_medium of version 1."""
    rows = plant()
    generator = np.random.default_rng(0)
    rows |= {"observations": np.cumsum(generator.normal(0, 0.1, (EPISODES * STEPS, 17)), 0).astype(np.float32)}
    rows |= {"actions": generator.uniform(-1, 1, (EPISODES * STEPS, 6)).astype(np.float32)}
    rows["terminals"][4 * STEPS - 1] = True
    path = write(tmp_path / "halfcheetah_medium.hdf5", rows)
    says = f"halfcheetah never ends, but 1 row is terminal ({4 * STEPS - 1})"
    assert any(warning.startswith(says) for warning in find_warnings(load_dataset(path)))
    assert any(finding.message.startswith(says) for finding in check_file(path))


def test_falls_in_what_this_library_recorded_are_no_glued_episodes() -> None:
    rows = plant()
    rows["timeouts"][5 * STEPS - 1] = False
    recorded = make_dataset("plant", **rows, source={"kind": "file", "recipe": {"name": "plant"}})
    assert find_warnings(recorded) == []


def test_in_imported_tables_glued_episodes_are_looked_for() -> None:
    rows = plant()
    rows["timeouts"][5 * STEPS - 1] = False
    for recipe in ({"kind": "import"}, {"kind": "saved", "source": {"kind": "frame", "recipe": {"kind": "import"}}}):
        imported = make_dataset("plant", **rows, source={"kind": "file", "recipe": recipe})
        assert "jump at once after 1 row inside a trajectory" in only(imported)


def test_shuffled_rows() -> None:
    order = np.random.default_rng(1).permutation(EPISODES * STEPS)
    rows = plant()
    shuffled = {key: rows[key][order] for key in ("observations", "actions", "rewards")}
    assert "look shuffled" in only(made(**shuffled))


def test_rows_sorted_by_episode_and_not_by_time() -> None:
    """Shuffled within each trajectory, as where a table was sorted by its episodes alone."""
    generator, starts = np.random.default_rng(1), range(0, EPISODES * STEPS, STEPS)
    order = np.concatenate([start + generator.permutation(STEPS) for start in starts])
    rows = plant()
    shuffled = {key: rows[key][order] for key in ("observations", "actions", "rewards")}
    assert "look shuffled" in only(made(**shuffled))


def test_short_trajectories_that_drift_are_in_order() -> None:
    """In two rows a step is all that changes."""
    timeouts = np.arange(EPISODES * STEPS) % 3 == 2
    assert not any("look shuffled" in warning for warning in find_warnings(made(timeouts=timeouts)))


def test_rows_that_are_nearly_all_ends() -> None:
    timeouts = np.zeros(EPISODES * STEPS, bool)
    timeouts[::4] = True
    found = find_warnings(made(timeouts=timeouts))
    assert any(warning.startswith("Only 539 of 720 rows can be learned from") for warning in found)
    assert any("Are the rows sorted?" in warning for warning in found)


def test_episodes_that_were_glued_together() -> None:
    timeouts = plant()["timeouts"]
    timeouts[[5 * STEPS - 1, 8 * STEPS - 1]] = False
    doubt = only(made(timeouts=timeouts))
    assert f"jump at once after 2 rows inside a trajectory ({5 * STEPS - 1}, {8 * STEPS - 1})" in doubt


def test_an_observation_that_never_changes() -> None:
    rows = plant()
    rows["observations"][:, 2] = 50.0
    assert only(made(observations=rows["observations"])).startswith("Observation 2 never changes")


def test_an_action_that_hardly_changes() -> None:
    rows = plant()
    rows["actions"][:, 1] = 50 + 0.04 * rows["actions"][:, 1]
    doubt = only(made(actions=rows["actions"], bounds=(np.array([-1, 0]), np.array([1, 100]))))
    assert doubt.startswith("Action 1 stays between 49.9")
    assert "its bounds are 0 and 100" in doubt
    assert find_warnings(made(actions=rows["actions"], bounds=(np.array([-1, 49.95]), np.array([1, 50.05])))) == []


def test_large_observations_are_named_for_methods_that_do_not_scale_them() -> None:
    rows = plant()
    rows["observations"][:, [0, 3]] *= 400
    (doubt,) = find_large_observations(made(observations=rows["observations"]), "IQL")
    assert doubt.startswith("Observations 0, 3 are of the order of")
    assert "`config.normalise_states=True`" in doubt


def test_bounds_that_are_not_the_file_s(tmp_path: Path) -> None:
    path = write(tmp_path / "plant.hdf5", plant())
    with h5py.File(path, "a") as file:
        file["metadata/action_low"], file["metadata/action_high"] = np.full(2, -1.0), np.full(2, 1.5)
    assert find_warnings(load_dataset(str(path))) == []
    assert find_warnings(load_dataset(str(path), action_bounds=(-1, 1.5))) == []
    with h5py.File(path, "a") as file:
        del file["metadata"]
        file["metadata/action_low"], file["metadata/action_high"] = -1.0, 1.5  # one for all
    assert find_warnings(load_dataset(str(path), action_bounds=(-1, 1.5))) == []
    assert only(load_dataset(str(path), action_bounds=(-1, 2))).startswith(
        "The file says that actions lie between -1 and"
    )
    with h5py.File(path, "a") as file:
        del file["metadata"]
        file["metadata/action_low"], file["metadata/action_high"] = np.full(2, -1.0), np.full(2, 1.5)
    doubt = only(load_dataset(str(path), action_bounds=(-1, 2)))
    assert doubt.startswith("The file says that actions lie between -1, -1 and 1.5, 1.5;")
    assert doubt.endswith("-1, -1 to 2, 2.")


def test_the_check_of_a_file_takes_the_bounds_that_training_takes(tmp_path: Path) -> None:
    rows = plant()
    rows["actions"][:, 1] *= 0.01
    found = check_file(write(tmp_path / "plant.hdf5", rows))
    assert found[0].message.startswith("Action 1 stays between -0.00999")


def test_the_check_of_a_file_has_them_as_warnings(tmp_path: Path) -> None:
    rows = plant()
    rows["timeouts"][5 * STEPS - 1] = False
    found = check_file(write(tmp_path / "plant.hdf5", rows))
    assert [finding.level for finding in found] == ["warning", "note", "note"]
    assert f"inside a trajectory ({5 * STEPS - 1})" in found[0].message


def test_rows_that_all_end() -> None:
    """No row has a next one to compare with, so nothing is said of changes, and nothing breaks."""
    rows = plant(terminals=np.ones(EPISODES * STEPS, bool))
    rows["next_observations"] = rows["observations"]
    assert find_warnings(make_dataset("plant", **rows)) == []


def test_trajectories_of_one_row_vanish() -> None:
    timeouts = plant()["timeouts"]
    timeouts[:STEPS:20] = True  # three trajectories of one row, among others that are long
    timeouts[1:STEPS:20] = True
    warning = only(made(timeouts=timeouts))
    assert warning.startswith("Only 14 of 18 trajectories can be learned from: the others are one row each")


def solved_and_gone_on() -> dict[str, Any]:
    """Batches that are solved in three rows on the way, each with its true next observation."""
    rows = plant()
    following = np.arange(EPISODES * STEPS) + ~rows["timeouts"]
    rows["next_observations"] = rows["observations"][following]
    rows["terminals"][[20, 21, 200]] = True
    return rows


def test_terminals_after_which_the_recording_goes_on() -> None:
    rows = solved_and_gone_on()
    warning = only(make_dataset("plant", **rows))
    assert warning.startswith("The recording goes on after 3 of 3 terminals")
    assert find_warnings(make_dataset("plant", **rows, trajectory_ends=rows["timeouts"])) == []


def test_a_jump_after_a_terminal_on_the_way_is_seen() -> None:
    rows = solved_and_gone_on()
    ends = rows["timeouts"].copy()
    rows["terminals"][5 * STEPS - 1] = True
    rows["timeouts"][:] = False
    ends[5 * STEPS - 1] = False  # the next batch begins after this row
    del rows["next_observations"]
    warning = only(make_dataset("plant", **rows, trajectory_ends=ends))
    assert f"inside a trajectory ({5 * STEPS - 1})" in warning


def test_a_warning_names_rows_of_the_file() -> None:
    """Dropped rows are counted: the sixth trajectory begins 5 rows later in the file than among the rows that stay."""
    timeouts = plant()["timeouts"]
    timeouts[6 * STEPS - 1] = False
    assert f"({6 * STEPS - 1})" in only(made(timeouts=timeouts))
