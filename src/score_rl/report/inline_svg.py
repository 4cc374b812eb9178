"""A figure as an element of a web page."""

import io
import re
from typing import Any
from xml.sax.saxutils import escape

from score_rl.report.drawing import GRID, require_matplotlib
from score_rl.report.figure_style import INK


def inline_svg(figure: Any, name: str, title: str) -> str:
    """The figure as an element of a web page: text stays text, ink takes the page's colour, ids begin with `name`."""
    text = io.StringIO()
    with require_matplotlib().rc_context({"svg.hashsalt": "score-rl", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'(url\(#|xlink:href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    svg = re.sub(INK, "currentColor", svg, flags=re.IGNORECASE)
    svg = re.sub(GRID, f"var(--line, {GRID})", svg, flags=re.IGNORECASE)
    width, height = (float(value) for value in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())  # type: ignore[union-attr]
    head = f'<svg role="img" aria-label="{_attribute(title)}" viewBox="0 0 {width:g} {height:g}" '
    # matplotlib names the old namespace of links, which HTML knows without being told.
    return (
        head + 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"' + svg[svg.index(">") :]
    )


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;", "'": "&#39;"})
