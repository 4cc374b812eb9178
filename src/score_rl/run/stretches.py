"""What trained each part of an experiment: code, libraries and machine may differ from one resumption to the next.

`experiment.json` says what began it. Each stretch that something else trained is listed below `stretches` in its
provenance, with the update from which on that was so.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from score_rl.errors import InputError
from score_rl.run import messages
from score_rl.run.messages import Announcer
from score_rl.store.folder import Folder
from score_rl.store.lock import held
from score_rl.store.records import ExperimentRecord

NAMED = 6  # differences in one message; experiment.json has them all


def differences(record: ExperimentRecord, now: Mapping[str, Any]) -> list[str]:
    """What is another now than when the experiment was last trained, each in words."""
    stretches = record.provenance.get("stretches")
    before = {**record.provenance}
    if isinstance(stretches, list):
        for stretch in stretches:
            before |= stretch if isinstance(stretch, dict) else {}
    return [f"{name} was {old} and is {new}" for name, old, new in _compared(before, now)]


def _compared(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What decides roundings, where both sides say it."""
    versions = before.get("versions")
    for name, new in now["versions"].items():
        old = versions.get(name) if isinstance(versions, Mapping) else None
        if old is not None and old != new and name != "score-rl":  # the code says that better
            yield name, old, new
    device = before.get("device")
    old_kind = device.get("kind") if isinstance(device, Mapping) else None
    for name, old, new in (
        ("Python", before.get("python"), now["python"]),
        ("the code", before.get("code"), now["code"]),
        ("the device", old_kind, now["device"]["kind"]),
        ("the processor", before.get("processor"), now["processor"]),
    ):
        if old is not None and old != new:
            yield name, old, new


def tell_differences(
    record: ExperimentRecord, now: Mapping[str, Any], *, strict: bool, announcer: Announcer
) -> Mapping[str, Any] | None:
    """Before it goes on: what trains it `now`, where that is something else than before.

    Refused by `strict`, since the result is then not that of an undisturbed training to the bit.
    """
    found = differences(record, now)
    if not found:
        return None
    shown = "; ".join(found[:NAMED]) + (f"; and {len(found) - NAMED} more" if len(found) > NAMED else "")
    if strict:
        raise InputError(
            f"{record.folder} was trained by something else ({shown}); bring that back, or leave `strict` out to go on "
            "and have it recorded."
        )
    announcer.say(messages.goes_on_otherwise(shown))
    return now


def note_stretch(folder: Folder, now: Mapping[str, Any], runs: Sequence[str], steps: int) -> None:
    """Store what trains from here on, if something is left to train."""
    with held(folder.path):
        status, record = folder.status(), folder.experiment()
        left = [status.of(run).step for run in runs if status.of(run).state != "diverged"]
        if not left or min(left) >= steps:
            return
        stretch = {"from_update": min(left), "at": datetime.now(UTC).isoformat(timespec="seconds"), **now}
        earlier = record.provenance.get("stretches")
        stretches = [*(earlier if isinstance(earlier, list) else []), stretch]
        folder.write_experiment(
            dataclasses.replace(record, provenance={**record.provenance, "stretches": stretches}),
        )
