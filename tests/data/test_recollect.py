"""Recording afresh with the policy in a file."""

from pathlib import Path

import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.recollect import recollect
from score_rl.data.sources.d4rl import d4rl_facts
from score_rl.errors import InputError

from .recordings import SAMPLES, file_with_policy, genuine, recording, small_policy, write


def test_a_new_recording_is_a_file_like_the_one_it_came_from(tmp_path: Path) -> None:
    source = file_with_policy(tmp_path / "hopper_mine.hdf5", small_policy())
    out = tmp_path / "new" / "again.hdf5"
    dataset = recollect(source, out, transitions=400, seed=2, progress=False)
    assert (dataset.name, dataset.environment, len(dataset)) == ("again", "hopper", 400)
    recipe = dataset.source["recipe"]
    assert (recipe["seed"], recipe["physics"], recipe["transitions"]) == (2, "d4rl", 400)
    assert dataset.checksum == load_dataset(str(out)).checksum
    assert recollect(source, tmp_path / "same", transitions=400, seed=2, progress=False).checksum == dataset.checksum
    from_new = recollect(out, tmp_path / "third", transitions=400, seed=2, progress=False)
    assert from_new.checksum == dataset.checksum
    stock = recollect(source, tmp_path / "stock", transitions=400, seed=2, physics="stock", progress=False)
    assert stock.checksum != dataset.checksum


def test_what_cannot_be_recollected(tmp_path: Path) -> None:
    source = file_with_policy(tmp_path / "hopper_mine.hdf5", small_policy())
    with pytest.raises(InputError, match="exists already"):
        recollect(source, source, transitions=10)
    with pytest.raises(InputError, match="unknown physics"):
        recollect(source, tmp_path / "out", transitions=10, physics="old")
    with pytest.raises(InputError, match="0 transitions"):
        recollect(source, tmp_path / "out", transitions=0)
    with pytest.raises(InputError, match="but walker2d has 17 and 6"):
        recollect(source, tmp_path / "out", transitions=10, environment="walker2d")
    with pytest.raises(InputError, match="unknown locomotion task 'hoper'"):
        recollect(source, tmp_path / "out", transitions=10, environment="hoper")
    nameless = source.rename(tmp_path / "mine.hdf5")
    with pytest.raises(InputError, match="does not say which task"):
        recollect(nameless, tmp_path / "out", transitions=10)
    with pytest.raises(InputError, match="holds no behaviour policy"):
        recollect(write(tmp_path / "hopper_bare.hdf5", recording()), tmp_path / "out", transitions=10)
    assert not (tmp_path / "out").exists()


@genuine
@pytest.mark.parametrize(
    ("task", "transitions"),
    [
        ("hopper", 15_000),
        pytest.param("hopper", 150_000, marks=pytest.mark.slow),
        pytest.param("halfcheetah", 100_000, marks=pytest.mark.slow),
        pytest.param("walker2d", 100_000, marks=pytest.mark.slow),
    ],
)
def test_returns_are_those_that_were_published(task: str, transitions: int, tmp_path: Path) -> None:
    source = Path(SAMPLES or "") / f"{task}_medium-v2.hdf5"
    dataset = recollect(source, tmp_path / "again.hdf5", transitions=transitions, progress=False)
    values, complete = dataset.returns()
    published = d4rl_facts(f"{task}-medium-v2").returns
    assert published is not None
    error = published["std"] / np.sqrt(complete.sum())
    assert abs(values[complete].mean() - published["mean"]) < 4.5 * error
