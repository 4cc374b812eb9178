"""Figures hold the numbers they were given, leave nothing behind and say the same every time."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

from score_rl.report import curve_figures, drawing, figure_style, map_figures, score_figures
from score_rl.report.curve_figures import Panel, Series
from score_rl.report.figure_style import COLOURS
from score_rl.report.inline_svg import inline_svg
from score_rl.report.map_figures import PointMap
from score_rl.report.results import Curve
from score_rl.report.statistics import Estimate, aggregates, mean_curve, profiles

NASTY = """<script>alert(1)</script>&"'$x_$"""


def curves(number: int = 3) -> list[Curve]:
    rng = np.random.default_rng(0)
    return [Curve(np.arange(1, 6) * 1000, rng.normal(50, 5, 5)) for _ in range(number)]


def panel(label: str = "SCORE", title: str = "hopper") -> Panel:
    mine = curves()
    return Panel(title, "score", [Series(label, mean_curve(mine), mine, curves(1))], {"paper": 99.6})


def matrices() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"SCORE": rng.normal(70, 10, (5, 3)), NASTY: rng.normal(60, 10, (5, 3))}


def drawings() -> dict[str, Any]:
    found = aggregates(matrices(), repetitions=20)
    one = Estimate(3.0, np.nan, np.nan)
    rng = np.random.default_rng(0)
    chart = PointMap(NASTY, rng.normal(size=(60, 2)), rng.random(60), rng.random(60) > 0.5)
    return {
        "curves": curve_figures.learning_curves([panel(), panel(NASTY, NASTY), panel()]),
        "bars": score_figures.score_bars({"SCORE": {"a": one, NASTY: Estimate(1, 0, 2)}, NASTY: {"a": one}},
                                   {"SCORE": {"a": 5.0}}),
        "aggregates": score_figures.aggregate_intervals(found),
        "profiles": score_figures.performance_profiles(profiles(matrices(), repetitions=20)),
        "maps": map_figures.contour_maps([chart], "u", "data", NASTY),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(drawings()))
def test_files_are_the_same_every_time_and_no_setting_leaks(tmp_path: Path, name: str) -> None:
    before = dict(matplotlib.rcParams)
    first = drawing.save_figure(drawings()[name], tmp_path / "one", name)
    second = drawing.save_figure(drawings()[name], tmp_path / "two", name)
    assert [path.suffix for path in first] == [".svg", ".pdf"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
        assert len(one.read_bytes()) > 1000
    assert dict(matplotlib.rcParams) == before
    ElementTree.parse(first[0])


@pytest.mark.parametrize("name", list(drawings()))
def test_in_a_page_names_are_text_and_ink_is_the_pages(name: str) -> None:
    svg = inline_svg(drawings()[name], f"fig-{name}", NASTY)
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == NASTY
    assert "<script" not in svg
    assert "currentColor" in svg
    assert figure_style.INK.lower() not in svg.lower()
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert all(found.startswith(f"fig-{name}-") for found in ids)
    for used in re.findall(r'(?:url\(#|href="#)([^")]+)', svg):
        assert used in ids
    assert not re.findall(r'(?:href|src)="(?!#)', svg)


def test_a_name_is_drawn_as_it_is_written() -> None:
    svg = inline_svg(curve_figures.learning_curves([panel(NASTY)]), "a", "t")
    texts = [
        "".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")
    ]
    assert NASTY in texts


def test_curves_show_the_mean_the_seeds_and_what_broke() -> None:
    figure = curve_figures.learning_curves([panel()])
    (axis,) = [axis for axis in figure.axes if axis.get_visible()]
    lines = axis.get_lines()
    (mean,) = [line for line in lines if line.get_label() == "SCORE"]
    np.testing.assert_allclose(mean.get_ydata(), mean_curve(curves()).mean)
    np.testing.assert_allclose(mean.get_xdata(), [1, 2, 3, 4, 5])
    assert axis.get_xlabel() == "thousand updates"
    assert [line.get_marker() for line in lines].count("x") == 1
    assert any(np.allclose(line.get_ydata(), 99.6) for line in lines)


def test_a_single_seed_draws_no_band() -> None:
    (one,) = curves(1)
    figure = curve_figures.learning_curves([Panel("t", "q", [Series("s", mean_curve([one]), [one])])])
    (band,) = figure.axes[0].collections
    assert not band.get_paths() or all(len(path.vertices) == 0 for path in band.get_paths())


def test_colours_stay_with_their_methods() -> None:
    chosen = figure_style.line_styles([f"m{place}" for place in range(20)])
    assert len(set(chosen.values())) == 20
    one = curve_figures.learning_curves([panel("b")], names=["a", "b"])
    (line,) = [line for line in one.axes[0].get_lines() if line.get_label() == "b"]
    assert line.get_color() == figure_style.line_styles(["a", "b"])["b"][0]


def test_values_that_explode_do_not_flatten_the_others() -> None:
    steps = np.array([0, 1000])

    def series(label: str, last: float) -> Series:
        curve = Curve(steps, np.array([1.0, last]))
        return Series(label, mean_curve([curve, curve]), [curve, curve])

    def scale(*last: float) -> str:
        panel = Panel("data", "Q", [series(str(value), value) for value in last])
        return curve_figures.learning_curves([panel]).axes[0].get_yscale()

    assert scale(30, 40, -6e5) == "symlog"
    assert scale(30, 40, -60) == "linear"
    assert scale(2e5, 3e5, 4e5) == "linear"


def texts(figure: Any) -> list[str]:
    svg = ElementTree.fromstring(inline_svg(figure, "a", "t"))
    return ["".join(node.itertext()).strip() for node in svg.iter() if node.tag.endswith("text")]


def test_more_methods_than_colours_are_named_at_their_dots() -> None:
    one = Estimate(1.0, 0.0, 2.0)
    few = {f"method {place}": {"a": one, "b": one} for place in range(len(COLOURS))}
    assert texts(score_figures.score_bars(few)).count("method 3") == 1, "a legend"
    many = few | {"one more": {"a": one}}
    assert texts(score_figures.score_bars(many)).count("method 3") == 2, "on each data set"


def test_uneven_panels_are_recognised() -> None:
    def series(height: float) -> Series:
        curve = Curve(np.array([1, 2]), np.array([0.1, height]))
        return curve_figures.Series(str(height), mean_curve([curve]), [curve])

    assert curve_figures.uneven(curve_figures.Panel("t", "u", [series(0.1), series(0.2), series(300.0)]))
    assert not curve_figures.uneven(curve_figures.Panel("t", "u", [series(0.1), series(0.2), series(0.3)]))
    assert not curve_figures.uneven(curve_figures.Panel("t", "u", [series(300.0)]))
