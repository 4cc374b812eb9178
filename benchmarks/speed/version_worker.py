"""Fleets of one version of the code, timed a turn at a time as `versions.py` asks. Run by file, not as a module.

    python benchmarks/speed/version_worker.py TREE SECONDS PRECISION METHOD:RUNS ...

TREE is a checkout. It comes first on the path, so what is imported is its own package and its own `Engine`. Each line
of input is the number of a fleet; each line of output is a JSON object. Ends with its input.
"""

import json
import sys
from pathlib import Path
from typing import Any


def engine_of(tree: Path) -> Any:
    """The class `Engine` of a checkout; up to 0.1.0, benchmarks were no package."""
    sys.path[:0] = [str(tree / "src"), str(tree)]
    if (tree / "benchmarks/speed/timing.py").exists():
        from benchmarks.speed.timing import Engine
    else:
        sys.path.insert(0, str(tree / "benchmarks"))
        from timing import Engine  # type: ignore[import-not-found,no-redef]
    import score_rl

    used = Path(score_rl.__file__ or "").resolve()
    if not used.is_relative_to(tree.resolve()):
        raise SystemExit(f"score_rl comes from {used}, expected it in {tree}; start this without an installed one.")
    return Engine


def main(tree: str, seconds: str, precision: str, *fleets: str) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    engine = engine_of(Path(tree))

    def answer(**what: Any) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    made: list[Any] = []
    for fleet in fleets:
        method, _, runs = fleet.partition(":")
        made.append(engine(method, int(runs), float(seconds), precision=precision))
        made[-1].turn()  # finds out how many windows a turn is
        answer(fleet=fleet, precision=made[-1].precision, window=made[-1].window, bytes=made[-1].bytes)
    for line in sys.stdin:
        answer(rate=made[int(line)].turn())


if __name__ == "__main__":
    main(*sys.argv[1:])
