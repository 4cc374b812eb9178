"""Training in memory: the loop of `engine.train`, and the page that shows it."""

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import score_rl
from score_rl import engine
from score_rl.algorithms.registry import get_algorithm
from score_rl.errors import InputError
from tests.engine.made_up import SMALL, make_runs, recording, relative

PAGE = Path(__file__).parents[2] / "docs" / "engine.md"


def test_the_page_runs_when_pasted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both blocks, the second after the first; nothing is written."""
    monkeypatch.chdir(tmp_path)
    first, second = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(first, names)
    assert len(capsys.readouterr().out.strip().splitlines()) == 6
    assert list(names["results"][0].metrics["q"].shape) == [4]
    exec(second, names)
    lower = jax.tree.map(lambda leaf: np.asarray(leaf)[0], names["state"].actor)
    assert relative(lower, names["results"][0].state.actor) == 0, "the same loop, one step lower"
    assert list(tmp_path.iterdir()) == []


def test_results_are_of_their_runs_in_their_order() -> None:
    """Two shapes of data, so two fleets; settings of one shape."""
    data = [recording("one"), recording("wide", observation=7)]
    settings = [SMALL | {"beta": 0.1}, SMALL | {"beta": 0.5}]
    runs = engine.make_runs(get_algorithm("score"), data, seeds=(0, 1), settings=settings)
    results = engine.train(runs, updates=8, window=4)
    assert [result.run for result in results] == runs
    assert [result.run.config.beta for result in results] == [0.1] * 4 + [0.5] * 4
    assert [result.treatment.observation_mean.shape for result in results] == [(5,), (5,), (7,), (7,)] * 2
    alone = engine.train([runs[5]], updates=8, window=4)[0]
    assert relative(alone.state.actor, results[5].state.actor) < 1e-5
    np.testing.assert_allclose(alone.metrics["q"], results[5].metrics["q"], rtol=1e-5)
    assert results[5].metrics["q"].shape == (2,)
    actions = results[2].act(data[1].observations[:3])
    assert actions.shape == (3, 2)
    assert (abs(actions) <= 1).all()


def test_windows_are_means_over_their_updates() -> None:
    runs = make_runs([recording()])
    (whole,), (halves,) = engine.train(runs, updates=8), engine.train(runs, updates=8, window=4)
    assert relative(whole.state.actor, halves.state.actor) < 1e-5
    np.testing.assert_allclose(whole.metrics["q"], [halves.metrics["q"].mean()], rtol=1e-5)


def test_windows_that_do_not_divide_are_refused() -> None:
    runs = make_runs([recording()])
    for window in (3, 0):
        with pytest.raises(InputError, match=f"`window` is {window}; it must be 1 or more and a multiple of 2"):
            engine.train(runs, updates=8, window=window)
    with pytest.raises(InputError, match="`updates` is 8; it must be 1 or more and a multiple of `window`, 6"):
        engine.train(runs, updates=8, window=6)


MOPO: dict[str, Any] = {
    "hidden": (8, 8), "batch_size": 16, "rollouts": 16, "rollout_every": 10, "dynamics_hidden": (6, 6),
    "dynamics_decay": (1e-5, 1e-5, 1e-5), "models": 3, "elites": 2, "dynamics_epochs": 2, "held_out": 50,
}  # fmt: skip


@pytest.mark.parametrize(("name", "settings"), [("score", SMALL), pytest.param("mopo", MOPO, marks=pytest.mark.slow)])
def test_it_trains_what_an_experiment_trains(
    name: str, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit: the same calls, stages included, where windows are the same."""
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))  # no stage from another test
    data = "replica:hopper-medium"
    options: dict[str, Any] = {"transitions": 2_000}
    stored = score_rl.train(
        data, algorithm=name, config=settings, seeds=[0, 1], steps=20, log_every=10, eval_every=20, environment="none",
        precision="float32", out=tmp_path / "run", tensorboard=False, quiet=True, **options,
    )  # fmt: skip
    dataset = score_rl.load_dataset(data, **options)
    settings = vars(stored[0].config)  # what is preset for these data included
    runs = engine.make_runs(get_algorithm(name), [dataset], seeds=(0, 1), settings=[settings])
    for mine, theirs in zip(engine.train(runs, updates=20, window=10), stored, strict=True):
        assert relative(mine.state, theirs.state) == 0
        for metric, values in mine.metrics.items():
            np.testing.assert_array_equal(values, theirs.metrics.curve(f"train/{metric}")[1])
