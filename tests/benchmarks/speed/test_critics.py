"""The comparison of kernels, small and in Pallas's interpreter: every way is run and stored."""

import json

import jax
import pytest

import score_rl.engine.program as fleet_program
from benchmarks.speed import critics
from score_rl.nets.kernels import passes
from score_rl.nets.kernels.layers import tiles_for
from score_rl.nets.kernels.streamed import Work
from score_rl.nets.precision import Arithmetic


def test_ways_take_turns_and_are_stored(tmp_path, capsys):
    ways = ("layers:units=64", "streamed:stored=True,sums=64/4/2/8")
    asked = critics.Arguments(
        ways=ways, shapes=("2/2/70",), modes=("grad", "input"), hidden=(64, 64, 64), rounds=2, calls=1,
        out=tmp_path / "critics.json",
    )  # fmt: skip
    critics.main(asked)
    stored = json.loads(asked.out.read_text())["critics"]
    assert set(stored) == {"2/2/70 grad", "2/2/70 input"}
    for figures in stored.values():
        assert all(len(figures[way]["rounds"]) == 2 and figures[way]["microseconds"] > 0 for way in ways)
        assert all(0 < figures[way]["distance"] < 0.1 for way in ways)  # what rounding to bfloat16 costs
        assert figures[ways[0]]["ratio"] == 1
    assert "a call" in capsys.readouterr().out


def test_a_way_is_a_choice_of_arithmetic():
    usual = critics.chosen("layers:rows=64", 9)
    assert usual.streamed is None
    assert usual.layers is not None
    assert usual.layers.rows == 64
    streamed = critics.chosen("streamed:down=128/8/1/132,down_units=64", 9).streamed
    assert streamed is not None
    assert (streamed.runs, streamed.down, streamed.down_units) == (9, Work(128, 8, 1, 132), 64)
    shape = critics.chosen("passes:values=64/4/264", 2).passes
    assert shape is not None
    assert (shape.runs, shape.values) == (2, passes.Work(64, 4, 264))
    assert critics.chosen("compiler", 2).passes is None
    with pytest.raises(SystemExit, match="a way is layers, streamed, passes or compiler"):
        critics.chosen("plain", 9)


def test_fleets_take_the_way_and_then_the_usual_again(monkeypatch):
    usual = Arithmetic("bfloat16", layers=tiles_for(3), multiple=16)
    monkeypatch.setattr(fleet_program, "arithmetic_for", lambda precision, device, runs: usual)
    with critics.fleets_with("streamed"):
        inside = fleet_program.arithmetic_for("bfloat16", jax.devices()[0], 3)
    assert inside.streamed is not None
    assert inside.streamed.runs == 3
    assert inside.multiple == 16
    with critics.fleets_with("passes"):
        inside = fleet_program.arithmetic_for("bfloat16", jax.devices()[0], 3)
    assert inside.passes is not None
    assert inside.layers is usual.layers
    assert fleet_program.arithmetic_for("bfloat16", jax.devices()[0], 3) is usual
