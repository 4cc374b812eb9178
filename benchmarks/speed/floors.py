"""The least that hardware must do for an update of SCORE, counted from the networks' shapes.

Two floors: the arithmetic of the matrix products, and the bytes that must pass through the device's memory when the
state of all runs does not fit on the chip, each array read and written once however clever the program.
"""

from dataclasses import dataclass
from itertools import pairwise

FLOAT = 4  # bytes: the state is float32


@dataclass(frozen=True)
class Sizes:
    observation: int = 17
    action: int = 6
    width: int = 256
    critics: int = 5
    batch: int = 256
    actor_delay: int = 2

    @property
    def actor(self) -> tuple[int, ...]:
        return (self.observation, self.width, self.width, self.action)

    @property
    def critic(self) -> tuple[int, ...]:
        return (self.observation + self.action, self.width, self.width, 1)


@dataclass(frozen=True)
class Device:
    name: str
    flops: float  # per second, dense products, the data sheet's
    what: str
    bandwidth: float  # bytes per second of its memory, the data sheet's


H200 = (
    Device("H200", 494.7e12, "TF32", 4.8e12),
    Device("H200", 989.4e12, "bfloat16", 4.8e12),
)


def weights(sizes: tuple[int, ...]) -> int:
    return sum(i * o for i, o in pairwise(sizes))


def parameters(sizes: tuple[int, ...]) -> int:
    return weights(sizes) + sum(sizes[1:])


def products(s: Sizes) -> float:
    """Floating-point operations of the matrix products in one update, the actor's turn averaged over its cycle."""
    per_weight = 2 * s.batch
    forward_actor, forward_critics = per_weight * weights(s.actor), s.critics * per_weight * weights(s.critic)
    # Backwards, every weight gets a gradient, and every layer but the first passes one on.
    onwards_actor = per_weight * weights(s.actor[1:])
    onwards_critics = s.critics * per_weight * weights(s.critic[1:])
    critics_turn = (
        forward_actor  # target actor at s'
        + forward_critics  # target critics
        + forward_critics  # online critics
        + forward_critics  # gradients of their weights
        + onwards_critics
    )
    actors_turn = (
        forward_actor
        + forward_critics
        + forward_critics  # gradients passed on to the action, through all three layers
        + forward_actor  # gradients of the actor's weights
        + onwards_actor
    )
    return critics_turn + actors_turn / s.actor_delay


def traffic(s: Sizes) -> dict[str, float]:
    """Bytes that an update must move, by what they are for, the actor's turn averaged over its cycle."""
    actor, critics = FLOAT * parameters(s.actor), FLOAT * s.critics * parameters(s.critic)
    columns = 2 * s.observation + s.action + 3
    return {
        "critics and their two moments, read and written": 6 * critics,
        "targets, read": critics + actor,
        "actor and its two moments, read and written every second update": 6 * actor / s.actor_delay,
        "targets, written every second update": (critics + actor) / s.actor_delay,
        "the batch": FLOAT * columns * s.batch,
    }


def rate_by_arithmetic(s: Sizes, device: Device) -> float:
    """Run-steps per second if products at full rate were all there is."""
    return device.flops / products(s)


def rate_by_traffic(s: Sizes, device: Device) -> float:
    """Run-steps per second if memory traffic were all there is."""
    return device.bandwidth / sum(traffic(s).values())
