"""The figures printed in the paper's table: normalised scores on D4RL v2, mean ± std over five seeds.

They are the paper's, measured on D4RL's own files after 1 M updates, and are shown under that name only: a replica
or a shorter run stands beside them for orientation. The overall row is the one that is printed: the mean of the
fifteen means ± the mean of the fifteen deviations, but for BCQ (printed 62.6, its cells average 62.2), PBRL (76.6 ±
2.4, its cells average 76.7 ± 3.0) and two deviations (MOPO's and that of PBRL without prior).
"""

import csv
import functools
from importlib import resources
from typing import NamedTuple

OVERALL = "overall"
SEEDS = 5  # behind every cell
PAPER_STEPS = 1_000_000  # updates of each
D4RL, RECOLLECTED, UNIFORM, REPLICA, FILE = "D4RL", "re-collected", "uniform random", "replica", "file"
_TITLES = {"pbrl": "PBRL w/o prior", "pbrl-prior": "PBRL"}  # the paper's PBRL has priors; others are called alike


class Printed(NamedTuple):
    """One cell of the paper's table."""

    mean: float
    std: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.std:.1f}"


@functools.cache
def paper_table() -> dict[tuple[str, str], Printed]:
    """(data set without source and version, the paper's name of the method) -> what is printed."""
    text = resources.files("score_rl.report").joinpath("published.csv").read_text()
    return {
        (row["dataset"].removesuffix("-v2"), row["algorithm"]): Printed(float(row["mean"]), float(row["std"]))
        for row in csv.DictReader(text.splitlines())
    }


def paper_datasets() -> list[str]:
    """The fifteen, in the paper's order."""
    return list(dict.fromkeys(dataset for dataset, _ in paper_table() if dataset != OVERALL))


def paper_methods() -> list[str]:
    return list(dict.fromkeys(method for _, method in paper_table()))


def paper_dataset(name: str) -> str | None:
    """Which of the paper's data sets a name such as replica:hopper-medium stands for; None if it is none of them."""
    plain = name.rpartition(":")[2].replace("_", "-").removesuffix("-recollected").removesuffix("-v2")
    return plain if plain in paper_datasets() else None


def data_kind(name: str) -> str:
    """What a data set of this name is: D4RL's own file, collected again with D4RL's policy, and so on."""
    if name.startswith("d4rl:"):
        return D4RL
    if name.startswith("replica:"):
        return UNIFORM if name.endswith("-random") else REPLICA
    return RECOLLECTED if name.endswith("-recollected") else FILE


def paper_method(algorithm: str) -> str | None:
    """What the paper calls an algorithm of this package; None if it does not compare with it."""
    from score_rl.report.results import algorithm_title

    title = _TITLES.get(algorithm) or algorithm_title(algorithm)
    return title if title in paper_methods() else None


def printed(algorithm: str, dataset: str) -> Printed | None:
    """The paper's cell for this algorithm on the data set that this name stands for."""
    plain, method = paper_dataset(dataset), paper_method(algorithm)
    return None if plain is None or method is None else paper_table().get((plain, method))
