"""Acts once with an exported policy, to see whether that ends: by a process that may fail (`file_trial`)."""

from contextlib import suppress
from pathlib import Path

import numpy as np

from score_rl.deploy.opening import open_unguarded
from score_rl.errors import InputError

with suppress(ImportError):  # whoever asked says what is missing
    import onnx  # noqa: F401  # here, before the process has limits
    import onnxruntime  # noqa: F401


def act_with_numpy(path: Path) -> None:
    _act(path, "numpy")


def act_with_onnx(path: Path) -> None:
    _act(path, "onnx")


def _act(path: Path, kind: str) -> None:
    with suppress(InputError):  # whoever asked meets it too
        policy = open_unguarded(path, kind)
        policy(np.zeros((2, len(policy.about["observations"])), np.float32))
