"""Options of a command, read from a dataclass: each field is an option, and the text below it is its help."""

import ast
import contextlib
import dataclasses
import inspect
import itertools
import shutil
import textwrap
import types
from collections.abc import Collection, Iterator, Sequence
from contextvars import ContextVar
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from score_rl.errors import InputError

T = TypeVar("T")
MOST_COLUMNS = 100  # of prose
HELP = ("-h", "--help")
HELP_ALL = "--help-all"


class Offered(Exception):  # noqa: N818 - no error
    """What a command would parse, instead of parsing it: a type, or the types of its commands by name."""

    def __init__(self, kind: Any) -> None:
        super().__init__("only asked what is parsed")
        self.kind = kind


_only_asked: ContextVar[bool] = ContextVar("only_asked", default=False)


@contextlib.contextmanager
def offering() -> Iterator[None]:
    """Inside, commands raise `Offered` where they would parse their arguments."""
    token = _only_asked.set(True)
    try:
        yield
    finally:
        _only_asked.reset(token)


def offer(kind: Any) -> None:
    """For whoever is about to parse: say what, if somebody only asks for that."""
    if _only_asked.get():
        raise Offered(kind)


def parse(kind: type[T], arguments: Sequence[str], program: str, text: str | None = None) -> T:
    """The arguments as `kind`; its docstring, or `text`, teaches."""
    offer(kind)
    with _numbers_as_people_write_them():
        asked = tyro.cli(
            documented(kind),
            args=list(arguments),
            prog=program,
            description=_wrapped(inspect.cleandoc(text or kind.__doc__ or "")),
        )
    return kind(**{field.name: getattr(asked, field.name) for field in dataclasses.fields(kind)})  # type: ignore[arg-type]


def _wrapped(text: str) -> str:
    """Prose in lines that fit the terminal, examples as they are. Tyro joins lines that begin with a letter."""
    return "\n\n".join(
        paragraph if "\n  " in paragraph else textwrap.indent(in_lines(" ".join(paragraph.split())), "  ")
        for paragraph in text.split("\n\n")
    )


def in_lines(text: str, *, beyond: int = 0) -> str:
    """Text in lines that fit the terminal, broken between words; all but the first are moved in by `beyond`."""
    width = min(shutil.get_terminal_size().columns, MOST_COLUMNS) - 2
    return textwrap.fill(text, width, subsequent_indent=" " * beyond, break_on_hyphens=False)


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether only what most people set is wanted."""
    return any(argument in HELP for argument in arguments)


def documented(kind: type[T], only: Collection[str] | None = None) -> type[T]:
    """The dataclass with the text below each field as its help, in whole sentences; `only` some of its fields.

    Tyro finds these texts itself, but it keeps their line breaks, which then stand inside sentences.
    """
    fields: list[Any] = []
    texts = _texts_below_fields(kind)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if only is not None and field.name not in only:
            continue
        default = _default(field)
        shown: dict[str, Any] = {"help": texts[field.name]} if field.name in texts else {}
        plain = get_args(field.type)[0] if get_origin(field.type) is Annotated else field.type
        empty = default.default is dataclasses.MISSING and _is_list(plain)
        if default.default is None or default.default == () or empty:
            shown |= {"help_behavior_hint": ""}
        if default.default is None or _is_list(plain):
            shown |= {"metavar": metavar(plain)}
        typed = Annotated[field.type, tyro.conf.arg(**shown)] if shown else field.type
        fields.append((field.name, typed, default))
    made = dataclasses.make_dataclass(kind.__name__, fields, frozen=True)
    made.__doc__ = kind.__doc__
    return made


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=field.default_factory)
    return dataclasses.field(default=field.default)


def _texts_below_fields(kind: type) -> dict[str, str]:
    """The string below each field of a dataclass and of those that it is made from, as one line each."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, TypeError):  # made while the program runs: it has no source
            continue
        body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
        for field, below in itertools.pairwise(body):
            if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                continue
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                texts[field.target.id] = " ".join(str(below.value.value).split())
    return texts


def _is_list(kind: Any) -> bool:
    """Whether an option takes any number of values."""
    return get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis


def metavar(kind: Any) -> str:
    """What an option takes, without the word None and without brackets."""
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (each for each in get_args(kind) if each is not type(None))
    if get_origin(kind) is tuple:
        return f"{metavar(get_args(kind)[0])} ..."
    choices = get_args(kind)
    return "{" + ",".join(map(str, choices)) + "}" if choices else kind.__name__.upper()


def _numbers_as_people_write_them() -> ConstructorRegistry:
    """Rules under which an integer may be typed as 1e6 or 1_000_000."""
    registry = ConstructorRegistry()

    @registry.primitive_rule
    def whole(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
        if info.type is not int:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="INT",
            instance_from_str=lambda typed: _whole(typed[0]),
            is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
            str_from_instance=lambda value: [str(value)],
        )

    return registry


def _whole(typed: str) -> int:
    from score_rl.store.request import whole_number

    try:
        return whole_number("the value", float(typed) if "e" in typed.lower() else int(typed))
    except (InputError, ValueError):
        raise ValueError(f"{typed} is no whole number, such as 20000 or 1e6") from None
