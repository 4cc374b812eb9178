"""A function as a list of NumPy's operations: what all formats of an exported policy are made of.

Values are numbered: 0 is the input, then come the constants, then the outputs of the steps in order. A size that
grows with the number of rows is written as a pair: [2, 1] stands for 2·rows + 1.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

Size = int | list[int]


class Step(NamedTuple):
    """One operation: its name as NumPy has it, the numbers of its inputs and of its output, and its options."""

    operation: str
    inputs: list[int]
    output: int
    options: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Program:
    """Operations on an input of (rows, width)."""

    constants: list[np.ndarray]
    steps: list[Step]
    outputs: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """All but the constants."""
        return {"constants": len(self.constants), "steps": [list(step) for step in self.steps], "outputs": self.outputs}

    def tidied(self) -> "Program":
        """The same function without what no output needs and with every constant once, numbered anew."""
        needed, kept = set(self.outputs.values()), []
        for step in reversed(self.steps):
            if step.output in needed:
                needed.update(step.inputs)
                kept.append(step)
        kept.reverse()
        first: dict[Any, int] = {}  # the number of each constant among the used ones, by content
        new, used = {0: 0}, []
        for number, constant in enumerate(self.constants):
            if number + 1 in needed:
                key = (constant.dtype.str, constant.shape, constant.tobytes())
                if key not in first:
                    used.append(number)
                    first[key] = len(used)
                new[number + 1] = first[key]
        new |= {step.output: len(used) + 1 + place for place, step in enumerate(kept)}
        return Program(
            constants=[self.constants[number] for number in used],
            steps=[step._replace(inputs=[new[i] for i in step.inputs], output=new[step.output]) for step in kept],
            outputs={name: new[value] for name, value in self.outputs.items()},
        )
