"""Hostile text files: JSON records, tables of numbers, and headers of arrays. Every one follows from its seed."""

import json
import random
from typing import Any

ODD: list[Any] = [
    None, True, -1, 0, 1.5, 10**30, "", "text", "\x1b[2J", "../../x", [], [[]], {}, {"a": None}, float("nan"),
    float("inf"), "none", "$a$", "\u202e", 10**17, ["a", 1], -(10**25),
]  # fmt: skip
WORDS = [b"\x00", b"\xff\xfe", b"\x1b[31m", b"NaN", b'"', b",", b"\n", b"[" * 5000, b"1e999", b"9" * 5000, b"-", b"\r"]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a JSON value, with every key or place in it."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        found += [(value, key), *places(inner)]
    return found


def hostile_json(content: bytes, rng: random.Random) -> bytes:
    """A record with fields that are odd, missing, swapped or new; or one whose bytes are changed."""
    if rng.random() < 0.35:
        return hostile_bytes(content, rng)
    value = json.loads(content)
    for _ in range(rng.choice([1, 1, 2, 4])):
        try:
            value = json.loads(json.dumps(value))
        except ValueError:  # a value was put into itself
            return hostile_bytes(content, rng)
        container, key = rng.choice(places(value) or [({}, "")])
        kind = rng.choice(["odd", "odd", "odd", "missing", "swap", "double"])
        if kind == "odd" and container:
            container[key] = rng.choice(ODD)
        elif kind == "missing" and container:
            container.pop(key)
        elif kind == "swap" and container:
            other, there = rng.choice(places(value) or [(container, key)])
            container[key], other[there] = other[there], container[key]
        elif isinstance(container, list) and container:
            container.append(container[key])
        elif isinstance(container, dict):
            container[rng.choice(["", "new", "\x07"])] = rng.choice(ODD)
    try:
        return json.dumps(value).encode(errors="surrogatepass")
    except ValueError:  # a value was put into itself
        return hostile_bytes(content, rng)


def hostile_header(content: bytes, rng: random.Random) -> bytes:
    """A safetensors file of which the header says something else: names, types, shapes, places and checksum."""
    length = int.from_bytes(content[:8], "little")
    header = hostile_json(content[8 : 8 + length], rng)
    stated = rng.choice([len(header)] * 6 + [0, 2**40, len(header) + 1, 2**63])
    return stated.to_bytes(8, "little") + header + content[8 + length :]


def hostile_bytes(content: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, cut out, doubled or put in."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        place = rng.randrange(len(changed) + 1)
        match rng.choice(["flip", "cut", "word", "end", "double"]):
            case "flip" if place < len(changed):
                changed[place] = rng.randrange(256)
            case "cut":
                del changed[place : place + rng.choice([1, 8, 100])]
            case "word":
                changed[place:place] = rng.choice(WORDS)
            case "end":
                del changed[place:]
            case "double":
                changed[place:place] = changed[max(0, place - 30) : place]
    return bytes(changed)
