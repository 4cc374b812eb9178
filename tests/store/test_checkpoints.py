"""A checkpoint is whole or it is refused."""

from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from score_rl.store.checkpoints import (
    DamagedError,
    checkpoints,
    from_arrays,
    load_checkpoint,
    row_of,
    save_checkpoint,
    to_arrays,
)


def tree() -> dict[str, jax.Array | np.ndarray]:
    return {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "key": jax.random.key(7),
        "none": np.zeros((2, 0), np.float32),
    }


def test_round_trip_keeps_every_bit(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 40, to_arrays(tree()), {"runs": ["x"]})
    step, arrays, about = load_checkpoint(path)
    shapes = jax.eval_shape(lambda: jax.tree.map(lambda leaf: leaf, tree()))
    restored = from_arrays(arrays, shapes)
    assert (step, about) == (40, {"runs": ["x"]})
    np.testing.assert_array_equal(restored["a"], tree()["a"])
    np.testing.assert_array_equal(jax.random.key_data(restored["key"]), jax.random.key_data(tree()["key"]))


@settings(max_examples=60, deadline=None)
@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_one_flipped_bit_anywhere_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, position: float, bit: int
) -> None:
    folder = tmp_path_factory.mktemp("flip")
    path = save_checkpoint(folder, 1, to_arrays(tree()), {"runs": []})
    content = bytearray(path.read_bytes())
    content[int(position * len(content))] ^= 1 << bit
    path.write_bytes(content)
    try:
        step, arrays, about = load_checkpoint(path)
    except DamagedError:
        return
    # What the checksum does not cover is the comment about the runs; everything else must be untouched.
    assert step == 1
    assert about != {"runs": []} or np.array_equal(arrays["a"], tree()["a"])
    np.testing.assert_array_equal(arrays["a"], tree()["a"])


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_noticed(tmp_path_factory: pytest.TempPathFactory, share: float) -> None:
    path = save_checkpoint(tmp_path_factory.mktemp("cut"), 1, to_arrays(tree()), {})
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DamagedError):
        load_checkpoint(path)


def test_a_missing_array_or_another_shape_is_noticed() -> None:
    arrays = to_arrays(tree())
    shapes = jax.eval_shape(lambda: jax.tree.map(lambda leaf: leaf, tree()))
    with pytest.raises(DamagedError, match="a is missing"):
        from_arrays({k: v for k, v in arrays.items() if k != "a"}, shapes)
    with pytest.raises(DamagedError, match="expected float32"):
        from_arrays(arrays | {"a": np.zeros((1, 3), np.float32)}, shapes)


def test_only_the_newest_two_are_kept_and_leftovers_go(tmp_path: Path) -> None:
    (tmp_path / ".step-0000000001.safetensors.99.part").write_bytes(b"half")
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, step, to_arrays(tree()), {})
    assert [path.name for path in checkpoints(tmp_path)] == [
        "step-0000000003.safetensors", "step-0000000002.safetensors"
    ]  # fmt: skip
    assert len(list(tmp_path.iterdir())) == 2


def test_one_run_s_part_of_stacked_arrays() -> None:
    arrays = {"w": np.arange(6).reshape(2, 3), "n": np.array([4, 5])}
    mine = row_of(arrays, 1)
    assert (mine["w"].tolist(), int(mine["n"])) == ([3, 4, 5], 5)
    for other in (np.array(1.0), np.zeros((1, 3)), np.zeros(0)):
        with pytest.raises(DamagedError, match=r"x has shape .*, expected a row for each run"):
            row_of(arrays | {"x": other}, 1)
