"""Two versions of the code in turns: what is stored of it, and a small real comparison."""

import json
from pathlib import Path

import pytest

from benchmarks.speed import versions


def test_ratios_compare_turns_of_the_same_round() -> None:
    """A machine that is half as fast in the second round changes no ratio."""
    asked = versions.Arguments(before=Path("then"), called="then", fleets=("bc:1",))
    rates = [{"before": [100.0, 50.0], "now": [110.0, 55.0], "before again": [100.0, 45.0]}]
    about = {name: [{"precision": "float32", "bytes": 1}] for name in rates[0]}
    (fleet,) = versions.figures(asked, about, rates)["fleets"]
    assert fleet["times_by_round"] == pytest.approx([1.1, 1.1])
    assert fleet["times"] == pytest.approx(1.1)
    assert fleet["noise_by_round"] == pytest.approx([1.0, 0.9])
    assert fleet["run_steps_per_second"]["now"] == pytest.approx(82.5)


@pytest.mark.slow
def test_a_version_beside_itself(tmp_path: Path) -> None:
    out = tmp_path / "speed.json"
    versions.main(
        versions.Arguments(
            before=versions.ROOT, called="itself", fleets=("bc:1", "td3-bc:2"), rounds=3, seconds=0.2, out=out
        )
    )
    stored = json.loads(out.read_text())["versions"]
    assert [fleet["fleet"] for fleet in stored["fleets"]] == ["bc:1", "td3-bc:2"]
    for fleet in stored["fleets"]:
        assert len(fleet["times_by_round"]) == len(fleet["noise_by_round"]) == 3
        assert 0.1 < fleet["times"] < 10
        assert len(set(fleet["bytes"].values())) == 1


@pytest.mark.slow
def test_a_checkout_without_the_package_is_refused(tmp_path: Path) -> None:
    """An installed score_rl must not be timed in its place."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "timing.py").write_text("class Engine: ...\n")
    asked = versions.Arguments(before=tmp_path, called="nothing", fleets=("bc:1",))
    with (
        pytest.raises(SystemExit, match="the process of before ended"),
        versions.started("before", tmp_path, asked) as version,
    ):
        version.compiled(asked.fleets)
