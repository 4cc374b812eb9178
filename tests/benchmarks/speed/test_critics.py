"""The comparison of kernels, small and in Pallas's interpreter: every way is run and stored."""

import json
from pathlib import Path

import jax
import pytest

import score_rl.engine.program as fleet_program
from benchmarks.speed import critics
from score_rl.nets.kernels.fused import Fused
from score_rl.nets.kernels.launching import ProgramShape
from score_rl.nets.kernels.layers import LayerByLayer
from score_rl.nets.kernels.passes import DropoutPasses
from score_rl.nets.kernels.streamed import Streamed
from score_rl.nets.precision import Arithmetic

INTERPRET = jax.default_backend() != "gpu"


@pytest.mark.slow
def test_ways_take_turns_and_are_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ways = ("layers:units=64", "streamed:stored=True,sums=64/4/2/8")
    asked = critics.Arguments(
        ways=ways, shapes=("2/2/70",), modes=("grad", "input"), hidden=(64, 64, 64), rounds=2, calls=1,
        out=tmp_path / "critics.json",
    )  # fmt: skip
    critics.main(asked)
    stored = json.loads((tmp_path / "critics.json").read_text())["critics"]
    assert set(stored) == {"2/2/70 grad", "2/2/70 input"}
    for figures in stored.values():
        assert all(len(figures[way]["rounds"]) == 2 and figures[way]["microseconds"] > 0 for way in ways)
        assert all(0 < figures[way]["distance"] < 0.1 for way in ways)  # what rounding to bfloat16 costs
        assert figures[ways[0]]["ratio"] == 1
    assert "a call" in capsys.readouterr().out


def test_a_way_is_a_choice_of_arithmetic() -> None:
    layers = LayerByLayer.for_runs(9)._replace(interpret=INTERPRET)
    assert critics.chosen("layers:rows=64", 9).critics == (layers._replace(rows=64),)
    streamed = Streamed(9, 1, down=ProgramShape(128, 8, 1, 132), down_units=64, interpret=INTERPRET)
    assert critics.chosen("streamed:down=128/8/1/132,down_units=64", 9).critics == (streamed, layers)
    passes = DropoutPasses(2, values=ProgramShape(64, 4, 1, 264), interpret=INTERPRET)
    assert critics.chosen("passes:values=64/4/1/264", 2).passes == passes
    assert critics.chosen("compiler", 2).passes is None
    with pytest.raises(SystemExit, match="a way is layers, streamed, passes or compiler"):
        critics.chosen("plain", 9)


def test_fleets_take_the_way_and_then_the_usual_again(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Arithmetic("bfloat16", (Fused(3), LayerByLayer.for_runs(3)), multiple=16, kernel_runs=3)
    monkeypatch.setattr(fleet_program, "arithmetic_for", lambda precision, device, runs, units=None: usual)
    with critics.fleets_with("streamed"):
        inside = fleet_program.arithmetic_for("bfloat16", jax.devices()[0], 3)
    assert [type(form) for form in inside.critics] == [Fused, Streamed, LayerByLayer]
    assert (inside.multiple, inside.kernel_runs) == (16, 3)
    with critics.fleets_with("passes"):
        inside = fleet_program.arithmetic_for("bfloat16", jax.devices()[0], 3)
    assert inside.passes == critics.chosen("passes", 3).passes
    assert inside.critics is usual.critics
    assert fleet_program.arithmetic_for("bfloat16", jax.devices()[0], 3) is usual
