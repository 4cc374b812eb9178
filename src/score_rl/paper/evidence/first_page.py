"""What README takes from the registry and from stored results."""

import os
import textwrap
from pathlib import Path

from score_rl.algorithms.algorithm import Paper
from score_rl.algorithms.registry import MODULES, algorithm_names, get_algorithm
from score_rl.paper.evidence.cells import NOTHING, overall, table
from score_rl.paper.evidence.main_table import image, in_full, printed_mean
from score_rl.paper.evidence.records import Evidence


def curves(evidence: Evidence, base: Path) -> str:
    """The picture at the top."""
    return image("Three methods learn from the same recording", evidence, "curves.svg", base)


def method_list(evidence: Evidence, base: Path) -> str:
    """Every method with its file, by paper."""
    methods: dict[Paper | None, list[str]] = {}
    for name in algorithm_names():
        methods.setdefault(get_algorithm(name).paper, []).append(name)
    rows = []
    for paper, names in methods.items():
        files = dict.fromkeys(MODULES[name].partition(":")[0].replace(".", "/") + ".py" for name in names)
        rows.append(
            [
                ", ".join(f"`{name}`" for name in names),
                NOTHING if paper is None else f"[{paper}]({paper.address})",
                ", ".join(f"[{Path(file).name}]({_address(evidence, file, base)})" for file in files),
            ]
        )
    return table(["method", "paper", "file"], rows)


def _address(evidence: Evidence, file: str, base: Path) -> str:
    return Path(os.path.relpath(evidence.checkout / "src" / file, base)).as_posix()


def in_short(evidence: Evidence, base: Path) -> str:
    """The figure of SCORE beside the paper's, and what the data are."""
    picture = image("SCORE beside the paper's", evidence, "score.svg", base)
    full, chosen = in_full(evidence), evidence.with_choices()
    if not full:
        return f"Not run yet.\n\n{picture}"
    results = Path(os.path.relpath(evidence.checkout / "docs" / "results.md", base)).as_posix()
    said = f"The mean over [{len(full)} data sets]({results}) is {overall(full)[1]} with one setting for all"
    if all(result.dataset in chosen for result in full):
        said += f", {overall([chosen[r.dataset] for r in full])[1]} with settings chosen on {len(evidence.chosen)}"
    said += f"; the paper prints {printed_mean(full)}. None of the data are D4RL's own files:"
    said += " *replicas* are recorded with this project's policies, *re-collected* data with D4RL's."
    return "\n\n".join([textwrap.fill(said, 120, break_on_hyphens=False), picture])
