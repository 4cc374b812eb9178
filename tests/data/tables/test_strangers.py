"""Tables of strangers: what could lose rows, fill the memory or obey a terminal is refused by name."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from score_rl.data.tables import csv_table
from score_rl.data.tables.frames import open_table
from score_rl.data.tables.importing import import_table, roles_of
from score_rl.errors import InputError

HEAD = "trip,temp,valve,r\n"
ROLES = roles_of(["temp"], ["valve"], reward="r", episode="trip")


def text(content: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "logs.csv").write_bytes(content.encode())
        return folder / "logs.csv"

    return make


def packed(content: bytes, cut: int | None = None) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "logs.csv.gz").write_bytes(gzip.compress(content)[:cut])
        return folder / "logs.csv.gz"

    return make


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "logs.csv")
    return folder / "logs.csv"


def nested(folder: Path) -> Path:
    rows = {"trip": [[1], [1]], "temp": [1.0, 2.0], "valve": [0.1, 0.2], "r": [1.0, 2.0]}
    pl.DataFrame(rows).write_parquet(folder / "logs.parquet")
    return folder / "logs.parquet"


def cut_parquet(folder: Path) -> Path:
    path = nested(folder)
    path.write_bytes(path.read_bytes()[:-3])
    return path


ROW = "1,1.0,0.1,2.0\n"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (text(HEAD.rstrip() + "\r" + ROW * 3), "carriage returns that do not stand at the end of a line"),
        (text(HEAD + ROW + "1,1.0\r,0.1,2.0\n"), "carriage returns"),
        (text(HEAD.replace("temp", "te\x1b[2Jmp") + ROW), "a column called .* which cannot be shown"),
        (text(HEAD + ROW + '1,"1.0,0.1,2.0\n' + ROW), "quot|cannot be read|has 2 cells|is missing"),
        (packed((HEAD + ROW * 3).encode(), -6), "is damaged .*unpack it yourself"),
        (pipe, "is no ordinary file"),
        (nested, r"trip holds list\(int64\), but one value to a row is expected"),
        (cut_parquet, "cannot be read as Parquet"),
    ],
)  # fmt: skip
def test_it_is_refused_in_one_sentence(tmp_path: Path, make: Callable[[Path], Path], words: str) -> None:
    path = make(tmp_path)
    with pytest.raises(InputError, match=words) as caught:
        import_table(open_table(path), ROLES, tmp_path / "out.hdf5")
    assert str(caught.value).isprintable()
    assert not (tmp_path / "out.hdf5").exists()


def test_an_archive_does_not_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_table, "ALWAYS_ALLOWED", 1 << 20)
    path = packed(HEAD.encode() + ROW.encode() * 100_000)(tmp_path)
    with pytest.raises(InputError, match="holds more than 100 times its size: unpack it yourself if that is meant"):
        import_table(open_table(path), ROLES, tmp_path / "out.hdf5")
    assert list(tmp_path.iterdir()) == [path]


def test_lines_of_every_usual_kind_are_read(tmp_path: Path) -> None:
    for ending in ("\n", "\r\n"):
        path = text((HEAD + ROW + ROW.replace("2.0", "3.0")).replace("\n", ending))(tmp_path)
        assert import_table(open_table(path), ROLES, tmp_path / "out.hdf5").rows == 2
