"""The claim that SCORE is faster than PBRL."""

from __future__ import annotations

from score_rl.paper.evidence.records import Evidence
from score_rl.paper.evidence.verdicts import HOLDS, OPEN, PART, Verdict, one_word

SPEEDUP = 3.1


def speed(evidence: Evidence) -> Verdict:
    """How many times as long PBRL takes as SCORE, on every machine that has timed both."""
    found: list[tuple[float, bool, str]] = []
    files = []
    if "runtime" in evidence.experiments:
        path, result = evidence.experiments["runtime"]
        methods = result["numbers"]["methods"]
        if {"score", "pbrl-prior"} <= set(methods):
            device = result["numbers"]["device"]
            seconds = [methods[name]["seconds_per_epoch"] for name in ("pbrl-prior", "score")]
            numbers = f"{seconds[0]:.2f} s against {seconds[1]:.2f} s an epoch"
            used = [methods[name].get("precision", "float32") for name in ("pbrl-prior", "score")]
            numbers += f" (in {used[0]} and {used[1]})" if used[0] != used[1] else f" ({used[0]})"
            found.append((seconds[0] / seconds[1], device.lower() != "cpu", f"{numbers} on {device}"))
            files.append(path)
    for path, parts in evidence.speeds.items():
        methods = parts.get("methods", {})
        rates = [
            methods.get(name, {}).get("rates", {}).get("1", {}).get("run_steps_per_second")
            for name in ("score", "pbrl-prior")
        ]
        if all(rates):
            stamp = methods["pbrl-prior"]["provenance"]
            gpu = stamp["device"]["platform"] != "cpu"
            device = stamp["device"]["kind"] if gpu else f"{stamp['cores']} CPU cores"
            numbers = f"{rates[0]:,.1f} against {rates[1]:,.1f} updates a second"
            found.append((rates[0] / rates[1], gpu, f"{numbers} on {device}, one run"))
            files.append(path)
    if not found:
        return Verdict(OPEN, "no machine has timed both")
    word = one_word([1.0 if times >= SPEEDUP else 0.5 if times > 1 else 0.0 for times, _, _ in found])
    because = "; ".join(f"{times:,.1f} times: {numbers}" for times, _, numbers in found)
    if word == HOLDS and not any(gpu for _, gpu, _ in found):
        word, because = PART, because + ". No GPU has timed both, and the paper's is one"
    return Verdict(word, because, tuple(files))
