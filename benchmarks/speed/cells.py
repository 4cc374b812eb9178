"""Tables in Markdown, and how rates are written in them."""

import re


def table(headings: list[str], rows: list[list[str]]) -> str:
    numbers = [all(_is_number(row[column]) for row in rows) for column in range(len(headings))]
    rule = ["---:" if number and rows else "---" for number in numbers]
    return "\n".join("| " + " | ".join(line) + " |" for line in (headings, rule, *rows))


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[-\d,.]+( ?[×%]| s| min)?|-?", cell) is not None


def rate(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
