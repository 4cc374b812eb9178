"""What is wrong with a file, and what a policy may not do."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest

from score_rl.deploy import lowering, onnx_file, reader
from score_rl.deploy.exporting import ENDINGS, export_policy, format_of
from score_rl.deploy.lowering import Untranslatable
from score_rl.deploy.opening import open_policy
from score_rl.deploy.tracing import trace
from score_rl.errors import InputError
from tests.deploy.trained import policy


@pytest.mark.parametrize("kind", list(ENDINGS))
def test_a_file_of_which_one_bit_has_changed_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"policy{ENDINGS[kind]}"
    export_policy(policy("bc"), path, kind)
    content = path.read_bytes()
    open_policy(path)
    middle = content.index(b"constant_1" if kind == "numpy" else b"policy") + 4_000
    for damaged in (content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :], content[:-20]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=str(path)):
            open_policy(path)


def test_what_is_no_policy_is_refused(tmp_path: Path) -> None:
    for name, content, message in (
        ("policy.onnx", b"nothing", "not written by score export"),
        ("policy.npz", b"nothing", "not written by score export|pickle"),
        ("policy.stablehlo", b"nothing", "not written by score export"),
        ("policy.txt", b"nothing", "not an exported policy"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=message):
            open_policy(tmp_path / name)
    with pytest.raises(InputError, match="not a file"):
        open_policy(tmp_path / "absent.onnx")
    np.savez(tmp_path / "objects.npz", about=np.array([{}], object))
    with pytest.raises(InputError):
        open_policy(tmp_path / "objects.npz")


def resigned(path: Path, change: Callable[[Any], None]) -> None:
    """An ONNX file with something else in it, and the checksum of that."""
    model = onnx.load_model_from_string(path.read_bytes()[: -len(onnx_file.TAIL) - onnx_file.DIGITS])
    change(model)
    body = model.SerializeToString()
    path.write_bytes(body + onnx_file.TAIL + hashlib.sha256(body).hexdigest().encode())


def elsewhere(model: Any) -> None:
    kept = model.graph.initializer[0]
    kept.ClearField("raw_data")
    kept.data_location = onnx.TensorProto.EXTERNAL
    kept.external_data.add(key="location", value="/etc/passwd")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (elsewhere, "which no exported policy has"),
        (lambda model: setattr(model.graph.node[0], "op_type", "Loop"), "it has Loop in it"),
        (lambda model: setattr(model.graph.node[0], "domain", "com.stranger"), "was not written by score export"),
        (lambda model: model.opset_import.add(domain="com.stranger", version=1), "it has com.stranger in it"),
        (lambda model: setattr(model.graph.output[0], "name", "more"), "is damaged|was not written"),
        (lambda model: setattr(model.metadata_props[0], "value", '{"observations": []}'), "does not name its observat"),
    ],
)  # fmt: skip
def test_a_policy_that_asks_for_more_is_refused(tmp_path: Path, change: Callable[[Any], None], words: str) -> None:
    """Its checksum is right: whoever writes such a file can compute it too."""
    path = tmp_path / "policy.onnx"
    export_policy(policy("bc"), path, "onnx")
    resigned(path, change)
    with pytest.raises(InputError, match=words):
        open_policy(path)


def test_the_format_follows_from_the_name() -> None:
    assert format_of(Path("a.onnx"), None) == "onnx"
    assert format_of(Path("a.npz"), None) == "numpy"
    assert format_of(Path("a.bin"), "numpy") == "numpy"
    with pytest.raises(InputError, match="another format"):
        format_of(Path("a.npz"), "onnx")
    with pytest.raises(InputError, match="names no format"):
        format_of(Path("a"), None)


def test_every_operation_is_known_to_the_reader_and_to_onnx() -> None:
    shaped = {"reshape", "broadcast_to", "slice", "transpose", "concatenate", "astype", "where"}
    picking = {"matmul", "einsum", "take", "take_along_axis", "argmax", "argmin"}
    elementwise = {*lowering.SAME.values(), *lowering.OF_BOOLEANS.values(), *lowering.REDUCTIONS.values()}
    names = shaped | picking | elementwise
    assert names <= set(reader.OPERATIONS)
    assert names <= {*onnx_file.DIRECT, *onnx_file.REDUCTIONS, *onnx_file.RULES}


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: {"y": jnp.sort(x, axis=1)}, "sort"),
        (lambda x: {"y": x + jax.random.normal(jax.random.key(0), x.shape)}, "depend on how many rows"),
        (lambda x: {"y": jax.lax.while_loop(lambda v: v.sum() < 3, lambda v: v + 1, x)}, "while"),
        (lambda x: {"y": x * x.shape[0]}, "depend on how many rows"),
    ],
)
def test_what_cannot_be_written_down_is_refused(function: object, reason: str) -> None:
    with pytest.raises(Untranslatable, match=reason):
        trace(function, 3)  # type: ignore[arg-type]
