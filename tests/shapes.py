"""Shapes in signatures, checked at run time in every test.

To Python, `Float[Array, "batch action"]` is a comment. In tests it is a promise: jaxtyping and beartype look at each
argument and each result of the package, and a name such as `batch` means one size within a call.
"""

from collections.abc import Callable
from inspect import isclass
from types import UnionType
from typing import Any, Union, get_args, get_origin

from beartype import beartype
from jaxtyping import AbstractArray, install_import_hook

ROOMS = ("nets", "algorithms", "engine")  # where arrays have names for their axes throughout


def check_shapes() -> None:
    """To be called before the package is imported: what is imported earlier stays unchecked."""
    install_import_hook([f"score_rl.{room}" for room in ROOMS], f"{__name__}.checked")


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """With its arrays checked: shapes and kinds of numbers. All other types are mypy's business."""
    hints = function.__annotations__
    function.__annotations__ = {name: of_any_library(hint) for name, hint in hints.items() if has_shape(hint)}
    return beartype(function) if function.__annotations__ else function


def has_shape(hint: Any) -> bool:
    return is_array(hint) or any(map(has_shape, get_args(hint)))


def is_array(hint: Any) -> bool:
    return isclass(hint) and issubclass(hint, AbstractArray)


def of_any_library(hint: Any) -> Any:
    """JAX takes NumPy's arrays wherever it takes its own, and tracers beside them."""
    if is_array(hint):
        return hint.dtype[Any, hint.dim_str]
    origin, arguments = get_origin(hint), tuple(map(of_any_library, get_args(hint)))
    if not has_shape(hint):
        return hint
    return Union[arguments] if origin in (Union, UnionType) else origin[arguments]  # noqa: UP007
