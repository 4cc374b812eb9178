"""What is asked for, and what is refused."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.errors import InputError
from score_rl.run.expansion import expand_runs
from score_rl.store.fields import Fields
from score_rl.store.request import AlgorithmRequest, ExperimentSpec, default_eval_every, default_log_every
from tests.run.conftest import recording

SCORE = AlgorithmRequest("score", {"beta": (0.1, 0.2), "hidden": ((8, 8),)})
SPEC = ExperimentSpec(
    algorithms=(SCORE,), datasets=("noise",), seeds=(0, 1), steps=100, eval_every=50, eval_episodes=2, log_every=10,
)  # fmt: skip


def asking(spec: ExperimentSpec, **change: Any) -> ExperimentSpec:
    """The same of another request for its first algorithm."""
    return dataclasses.replace(spec, algorithms=(dataclasses.replace(spec.algorithms[0], **change),))


def stored(values: dict[str, Any]) -> Fields:
    """As it is read from a file."""
    return Fields(json.loads(json.dumps(values)), Path("experiment.json"))


def test_a_spec_survives_its_json() -> None:
    assert ExperimentSpec.from_json(stored(SPEC.to_json())) == SPEC


def test_runs_are_the_product_and_have_their_own_names() -> None:
    runs = expand_runs(SPEC, [recording()])
    assert [run.id for run in runs] == [
        "noise_beta=0.1_seed=0", "noise_beta=0.1_seed=1", "noise_beta=0.2_seed=0", "noise_beta=0.2_seed=1"
    ]  # fmt: skip
    assert {(run.config.beta, run.seed) for run in runs} == {(0.1, 0), (0.1, 1), (0.2, 0), (0.2, 1)}
    assert all(run.config.hidden == (8, 8) for run in runs)


def test_variants_go_over_the_product_and_name_their_runs() -> None:
    spec = asking(
        dataclasses.replace(SPEC, seeds=(0,)),
        settings={"alpha": (1.0, 2.0)},
        variants=({}, {"beta": 0.0}, {"alpha": 3.0, "hidden": (4, 4)}),
    )
    assert ExperimentSpec.from_json(stored(spec.to_json())) == spec
    spec = asking(spec, settings={"critics": (3,)})
    runs = expand_runs(spec, [recording()])
    assert [run.id for run in runs] == ["noise_seed=0", "noise_beta=0.0_seed=0", "noise_alpha=3.0_hidden=4x4_seed=0"]
    assert [(r.config.beta, r.config.alpha, r.config.critics) for r in runs] == [
        (0.2, 2.5, 3),
        (0.0, 2.5, 3),
        (0.2, 3.0, 3),
    ]
    assert runs[2].config.hidden == (4, 4)


def test_what_was_stored_before_there_were_variants_still_opens() -> None:
    values = SPEC.to_json()
    del values["algorithms"][0]["variants"]
    del values["hold_out"]
    assert ExperimentSpec.from_json(stored(values)) == SPEC


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "`steps` is 0"),
        ({"checkpoint_minutes": -1.0}, "`checkpoint_minutes` is -1.0; it must be 0 or more"),
        ({"checkpoint_minutes": float("nan")}, "`checkpoint_minutes` is nan"),
        ({"steps": 105}, "multiple of `log_every`, 10"),
        ({"log_every": 5, "eval_every": 5}, "multiple of the algorithm's cycle"),
        ({"seeds": (0, 0)}, "twice"),
        ({"seeds": (-1,)}, "0 or more"),
        ({"seeds": ()}, "at least one"),
        ({"hold_out": 1.5}, "`hold_out` is 1.5; it must be a share"),
        ({"physics": "moon"}, "d4rl or stock"),
        ({"algorithms": (SCORE, SCORE)}, "`algorithm` names a value twice: score, score"),
        ({"algorithms": ()}, "at least one algorithm"),
        ({"algorithms": (AlgorithmRequest("score", {"beta": (0.1, 0.1)}),)}, "beta names a value twice"),
        ({"algorithms": (AlgorithmRequest("bc"), AlgorithmRequest("score", {}, ()))}, "`variants` is empty"),
        ({"algorithms": (AlgorithmRequest("score", {}, ({"beta": 0.1}, {"beta": 0.1})),)}, "two variants are the same"),
    ],
)
def test_senseless_requests_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        dataclasses.replace(SPEC, **change).check(turns=2)


@given(st.integers(1, 20_000), st.integers(1, 40), st.sampled_from([None, 1, 10, 300, 7_000]))
def test_evaluations_that_nobody_asked_for_fit_what_was_asked(cycles: int, turns: int, log_every: int | None) -> None:
    """A complaint about them would be about an option that was not given."""
    steps = cycles * math.lcm(turns, log_every or 1)
    chosen = default_eval_every(steps, log_every, turns)
    assert 1 <= chosen <= steps
    dataclasses.replace(
        SPEC, steps=steps, eval_every=chosen,
        log_every=math.lcm(log_every, turns) if log_every else default_log_every(steps, chosen, turns),
    ).check(turns)  # fmt: skip
    if turns in (1, 2) and log_every is None:
        assert chosen == min(5_000, steps)


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 3))
def test_the_default_window_fits_everything_or_is_refused(steps: int, eval_every: int, turns: int) -> None:
    try:
        window = default_log_every(steps * 50, eval_every * 10, turns)
    except InputError:
        assert not [n for n in range(turns, eval_every * 10 + 1, turns)
                    if (eval_every * 10) % n == 0 and (steps * 50) % n == 0]  # fmt: skip
        return
    assert (steps * 50) % window == 0
    assert (eval_every * 10) % window == 0
    assert window % turns == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"betta": 0.2}, "did you mean 'beta'"),
        ({"beta": "high"}, "a value of type float"),
        ({"critics": 1}, "critics is 1; it must be 2 or more"),
        ({"critics": 2.5}, "a value of type int"),
        ({"bc_norm": "max"}, "'mean' or 'sum'"),
        ({"hidden": "256,wide"}, "commas"),
        ({"hidden": (0,)}, "1 or more"),
        ({"bootstrap_keep": 0.0}, r"above 0 and at most 1"),
        ({"spectral_norm": True, "hidden": (8,)}, "middle layer"),
        ({"discount": 1.5}, "between 0 and 1"),
        ({"beta": -1}, "beta is -1.0; it must be 0 or more"),
        ({"critic_learning_rate": -3e-4}, "critic_learning_rate is -0.0003; it must be 0 or more"),
        ({"tau": 1.5}, "tau is 1.5; it must be above 0 and at most 1"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make_config(get_algorithm("score"), settings)
    assert "\n" not in str(caught.value)
