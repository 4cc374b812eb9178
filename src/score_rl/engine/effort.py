"""How much arithmetic a traced program is: counted, so that a fleet is cut in the same way wherever it is trained."""

import math
from typing import Any

from jax.extend.core import jaxprs_in_params

MOST_OPERATIONS = 2e11  # of one call on a CPU: half a second to some seconds
NUMBER = 50  # multiplications cost a CPU as much as one number computed outside of products: memory, not arithmetic


def operations(jaxpr: Any) -> float:
    """Of products two for each term, of everything else `NUMBER` for each number; loops of unknown length once."""
    total = 0.0
    for equation in jaxpr.eqns:
        inner = list(jaxprs_in_params(equation.params))
        if equation.primitive.name == "dot_general":
            (summed, _), _ = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            total += 2 * equation.outvars[0].aval.size * math.prod(shape[axis] for axis in summed)
        elif not inner:
            total += NUMBER * sum(variable.aval.size for variable in equation.outvars)
        repeated = equation.params["length"] if equation.primitive.name == "scan" else 1
        total += repeated * sum(map(operations, inner))
    return total
