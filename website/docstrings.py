"""Docstrings as the site shows them: examples with `>>>` become blocks of code."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^(>>> .*\n?(?:(?:\.\.\.|>>>).*\n?)*)", re.MULTILINE)


class FenceExamples(griffe.Extension):
    """Put `>>>` lines, which Markdown takes for quotations, between fences."""

    def on_instance(self, *, obj: griffe.Object, **about: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(
                lambda found: f"```pycon\n{found[1].rstrip()}\n```\n", obj.docstring.value
            )
