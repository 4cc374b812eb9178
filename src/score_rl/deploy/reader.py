"""Acts with a policy that `score export --format numpy` wrote. It needs Python and NumPy: copy it where you need it.

policy = Policy("policy.npz")
answer = policy(observations)     # one observation, or rows of them, columns in the order of the logs
answer["actions"]                 # in the units of the logs, within their bounds
answer["far"], answer["unknown"]  # which observations lie far outside the data; which actions are not known
policy.about                      # names and units of the columns, and where the policy comes from
"""

import hashlib
import json
from typing import Any

import numpy as np


def _over(function: Any) -> Any:
    return lambda x, axis: function(x, tuple(axis))


NUMPY = """absolute add cos divide equal exp expm1 floor greater greater_equal isfinite less less_equal log log1p
logical_and logical_not logical_or maximum minimum multiply negative not_equal power sign sin sqrt square subtract tanh
where matmul argmax argmin take take_along_axis transpose""".split()  # noqa: SIM905
OTHER: dict[str, Any] = {
    "reshape": lambda x, shape: x.reshape(shape),
    "broadcast_to": lambda x, shape: np.broadcast_to(x, shape),
    "slice": lambda x, starts, stops, steps: x[tuple(map(slice, starts, stops, steps))],
    "concatenate": lambda *parts, axis: np.concatenate(parts, axis),
    "einsum": lambda x, y, equation: np.einsum(equation, x, y, optimize=True),
    "astype": lambda x, dtype: x.astype(dtype),
    **{name: _over(getattr(np, name)) for name in ("sum", "max", "min", "all", "any")},
}
MOST = 1 << 31  # numbers in one array
OPERATIONS = {name: getattr(np, name) for name in NUMPY} | OTHER


class Policy:
    def __init__(self, path: Any) -> None:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        told, digest = arrays["program"].tobytes(), hashlib.sha256()
        self.constants = [arrays[f"constant_{n}"] for n in range(json.loads(told)["constants"])]
        for part in (arrays["about"], arrays["program"], *self.constants):
            digest.update(f"{part.dtype.str}{part.shape}".encode() + part.tobytes())
        if digest.hexdigest() != str(arrays["sha256"]):
            raise ValueError(f"{path} is damaged: its content does not match its checksum. Export it again.")
        self.about, program = json.loads(arrays["about"].tobytes()), json.loads(told)
        self.steps = [(OPERATIONS[name], i, o, options) for name, i, o, options in program["steps"]]
        self.outputs = program["outputs"]

    def __call__(self, observations: Any) -> dict[str, np.ndarray]:
        batch = np.atleast_2d(np.asarray(observations, np.float32))
        values: list[Any] = [batch, *self.constants]
        with np.errstate(all="ignore"):
            for operation, inputs, _, options in self.steps:
                now = {name: self._sized(value, len(batch)) for name, value in options.items()}
                values.append(operation(*(values[i] for i in inputs), **now))
                if values[-1].size > MOST:
                    raise ValueError(f"an array of {values[-1].shape} is none of a policy's")
        return {name: values[i] if np.ndim(observations) == 2 else values[i][0] for name, i in self.outputs.items()}

    def _sized(self, option: Any, rows: int) -> Any:  # a size [a, b] inside an option stands for a·rows + b
        if not isinstance(option, list):
            return option
        return [size[0] * rows + size[1] if isinstance(size, list) else size for size in option]
