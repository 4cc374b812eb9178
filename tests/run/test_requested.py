"""Which algorithm gets which settings, and what cannot be asked for together."""

import re
from typing import Any

import pytest

from score_rl.engine.compilation import BFLOAT16_UNITS
from score_rl.errors import InputError
from score_rl.run.expansion import common_cycle, expand_runs
from score_rl.run.requested import not_for_all, requested_algorithms
from score_rl.store.request import AlgorithmRequest, ExperimentSpec, default_eval_every, default_log_every
from tests.run.conftest import recording


def test_a_setting_goes_to_all_that_have_it_or_to_the_one_it_names() -> None:
    config = {"hidden": (8, 8), "critics": [2, 3], "iql.temperature": [1.0, 3.0], "bc.batch_size": 32}
    asked = requested_algorithms(["score", "iql", "bc"], config, None, "float32")
    assert asked == (
        AlgorithmRequest("score", {"hidden": ((8, 8),), "critics": (2, 3)}),
        AlgorithmRequest("iql", {"hidden": ((8, 8),), "temperature": (1.0, 3.0)}),
        AlgorithmRequest("bc", {"hidden": ((8, 8),), "batch_size": (32,)}),
    )
    assert {name: [a.name for a in having] for name, having in not_for_all(asked, config).items()} == {
        "critics": ["score"]
    }


def test_a_request_of_its_own_goes_over_what_all_get() -> None:
    own = AlgorithmRequest("iql", {"hidden": ((4, 4),)}, ({}, {"expectile": 0.9}))
    variants = [{}, {"beta": 0.0}, {"discount": 0.9}]
    score, iql, bc = requested_algorithms(["score", own, "bc"], {"hidden": (8, 8)}, variants, "float32")
    assert (iql.settings, iql.variants) == ({"hidden": ((4, 4),)}, ({}, {"expectile": 0.9}))
    assert score.variants == tuple(variants)
    assert bc.variants == ({},), "BC has neither a beta nor a discount"


def test_each_algorithm_has_its_own_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("score_rl.run.precision.bfloat16_units", lambda: BFLOAT16_UNITS[0])
    asked = requested_algorithms(["score", "rebrac"], {}, None, "auto")
    assert [request.precision for request in asked] == ["bfloat16", "float32"]


@pytest.mark.parametrize(
    ("asked", "config", "variants", "says"),
    [
        (["score", "iql"], {"expectil": 0.7}, None, "setting of score or iql 'expectil': did you mean 'expectile'"),
        (["score", "iql"], {"bc.hidden": (8, 8)}, None, "`config.bc.hidden` is for bc, which is not trained here"),
        (["score", "mopo"], {"penalty": 1.0}, None, "is another thing in each of SCORE and MOPO; say whose it is"),
        (["score", "iql"], {}, [{"betta": 0.1}], "unknown setting of score or iql 'betta'"),
        (["score", "iql"], {}, [{"beta": 0.1, "expectile": 0.9}], "no algorithm has all settings of the variant"),
        (["score", "morel"], {}, None, "MOReL beside others, but its `steps` count iterations that stand for 1,000"),
        ([], {}, None, "`algorithm` is empty"),
        (["score", "iql"], {"beta": []}, None, "`config.beta` is an empty list"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(
    asked: list[str], config: dict[str, Any], variants: list[dict[str, Any]] | None, says: str
) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        requested_algorithms(asked, config, variants, "float32")


def test_methods_that_count_alike_train_together() -> None:
    assert len(requested_algorithms(["morel"], {}, None, "float32")) == 1


def test_runs_of_several_algorithms_say_so_and_their_cycles_fit() -> None:
    asked = requested_algorithms(["score", "bc", "td3-bc"], {"td3-bc.actor_delay": 3}, None, "float32")
    turns = common_cycle(asked)
    assert turns == 6  # 2, 1 and 3
    every = default_eval_every(6_000, None, turns)
    spec = ExperimentSpec(asked, ("noise",), (0, 1), 6_000, every, 1, default_log_every(6_000, every, turns))
    spec.check(turns)
    assert [run.id for run in expand_runs(spec, [recording()])] == [
        f"noise_{name}_seed={seed}" for name in ("score", "bc", "td3-bc") for seed in (0, 1)
    ]


def test_the_default_number_of_updates_fits_every_pair_of_methods() -> None:
    """Nobody who compares two methods by their defaults may be told about their cycles."""
    for names in (["score", "iql", "bc"], ["score", "td3-bc", "rebrac", "bear", "uwac", "cql", "mopo", "pbrl"]):
        turns = common_cycle(requested_algorithms(names, {}, None, "float32"))
        every = default_eval_every(20_000, None, turns)
        assert every <= 5_000
        assert default_log_every(20_000, every, turns) <= every
