"""What processes say to each other over a pipe: a few facts as JSON, and arrays as they lie in memory."""

import json
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

LENGTH = struct.Struct("<I")


def send(stream: BinaryIO, facts: dict[str, Any], arrays: Sequence[np.ndarray] = ()) -> None:
    described = [[array.dtype.str, list(array.shape)] for array in arrays]
    head = json.dumps({"facts": facts, "arrays": described}).encode()
    stream.write(LENGTH.pack(len(head)) + head)
    for array in arrays:
        stream.write(array.tobytes())
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], list[np.ndarray]] | None:
    """The next message; None where the other side has closed the pipe, even in the middle of one."""
    try:
        head = json.loads(_exactly(stream, *LENGTH.unpack(_exactly(stream, LENGTH.size))))
        arrays = []
        for dtype, shape in head["arrays"]:
            number = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            arrays.append(np.frombuffer(_exactly(stream, number), dtype).reshape(shape))
    except EOFError:
        return None
    return head["facts"], arrays


def _exactly(stream: BinaryIO, number: int) -> bytes:
    found = stream.read(number)  # a buffered stream reads until there are so many
    if len(found) < number:
        raise EOFError
    return found
