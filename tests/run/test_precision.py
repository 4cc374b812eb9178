"""Training in bfloat16, as an experiment asks for it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jax
import pytest

import score_rl
from score_rl.algorithms.registry import get_algorithm
from score_rl.engine.compilation import BFLOAT16_UNITS
from score_rl.errors import InputError
from score_rl.nets.kernels.choice import kernel_memory
from score_rl.run.experiment import Experiment
from score_rl.run.precision import choose_precision

SMALL = {"hidden": (32, 32), "batch_size": 16, "critics": 2}


def train(out: Path, **options: Any) -> Experiment:
    return score_rl.train(
        "replica:hopper-medium", transitions=2_000, steps=40, eval_every=40, log_every=20, eval_episodes=1, out=out,
        config=SMALL, tensorboard=False, quiet=True, **options,
    )  # fmt: skip


def test_bfloat16_is_close_to_float32_and_not_the_same(tmp_path: Path) -> None:
    low, plain = train(tmp_path / "low", precision="bfloat16"), train(tmp_path / "plain")
    assert (low.spec.of("score").precision, plain.spec.of("score").precision) == ("bfloat16", "float32")
    values = [e.run.metrics.last("train/critic_loss") for e in (low, plain)]
    assert values[0] != values[1]
    assert values[0] == pytest.approx(values[1], rel=0.05)


@pytest.mark.parametrize("units", BFLOAT16_UNITS)
def test_on_a_cpu_the_choice_is_float32_unless_it_multiplies_bfloat16(
    units: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choose_precision(get_algorithm("score"), "auto") == "float32"
    monkeypatch.setattr("score_rl.run.precision.bfloat16_units", lambda: units)
    chosen = {name: choose_precision(get_algorithm(name), "auto") for name in ("score", "cql", "morel", "rebrac")}
    assert chosen == {"score": "bfloat16", "cql": "bfloat16", "morel": "float32", "rebrac": "float32"}
    assert choose_precision(get_algorithm("score"), "float32") == "float32"


@pytest.mark.parametrize("capability", ["9.0", "7.5"])
def test_a_gpu_is_trained_in_bfloat16_where_it_has_kernels(capability: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimpleNamespace(platform="gpu", compute_capability=capability)
    monkeypatch.setattr("jax.local_devices", lambda: [device])
    monkeypatch.setattr("score_rl.run.precision.bfloat16_units", lambda: None)
    chosen = "bfloat16" if kernel_memory(cast("jax.Device", device)) else "float32"
    assert chosen == ("bfloat16" if capability == "9.0" else "float32")
    assert choose_precision(get_algorithm("score"), "auto") == chosen
    assert choose_precision(get_algorithm("morel"), "auto") == "float32"


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="MOReL cannot be trained in bfloat16"):
        score_rl.train("replica:hopper-medium", algorithm="morel", precision="bfloat16", out=tmp_path / "x")
    with pytest.raises(InputError, match="`precision` is 'float16'"):
        train(tmp_path / "y", precision="float16")
