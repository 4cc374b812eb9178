"""What Python users meet first: names that can be found, and parameters that are all explained."""

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import score_rl
from score_rl.run.experiment import TrainedRun
from score_rl.store.metrics import MetricsTable

INHERITED = ("count", "index")  # of Sequence, as everywhere in Python


def public() -> Iterator[tuple[str, Any]]:
    for name in score_rl.__all__:
        thing = getattr(score_rl, name)
        if inspect.ismodule(thing):  # `judge`, whose package acts as the function of its name
            thing = import_module(f"{thing.__name__}.judging").judge
        if not inspect.isclass(thing):
            yield name, thing
    for kind in (score_rl.Dataset, score_rl.Experiment, TrainedRun, MetricsTable):
        for name, member in inspect.getmembers(kind):
            if not name.startswith("_") and name not in INHERITED:
                yield f"{kind.__name__}.{name}", member.fget if isinstance(member, property) else member


CALLABLE = {name: what for name, what in public() if callable(what)}


@pytest.mark.parametrize(("name", "what"), CALLABLE.items(), ids=CALLABLE)
def test_every_parameter_is_explained(name: str, what: Callable[..., Any]) -> None:
    text = inspect.getdoc(what) or ""
    assert text, f"{name} says nothing"
    if " see `" in text or " as in `" in text:  # the same parameters are explained there
        return
    parameters = [each for each in inspect.signature(what).parameters if each != "self"]
    missing = [each for each in parameters if f"`{each}`" not in text and f"\n    {each}: " not in text]
    assert not missing, f"{name} does not explain {missing}"


def test_the_names_are_found() -> None:
    assert set(score_rl.__all__) < set(dir(score_rl))
    assert score_rl.__version__.count(".") == 2
    assert all(getattr(score_rl, name) is not None for name in score_rl.__all__)
