"""Hostile tables: CSV, Parquet and npz, made here and then changed. Every file follows from its seed."""

import gzip
import io
import pickle
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tests.drills.records import hostile_bytes

FORMATS = ("csv", "csv.gz", "parquet", "npz")
OTHER_TYPES: list[Any] = [pl.Int8, pl.Decimal(10, 2), pl.Duration, pl.Date]
CELLS = [
    "", "NaN", "inf", "-inf", "1e999", "1e-999", "1,5", '"1', "1_000", "0x10", "1e35", " 5 ", "--5", "TRUE", "٣", "NA",
    "9" * 400, "'=1+1", "\x1b[2J", "\x00", "ü", "1;2", "null", "-0", "1e15", "1.5.2", '"a\nb"', "1d3", "infinity",
]  # fmt: skip


def sound_columns(rng: random.Random) -> dict[str, Any]:
    """Logs of a valve: trips of some rows each."""
    generator = np.random.default_rng(rng.randrange(2**32))
    trips, length = rng.choice([(4, 6), (3, 5), (1, 12)])
    rows = trips * length
    return {
        "trip": np.repeat(np.arange(trips), length),
        "t": np.tile(np.arange(length), trips),
        "temp": generator.normal(20, 5, rows).round(3),
        "flow": generator.normal(size=rows).round(3),
        "valve": generator.uniform(-1, 1, rows).round(3),
        "r": generator.normal(size=rows).round(3),
        "failed": np.tile(np.arange(length) == length - 1, trips).astype(int),
    }


def write_sound(path: Path, columns: dict[str, Any], rng: random.Random) -> None:
    frame = pl.DataFrame({name: pl.Series(name, values) for name, values in columns.items()})
    if path.name.endswith(".npz"):
        (np.savez_compressed if rng.random() < 0.5 else np.savez)(path, **columns)
    elif path.name.endswith(".parquet"):
        packing: Any = rng.choice(["zstd", "snappy", "uncompressed", "gzip"])
        frame.write_parquet(path, compression=packing, row_group_size=rng.choice([5, 100]))
    else:
        text = frame.write_csv(separator=rng.choice(",,,;\t"), line_terminator=rng.choice(["\n", "\r\n"])).encode()
        path.write_bytes(gzip.compress(text) if path.name.endswith(".gz") else text)


# -- changes of any file -----------------------------------------------------------------------------------------------

Change = Callable[[Path, random.Random], None]


def change_bytes(path: Path, rng: random.Random) -> None:
    path.write_bytes(hostile_bytes(path.read_bytes(), rng))


def change_end(path: Path, rng: random.Random) -> None:
    """Archives and Parquet say at their end what they hold."""
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 2, 8])):
        content[-1 - rng.randrange(min(200, len(content)))] = rng.randrange(256)
    path.write_bytes(content)


def another_format(path: Path, rng: random.Random) -> None:
    path.write_bytes(
        rng.choice([b"", b"PAR1", b"PK\x03\x04", b"\x1f\x8b", pickle.dumps({"a": 1}), b"\n\n\n", b"a,b\n"])
    )


# -- changes of cells --------------------------------------------------------------------------------------------------


def change_text(path: Path, rng: random.Random) -> None:
    """Cells, lines and names of a CSV."""
    packed = path.name.endswith(".gz")
    content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    lines = content.decode().split("\n")
    for _ in range(rng.choice([1, 1, 2])):
        line = rng.randrange(len(lines))
        separator = next((each for each in ";\t" if each in lines[line]), ",")
        cells = lines[line].split(separator)
        match rng.choice(["cell", "cell", "cell", "more", "fewer", "twice", "gone", "name", "join"]):
            case "cell":
                cells[rng.randrange(len(cells))] = rng.choice(CELLS)
            case "more":
                cells.insert(rng.randrange(len(cells)), rng.choice(CELLS))
            case "fewer":
                cells.pop(rng.randrange(len(cells)))
            case "twice":
                lines.insert(rng.randrange(len(lines)), lines[line])
            case "gone":
                cells = []
            case "name":
                lines[0] = lines[0].replace(
                    rng.choice(["temp", "trip", "r"]), rng.choice(["t", "", "\x1b]0;x\x07", "1"])
                )
                continue
            case "join":
                lines[line - 1] += "\r" + lines[line]
        lines[line] = separator.join(cells)
    text = "\n".join(lines).encode(rng.choice(["utf-8", "utf-8", "utf-8", "utf-16", "utf-8-sig"]), "replace")
    path.write_bytes(gzip.compress(text) if packed else text)


