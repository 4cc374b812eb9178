"""What processes say to each other over a pipe: a few facts as JSON, and arrays as they lie in memory.

length of the head | head: facts, and each array's type and shape | arrays | checksum of all before it

Whoever receives believes nothing: a message that does not fit together is `DamagedMessage`.
"""

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

LENGTH = struct.Struct("<I")
LONGEST_HEAD = 64 << 20  # bytes
MOST = 8 << 30  # bytes of all arrays
KINDS = "fiub"


class DamagedMessage(Exception):  # noqa: N818
    """A message that cannot be believed, and why."""


def send(stream: BinaryIO, facts: dict[str, Any], arrays: Sequence[np.ndarray] = ()) -> None:
    described = [[array.dtype.str, list(array.shape)] for array in arrays]
    head = json.dumps({"facts": facts, "arrays": described}).encode()
    check = 0
    for part in (LENGTH.pack(len(head)), head, *(array.tobytes() for array in arrays)):
        stream.write(part)
        check = zlib.crc32(part, check)
    stream.write(LENGTH.pack(check))
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], list[np.ndarray]] | None:
    """The next message; None where the other side has closed the pipe, even in the middle of one."""
    try:
        length = _exactly(stream, LENGTH.size)
        size = LENGTH.unpack(length)[0]
        if size > LONGEST_HEAD:
            raise DamagedMessage(f"its head has {size:,} bytes")
        head = _exactly(stream, size)
        facts, described = _opened(head)
        contents = [_exactly(stream, count * kind.itemsize) for kind, _, count in described]
        check = zlib.crc32(head, zlib.crc32(length))
        for content in contents:
            check = zlib.crc32(content, check)
        if LENGTH.unpack(_exactly(stream, LENGTH.size))[0] != check:
            raise DamagedMessage("its checksum is another")
    except EOFError:
        return None
    pairs = zip(contents, described, strict=True)
    return facts, [np.frombuffer(content, kind).reshape(shape) for content, (kind, shape, _) in pairs]


def _opened(head: bytes) -> tuple[dict[str, Any], list[tuple[np.dtype[Any], list[int], int]]]:
    """The facts, and type, shape and size of each array."""
    try:
        said = json.loads(head)
        facts = said["facts"]
        described = []
        for name, shape in said["arrays"]:
            kind = np.dtype(str(name))
            if kind.kind not in KINDS or not all(type(length) is int and length >= 0 for length in shape):
                raise ValueError(f"an array of {kind} with shape {shape}")
            count = 1
            for length in shape:
                count *= length
            described.append((kind, shape, count))
        if not isinstance(facts, dict) or sum(kind.itemsize * count for kind, _, count in described) > MOST:
            raise ValueError("no facts, or more than fits into memory")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedMessage(f"its head cannot be read ({error})") from error
    return facts, described


def _exactly(stream: BinaryIO, number: int) -> bytes:
    found = stream.read(number)  # a buffered stream reads until there are so many
    if len(found) < number:
        raise EOFError
    return found
