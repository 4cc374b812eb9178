"""Whose data these are: a benchmark's, whose methods' defaults were chosen for it, or somebody's own."""

from collections.abc import Mapping
from typing import Any

from score_rl.data.dataset import Dataset
from score_rl.envs.tasks import task_of

BENCHMARKS = ("replica", "d4rl", "ogbench", "minari")  # kinds of sources


def is_own(dataset: Dataset) -> bool:
    """Whether nobody has chosen settings for these data: neither a benchmark's source nor one of its tasks."""
    return recorded_source(dataset.source).get("kind") not in BENCHMARKS and task_of(dataset.environment or "") is None


def recorded_source(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where rows came from before they were kept in the folder of an experiment."""
    recipe = source.get("recipe")
    if isinstance(recipe, Mapping) and recipe.get("kind") == "saved" and isinstance(recipe.get("source"), Mapping):
        return recorded_source(recipe["source"])
    return source
