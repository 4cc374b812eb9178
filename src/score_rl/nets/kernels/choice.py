"""Which kernels and forms there are for a device, and which of them a network takes."""

import jax

from score_rl.nets.kernels.fused import Fused
from score_rl.nets.kernels.interface import ActorForm, CriticsForm, PassesForm, Weights
from score_rl.nets.kernels.layers import LayerByLayer
from score_rl.nets.kernels.padded import FORM_FOR_UNITS
from score_rl.nets.kernels.passes import DropoutPasses
from score_rl.nets.kernels.streamed import Streamed
from score_rl.nets.precision import Arithmetic, Precision, chosen_arithmetic

ALIGNED_WIDTH = 64  # of hidden layers on a GPU

# KiB of shared memory that one program of a kernel may take on NVIDIA's GPUs, by compute capability (CUDA's
# documentation). Before 8.0 they do not multiply bfloat16.
KERNEL_MEMORY = {
    "8.0": 163, "8.6": 99, "8.7": 163, "8.9": 99, "9.0": 227, "10.0": 227, "10.3": 227, "11.0": 227,
    "12.0": 99, "12.1": 99,
}  # fmt: skip
LEAST_MEMORY = min(KERNEL_MEMORY.values())


# -- for a device ----------------------------------------------------------------------------------------------------


def arithmetic_for(precision: Precision, device: jax.Device, runs: int, units: str | None = None) -> Arithmetic:
    """The arithmetic of so many runs on each device of this kind.

    `units` is what a CPU multiplies bfloat16 with (a key of `FORM_FOR_UNITS`); None if it has nothing for that.
    """
    if device.platform != "gpu":
        if precision == "float32":
            return Arithmetic()
        if units is None:
            return Arithmetic(precision, emulated=True)
        form = FORM_FOR_UNITS[units]
        return Arithmetic(precision, (form,), (form,), emulated=True, bfloat16_library=True)
    memory = kernel_memory(device)
    if precision == "float32" or not memory:
        return Arithmetic(precision, multiple=ALIGNED_WIDTH)
    fused, layers = Fused(runs, memory), LayerByLayer.for_runs(runs)
    streamed, passes = ((Streamed(runs),), DropoutPasses(runs)) if is_hopper(device) else ((), None)
    critics = fused, *streamed, layers
    return Arithmetic(precision, critics, (fused,), passes, multiple=ALIGNED_WIDTH, kernel_runs=runs)


def kernel_memory(device: jax.Device) -> int:
    """KiB of shared memory for a program of our kernels; 0 if the device cannot run them."""
    capability = compute_capability(device)
    if not capability or int(capability.partition(".")[0]) < 8:
        return 0
    return KERNEL_MEMORY.get(capability, LEAST_MEMORY)  # a newer one has no less


def is_hopper(device: jax.Device) -> bool:
    """Whether this is the kind of GPU that has memory enough, of both kinds, for `streamed` and `passes`."""
    return compute_capability(device).startswith("9.")


def compute_capability(device: jax.Device) -> str:
    """That of one of NVIDIA's GPUs, such as 9.0; an empty text for anything else."""
    said = str(getattr(device, "compute_capability", "")) if device.platform == "gpu" else ""
    return said if said.partition(".")[0].isdigit() else ""


# -- for a network, within the chosen arithmetic ---------------------------------------------------------------------


def critics_form(weights: Weights, rows: int) -> CriticsForm | None:
    """The first form that fits critics with these weights on so many rows; None leaves them to the compiler."""
    return next((form for form in chosen_arithmetic().critics if form.fits(weights, rows)), None)


def actor_form(weights: Weights, rows: int) -> ActorForm | None:
    """The first form that fits an actor, given as an ensemble of one; None leaves it to the compiler."""
    return next((form for form in chosen_arithmetic().actors if form.fits(weights, rows)), None)


def passes_form(weights: Weights, masks: str) -> PassesForm | None:
    """The form for many passes with dropout, if it fits; it has masks of its own for each row (`masks` is "row")."""
    form = chosen_arithmetic().passes
    return form if form is not None and masks == "row" and form.fits(weights) else None
