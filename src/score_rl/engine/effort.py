"""How much arithmetic a traced program is. It is counted, not timed: a window is cut the same way on every machine."""

import math
from typing import Any

from jax.extend.core import jaxprs_in_params

OPERATIONS_PER_CALL = 2e11  # at most, on a CPU: half a second to some seconds
OPERATIONS_PER_NUMBER = 50  # what a number computed outside of products costs a CPU, in multiplications: it is memory


def count_operations(jaxpr: Any) -> float:
    """Two for each term of a product, `OPERATIONS_PER_NUMBER` for any other number; loops of unknown length once."""
    total = 0.0
    for equation in jaxpr.eqns:
        inner = list(jaxprs_in_params(equation.params))
        if equation.primitive.name == "dot_general":
            (summed, _), _ = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            total += 2 * equation.outvars[0].aval.size * math.prod(shape[axis] for axis in summed)
        elif not inner:
            total += OPERATIONS_PER_NUMBER * sum(variable.aval.size for variable in equation.outvars)
        repeated = equation.params["length"] if equation.primitive.name == "scan" else 1
        total += repeated * sum(map(count_operations, inner))
    return total
