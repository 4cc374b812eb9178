"""In which precision a training multiplies, where nobody says."""

from typing import cast

import jax

from score_rl.algorithms.algorithm import Algorithm
from score_rl.engine.compilation import bfloat16_units
from score_rl.errors import InputError
from score_rl.nets.kernels.choice import kernel_memory
from score_rl.nets.precision import PRECISIONS, Precision


def choose_precision(algorithm: Algorithm, asked: str) -> Precision:
    """`auto`: bfloat16 where the algorithm allows it and a GPU has kernels for it or a CPU gains by it."""
    if asked == "auto":
        device = jax.local_devices()[0]
        on_cpu = device.platform == "cpu" and bfloat16_units() in algorithm.bfloat16_on
        quick = on_cpu or kernel_memory(device) > 0
        return "bfloat16" if quick and "bfloat16" in algorithm.precisions else "float32"
    if asked in PRECISIONS and asked not in algorithm.precisions:
        allowed = " or ".join(algorithm.precisions)
        raise InputError(
            f"{algorithm.title} cannot be trained in {asked}; leave `precision` out, or make it {allowed}."
        )
    return cast("Precision", asked)  # anything else is refused with the rest of the request
