"""What the tables of speeds are made of: figures by machine, and trainings that say how long they took."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from score_rl.report.results import SPEED
from score_rl.report.stored_results import SUMMARY, read_stored

RESULTS = Path(__file__).resolve().parents[1] / "results"


@dataclass(frozen=True)
class Machine:
    """One file of figures."""

    name: str
    parts: dict[str, Any]

    def of(self, part: str) -> Any:
        return self.parts.get(part)


def device_name(provenance: dict[str, Any]) -> str:
    device, processor = provenance["device"], provenance.get("processor")
    if device["platform"] != "cpu":
        return str(device["kind"])
    return f"{provenance['cores']} CPU cores" + (f" ({processor})" if processor else "")


def machines(folder: Path = RESULTS / "speed") -> list[Machine]:
    """CPUs first."""
    found = []
    for path in sorted(folder.glob("*.json")):
        parts = json.loads(path.read_text())
        stamps = [part["provenance"] for part in _entries(parts)]
        name = device_name(stamps[0])
        if any(device_name(stamp) != name for stamp in stamps):
            raise ValueError(f"{path} mixes machines: {sorted({device_name(stamp) for stamp in stamps})}")
        found.append(Machine(name, parts))
    return sorted(found, key=lambda machine: "CPU" not in machine.name)


def _entries(parts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for part in parts.values():
        if "provenance" in part:
            yield part
        else:
            yield from part.values()


def measured_by(found: list[Machine], part: str) -> str:
    """Who measured it, when, with which code."""
    lines = []
    for machine in found:
        entries = machine.of(part)
        if entries is None:
            continue
        stamped = [entries] if "provenance" in entries else list(entries.values())
        codes = sorted({entry["provenance"]["code"][:9] for entry in stamped})
        days = sorted({entry["measured"][:10] for entry in stamped})
        lines.append(f"{machine.name}: code {', '.join(codes)}, {' to '.join(sorted({days[0], days[-1]}))}")
    return f"Measured: {'; '.join(lines)}." if lines else "Not measured yet."


@dataclass(frozen=True)
class Training:
    """A fleet that was trained to the end, with evaluation, and how long that took."""

    folder: str
    machine: str
    code: str
    datasets: list[str]
    runs: int
    updates: int
    evaluations: int
    pace: float  # updates a second of every run

    @property
    def minutes(self) -> float:
        return self.updates / self.pace / 60


def trainings(method: str, folder: Path = RESULTS) -> list[Training]:
    """Those of a method, as it is by default, that say their pace, where all data sets were one fleet."""
    found = []
    for path in sorted(folder.glob(f"*/{SUMMARY}")):
        runs = read_stored(path.parent)
        request, paces = runs[0].request, [run.last(SPEED) for run in runs]
        changed = request.get("settings") or "steps_asked_for" in request
        if {run.algorithm for run in runs} != {method} or changed:
            continue
        known = [pace for pace in paces if pace is not None]
        if len(known) < len(paces):
            continue
        if max(known) > 1.001 * min(known):
            raise ValueError(f"{path}: one pace was expected, found {min(known):.0f} to {max(known):.0f}")
        provenance = dict(runs[0].provenance)
        found.append(
            Training(
                path.parent.name,
                device_name(provenance),
                provenance["code"][:9],
                list(dict.fromkeys(run.dataset for run in runs)),
                len(runs),
                runs[0].steps,
                runs[0].steps // request["eval_every"],
                min(known),
            )
        )
    return found