def change_columns(path: Path, rng: random.Random) -> None:
    """Types and shapes that Parquet and NumPy have and tables of logs have not."""
    columns = sound_columns(rng)
    key, rows = rng.choice(list(columns)), len(columns["t"])
    if path.name.endswith(".npz"):
        odd: list[Any] = [
            np.zeros((3, 3, 3)), np.float64(1), np.full(rows, np.nan), np.zeros(0), np.full(rows, 1e300),
            np.zeros(rows, "c16"), np.array([{"a": 1}] * rows), np.zeros((rows, 2)), np.full(rows, np.inf),
            np.zeros(rows - 1), np.zeros(rows, "S3"),
            np.zeros(rows, [("a", "f4")]), np.full(rows, 2**63, "u8"), np.array(["x"] * rows), np.zeros(rows, "M8[ns]"),
            np.zeros((rows, 0)), np.zeros(rows, "f2"), np.full(rows, np.datetime64("NaT")), np.zeros(rows, "V0"),
        ]  # fmt: skip
        columns[rng.choice([key, "more", "a\x1b[31m", "../out"])] = rng.choice(odd)
        np.savez(path, **columns)  # object arrays are pickled: they must not be read
    else:
        more: list[Any] = [
            [None] * rows, [[1.0, 2.0]] * rows, [{"a": 1}] * rows, ["x"] * rows, [b"\xff"] * rows, [True] * rows,
            [float("nan")] * rows, [1e300] * rows, [2**62] * rows, [""] * rows, ["1,5"] * rows, ["\x1b[2J"] * rows,
        ]  # fmt: skip
        frame = pl.DataFrame(columns)
        series = pl.Series(key, rng.choice(more), strict=False)
        if rng.random() < 0.2:
            series = pl.Series(key, columns[key]).cast(rng.choice(OTHER_TYPES), strict=False)
        frame.with_columns(series.alias(rng.choice([key, key, "more\x07"]))).write_parquet(path)


def large_array(path: Path, rng: random.Random) -> None:
    """An archive whose array declares terabytes, or holds a gigabyte of zeros in a megabyte."""
    header = io.BytesIO()
    shape = rng.choice([(10**13,), (2**62, 4), (2**30 + 8,), (-5,), (24, 10**9)])
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in sound_columns(rng).items():
            with archive.open(f"{name}.npy", "w") as file:
                if name == "r":
                    file.write(header.getvalue() + bytes(rng.choice([0, 200, 1 << 26])))
                else:
                    np.lib.format.write_array(file, np.asarray(values))


TEXT: tuple[Change, ...] = (change_text, change_text, change_text, change_bytes, change_bytes, another_format)
BINARY: tuple[Change, ...] = (change_columns, change_columns, change_bytes, change_bytes, change_end, another_format)


def hostile_table(folder: Path, seed: int) -> tuple[Path, str]:
    """The table of this seed, and what was done to it."""
    rng = random.Random(seed)
    kind = FORMATS[seed % len(FORMATS)]
    path = folder / f"drill.{kind}"
    write_sound(path, sound_columns(rng), rng)
    changes = TEXT if kind.startswith("csv") else (*BINARY, large_array) if kind == "npz" else BINARY
    change = rng.choice(changes)
    change(path, rng)
    return path, f"{kind}, {change.__name__}"
