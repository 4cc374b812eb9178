"""The studies of the theory, by name: what each computes, and which statement of the paper it runs.

    run_study("rate", Path("out"))        computes, writes figures (SVG, PDF) and numbers.json, returns a table

Nothing heavy is imported until a study runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from score_rl.disk import write_file
from score_rl.errors import InputError, refuse_unwritable, unknown_name
from score_rl.paper.theory.studies.findings import Findings, Study, StudyResult


def _deferred(name: str) -> Callable[[int, bool], Findings]:
    """The study's function, which has its name and stands in the module of its name; imported when it is called."""
    name = name.replace("-", "_")

    def run(seed: int, quick: bool) -> Findings:
        found: Findings = getattr(import_module(f"{__name__}.{name}"), name)(seed, quick)
        return found

    return run


def _study(name: str, summary: str, paper: str) -> Study:
    return Study(name, summary, paper, _deferred(name))


STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        _study(
            "green-lights",
            "Luck taken for skill: greedy against pessimistic value iteration on the lucky green lights",
            "section 3.1; equations suboptimality and bellman",
        ),
        _study(
            "decomposition",
            "False correlation, intrinsic uncertainty and optimisation error, term by term",
            "equation suboptimality",
        ),
        _study(
            "coverage",
            "How often the event of three ξ-uncertainty quantifiers holds, and what follows on it",
            "Definition ξ-Uncertainty Quantifier; equation suboptimality_bound",
        ),
        _study(
            "linear",
            "The ridge form of the quantifier on linear MDPs",
            "Definition ξ-Uncertainty Quantifier, for linear MDPs",
        ),
        _study(
            "equivalence",
            "OPO's stationary point against the lemma's equation, and the natural gradient step it stands for",
            "Lemma dpg=ppo (Equivalence between Theo-SCORE and OPO)",
        ),
        _study(
            "improvement",
            "The policy improvement lemma along OPO's trajectories",
            "Lemma pi (Policy Improvement); Lemma reg-decomp",
        ),
        _study(
            "rate",
            "SubOptGap(K) against K with the theorem's λ_k, η_k and ζ, and the bound",
            "Theorem main",
        ),
        _study(
            "theo-score",
            "Theo-SCORE over K beside OPO, with the theorem's λ_k and η_k",
            "section 3.3, Theo-SCORE; Theorem main",
        ),
        _study(
            "irremovable",
            "What no algorithm can remove: term (ii) on one problem, and the worst case of a class of problems",
            "section 2.2: term (ii) is impossible to eliminate; section 3.3: ε_Pess is irremovable",
        ),
        _study(
            "bridge",
            "A critic ensemble's standard deviation against the exact epistemic error, with and without cloning",
            "section 3.2: the regulariser makes uncertainty meaningful",
        ),
        _study(
            "corrections",
            "Where the paper's statements and proofs disagree, each decided by a number",
            "sections 2 and 3.3 and the appendix",
        ),
    )
}


def _plain(value: Any) -> Any:
    """Numbers as JSON can hold them: arrays as lists, NaN and infinities as null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def run_study(name: str, out: Path, *, seed: int = 0, quick: bool = False) -> StudyResult:
    """Run a study, write its figures and `numbers.json` into `out`, and return what to print."""
    if name not in STUDIES:
        raise unknown_name("theory study", name, STUDIES)
    if seed < 0:
        raise InputError(f"the seed is {seed}, expected a whole number ≥ 0.")
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file, expected a folder to write the figures into.")
    refuse_unwritable(out)
    from score_rl.report.drawing import require_matplotlib, save_figure

    require_matplotlib("paper")  # before the computation, not after it
    findings = STUDIES[name].run(seed, quick)
    out.mkdir(parents=True, exist_ok=True)
    files = [file for key, figure in findings.figures.items() for file in save_figure(figure, out, key)]
    numbers = {
        "study": name,
        "paper": STUDIES[name].paper,
        "seed": seed,
        "quick": quick,
        "verdicts": findings.verdicts,
        **findings.numbers,
    }
    path = out / "numbers.json"
    write_file(path, json.dumps(_plain(numbers), indent=1, ensure_ascii=False) + "\n")
    return StudyResult(
        name, findings.title, findings.columns, findings.rows, findings.verdicts, [*files, path], numbers
    )
