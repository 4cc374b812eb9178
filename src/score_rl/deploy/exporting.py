"""One file from a trained policy. It is asked for actions before it gets its name."""

from pathlib import Path
from typing import Literal, get_args

import jax
import numpy as np

from score_rl.deploy.lowering import Untranslatable
from score_rl.deploy.numpy_file import write_npz
from score_rl.deploy.onnx_file import write_onnx
from score_rl.deploy.opening import open_policy
from score_rl.deploy.policy import TrainedPolicy
from score_rl.deploy.tracing import trace
from score_rl.disk import replacing
from score_rl.errors import InputError, unknown_name

Format = Literal["onnx", "numpy", "stablehlo"]
ENDINGS: dict[str, str] = {"onnx": ".onnx", "numpy": ".npz", "stablehlo": ".stablehlo"}
CHECKED = 64  # observations whose actions the file must give
TOLERANCE = 1e-5  # of the range of an action
TIES = 0.05  # share of them that may differ: where two candidates are equally good, rounding decides


def format_of(path: Path, asked: str | None) -> str:
    """What was asked for, else what the name of the file says."""
    if asked is not None and asked not in ENDINGS:
        raise unknown_name("format", asked, get_args(Format))
    named = next((name for name, ending in ENDINGS.items() if path.suffix == ending), None)
    if asked is None and named is None:
        raise InputError(f"{path} names no format: end it in {', '.join(ENDINGS.values())}, or give `format`.")
    if asked is not None and named not in (None, asked):
        raise InputError(f"{path} is the name of another format than {asked}: end it in {ENDINGS[asked]}.")
    return str(asked or named)


def export_policy(policy: TrainedPolicy, path: Path, kind: str) -> None:
    """Write a file in one of the formats, whole or not at all."""
    about, function = policy.about(), policy.function()
    with replacing(path, if_full="free some space") as temporary:
        try:
            if kind == "stablehlo":
                from score_rl.deploy.stablehlo_file import write_stablehlo

                write_stablehlo(temporary, function, about)
            else:
                program = trace(function, len(about["observations"]))
                (write_onnx if kind == "onnx" else write_npz)(temporary, program, about)
        except Untranslatable as reason:
            raise InputError(
                f"the policy of {about['title']} does what no exported file can do ({reason}); "
                "act with run.policy in Python."
            ) from reason
        _compare(policy, temporary, kind)


def _compare(policy: TrainedPolicy, path: Path, kind: str) -> None:
    """Whether the file acts as the policy does, on observations as wide as the data."""
    low, high = policy.bounds()
    mean, scale = (np.asarray(x, np.float32) for x in policy.observation_scale())
    drawn = np.random.default_rng(0).normal(size=(CHECKED, len(mean))).astype(np.float32)
    observations = mean + scale * drawn
    expected = np.asarray(jax.jit(policy.function())(observations)["actions"])
    found = open_policy(path, kind, trusted=True)(observations)["actions"]
    apart = (np.abs(found - expected) > TOLERANCE * (high - low)).any(axis=1)
    if apart.mean() > TIES:
        raise RuntimeError(
            f"the exported file acts differently on {int(apart.sum())} of {CHECKED} observations, so it was not kept; "
            "please report this with the versions of JAX, NumPy and onnxruntime."
        )
