"""Trajectories kept aside from training, so that something is left to judge by."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from score_rl.data.checksum import content_checksum
from score_rl.data.dataset import Dataset
from score_rl.data.trajectories import Recorded, TrajectoryReturns
from score_rl.errors import InputError

LEAST = 2  # trajectories in each part: fewer have no spread
GOLDEN = 0.6180339887498949


class Parts(NamedTuple):
    """The part that is trained on, and the part that is held out."""

    kept: Dataset
    held_out: Dataset


def check_fraction(fraction: float) -> None:
    """Refuse a share that leaves nothing on one side."""
    if not 0 < fraction < 1:
        raise InputError(f"`hold_out` is {fraction:g}; it must be a share of the trajectories, between 0 and 1.")


def split_dataset(dataset: Dataset, fraction: float) -> Parts:
    """Keep this share of the trajectories aside: whole ones, spread evenly over the recording.

    They are chosen by the golden-ratio sequence, so that every part of a recording made of several policies is
    represented. The choice depends on the number of trajectories and the share alone.
    """
    check_fraction(fraction)
    count = len(dataset.trajectories)
    aside = round(fraction * count)
    if aside < LEAST or count - aside < LEAST:
        least = max(1, math.ceil(LEAST / fraction), math.ceil(LEAST / (1 - fraction)))
        raise InputError(
            f"`hold_out` is {fraction:g} and {dataset.name} has {count} trajectories, which leaves fewer than {LEAST} "
            f"on one side; give another share, or data with at least {least} trajectories."
        )
    order = np.argsort((np.arange(count) * GOLDEN) % 1.0, kind="stable")
    chosen = np.zeros(count, dtype=bool)
    chosen[order[:aside]] = True
    return Parts(_part(dataset, ~chosen, "kept", fraction), _part(dataset, chosen, "held out", fraction))


def _part(dataset: Dataset, chosen: np.ndarray, which: str, fraction: float) -> Dataset:
    """The rows of these trajectories as a data set of its own."""
    bounds = dataset.trajectories[chosen]
    rows = np.concatenate([np.arange(start, stop) for start, stop in bounds])
    lengths = bounds[:, 1] - bounds[:, 0]
    stops = np.cumsum(lengths)
    names = ("observations", "actions", "rewards", "next_observations", "terminals", "timeouts")
    arrays = {name: getattr(dataset, name)[rows] for name in names}
    arrays["episodes"] = np.stack([stops - lengths, stops], axis=1).astype(np.int64)
    checksum = content_checksum(arrays | {"action_low": dataset.action_low, "action_high": dataset.action_high})
    for values in arrays.values():
        values.flags.writeable = False
    trajectories = arrays.pop("episodes")
    before, returns = dataset.recorded, dataset.recorded.returns
    recorded = Recorded(
        returns=TrajectoryReturns(returns.values[chosen], returns.complete[chosen]),
        lengths=before.lengths[chosen],
        starts=before.starts[chosen],
        dropped_rows=int((before.lengths[chosen] - lengths).sum()),
        dropped_trajectories=0,  # those belong to no part
    )
    return dataclasses.replace(
        dataset,
        **arrays,
        trajectories=trajectories,
        recorded=recorded,
        checksum=checksum,
        source={**dataset.source, "part": which, "hold_out": fraction},
    )
