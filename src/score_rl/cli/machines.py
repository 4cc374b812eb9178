"""`--on` and `--task`: where a command trains."""

from collections.abc import Sequence
from typing import Any

from score_rl.errors import InputError


def machines_of(on: str | None, task: Sequence[str], quiet: bool) -> Any:
    """Where to train; None is here."""
    if on is None:
        if task:
            raise InputError("--task is what a task asks of a cluster; say which by --on, such as --on ray.")
        return None
    from score_rl.cluster.machines import cluster

    return cluster(on, *task, quiet=quiet)
