"""Training in bfloat16, as an experiment asks for it."""

from types import SimpleNamespace

import numpy as np
import pytest

import score_rl
from score_rl.algorithms.registry import algorithm_names, get_algorithm
from score_rl.engine.compilation import BFLOAT16_UNITS, bfloat16_units, kernel_memory
from score_rl.engine.program import arithmetic_for
from score_rl.errors import InputError
from score_rl.nets.kernels.padded import FORMS
from score_rl.run.launch import choose_precision

SMALL = {"hidden": (32, 32), "batch_size": 16, "critics": 2}


def train(out, **options):
    return score_rl.train(
        "replica:hopper-medium", transitions=2_000, steps=40, eval_every=40, log_every=20, eval_episodes=1, out=out,
        config=SMALL, tensorboard=False, quiet=True, **options,
    )  # fmt: skip


def test_bfloat16_is_close_to_float32_and_not_the_same(tmp_path):
    low, plain = train(tmp_path / "low", precision="bfloat16"), train(tmp_path / "plain")
    assert (low.spec.precision, plain.spec.precision) == ("bfloat16", "float32")
    values = [e.run.metrics.last("train/critic_loss") for e in (low, plain)]
    assert values[0] != values[1]
    np.testing.assert_allclose(*values, rtol=0.05)


@pytest.mark.parametrize("units", BFLOAT16_UNITS)
def test_on_a_cpu_the_choice_is_float32_unless_it_multiplies_bfloat16(units, monkeypatch):
    assert choose_precision(get_algorithm("score"), "auto") == "float32"
    monkeypatch.setattr("score_rl.run.launch.bfloat16_units", lambda: units)
    chosen = {name: choose_precision(get_algorithm(name), "auto") for name in ("score", "cql", "morel", "rebrac")}
    assert chosen == {"score": "bfloat16", "cql": "bfloat16", "morel": "float32", "rebrac": "float32"}
    assert choose_precision(get_algorithm("score"), "float32") == "float32"


def test_where_it_was_measured_to_be_faster_is_known_by_the_names_of_such_cpus():
    chosen = {name: get_algorithm(name).bfloat16_on for name in algorithm_names()}
    assert all(set(kinds) <= set(BFLOAT16_UNITS) == set(FORMS) for kinds in chosen.values()), chosen


def made_up(platform: str, capability: str | None = None):
    return SimpleNamespace(platform=platform, **({} if capability is None else {"compute_capability": capability}))


def test_each_device_has_its_way():
    assert arithmetic_for("float32", made_up("cpu"), 1).padded is None
    units = bfloat16_units()
    assert arithmetic_for("bfloat16", made_up("cpu"), 1).padded == (FORMS[units] if units else None)
    assert arithmetic_for("float32", made_up("gpu", "9.0"), 1).kernels is None
    for capability, memory in (("8.6", 99), ("8.0", 163), ("9.0", 227), ("10.0", 227)):
        chosen = arithmetic_for("bfloat16", made_up("gpu", capability), 1)
        assert chosen.padded is None
        assert chosen.kernels is not None
        assert chosen.kernels.memory == memory
        assert chosen.layers is not None
        assert (chosen.streamed is not None) == (capability == "9.0")
    for other in (made_up("gpu", "7.5"), made_up("gpu", "gfx942")):
        without = arithmetic_for("bfloat16", other, 1)
        assert (without.precision, without.kernels, without.layers, without.streamed) == ("bfloat16", None, None, None)


@pytest.mark.parametrize(
    ("platform", "capability", "memory"),
    [
        ("gpu", "9.0", 227),
        ("gpu", "8.0", 163),
        ("gpu", "8.9", 99),
        ("gpu", "13.7", 99),  # unheard of
        ("gpu", "7.5", 0),
        ("gpu", "gfx942", 0),
        ("gpu", None, 0),
        ("cpu", None, 0),
    ],
)
def test_what_gpus_have_for_kernels_and_so_for_bfloat16(platform, capability, memory, monkeypatch):
    device = made_up(platform, capability)
    assert kernel_memory(device) == memory
    monkeypatch.setattr("jax.local_devices", lambda: [device])
    monkeypatch.setattr("score_rl.run.launch.bfloat16_units", lambda: None)
    assert choose_precision(get_algorithm("score"), "auto") == ("bfloat16" if memory else "float32")
    assert choose_precision(get_algorithm("morel"), "auto") == "float32"


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(InputError, match="MOReL cannot be trained in bfloat16"):
        score_rl.train("replica:hopper-medium", algorithm="morel", precision="bfloat16", out=tmp_path / "x")
    with pytest.raises(InputError, match="`precision` is 'float16'"):
        train(tmp_path / "y", precision="float16")
