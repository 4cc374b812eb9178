"""A JSON object of a stored file, read field by field: what is missing or of another type is refused by its name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from score_rl.errors import InputError, printable

Value = TypeVar("Value", str, int, float, bool, dict[str, Any], list[Any])
MOST = 10**18 - 1  # of whole numbers: larger ones fit into no array
WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


class Fields:
    """The fields of one object in a file."""

    def __init__(self, values: Any, file: Path, within: str = "") -> None:
        self.file, self.within = file, within
        if not isinstance(values, dict):
            self._refuse(within or "the file", f"is {_shown(values)}, expected an object")
        self.values: dict[str, Any] = values

    def get(self, name: str, kind: type[Value]) -> Value:
        """A field that must be there."""
        if name not in self.values:
            self._refuse(self._named(name), f"is missing, expected {WORDS[kind]}")
        return self._checked(self._named(name), self.values[name], kind)

    def optional(self, name: str, kind: type[Value]) -> Value | None:
        """A field that may be missing or null."""
        value = self.values.get(name)
        return None if value is None else self._checked(self._named(name), value, kind)

    def whole(self, name: str, least: int = 0) -> int:
        """A whole number that must be there, not below `least`."""
        value = self.get(name, int)
        if value < least:
            self._refuse(self._named(name), f"is {_shown(value)}, expected {least} or more")
        return value

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self.get(name, str)
        if value not in allowed:
            self._refuse(self._named(name), f"is {value!r}, expected one of {', '.join(allowed)}")
        return value

    def list_of(self, name: str, kind: type[Value]) -> list[Value]:
        whole = self.get(name, list)
        return [self._checked(f"{self._named(name)}[{place}]", value, kind) for place, value in enumerate(whole)]

    def inner(self, name: str) -> "Fields":
        """A field that is an object itself."""
        return Fields(self.get(name, dict), self.file, self._named(name))

    def inner_list(self, name: str) -> Iterator["Fields"]:
        for place, values in enumerate(self.get(name, list)):
            yield Fields(values, self.file, f"{self._named(name)}[{place}]")

    def inner_by_name(self, name: str) -> Iterator[tuple[str, "Fields"]]:
        for key, values in self.get(name, dict).items():
            yield key, Fields(values, self.file, f"{self._named(name)}[{key!r}]")

    def _named(self, name: str) -> str:
        return f"{self.within}.{name}" if self.within else name

    def _checked(self, named: str, value: Any, kind: type[Value]) -> Value:
        accepted = (int, float) if kind is float else kind
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            self._refuse(named, f"is {_shown(value)}, expected {WORDS[kind]}")
        if isinstance(value, int) and not -MOST <= value <= MOST:
            self._refuse(named, f"is {_shown(value)}, expected {WORDS[kind]} of at most 18 digits")
        return value  # type: ignore[return-value]  # a whole number is a number too, and stays as it was written

    def _refuse(self, named: str, problem: str) -> NoReturn:
        raise InputError(f"{self.file} cannot be read: {printable(named)} {problem}; restore the file from a copy.")


def _shown(value: Any) -> str:
    text = printable(repr(value)[:41])
    return text if len(text) <= 40 else f"{text[:40]}..."
