"""The table of measurements: appended to, cut by a kill, rewound on resuming, read again."""

import errno
from pathlib import Path
from typing import Any, Never

import pytest

from score_rl.errors import InputError
from score_rl.store.history import rewind_metrics
from score_rl.store.metrics import FILE, MetricsTable, MetricsWriter, Row, read_metrics

ROWS = [
    Row("a", 10, "train/q", 1.5),
    Row("b", 10, "train/q", 2.5),
    Row("a", 1, "dynamics/loss", 0.1 + 0.2),
    Row("a", 20, "train/q", 3.0),
    Row("b", 20, "train/q", -1e-30),
]


def write(folder: Path, rows: list[Row], **options: Any) -> None:
    writer = MetricsWriter(folder, **options)
    writer.write(rows)
    writer.close()


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert list(read_metrics(tmp_path)) == [], "nothing was measured yet"
    write(tmp_path, ROWS[:2], tensorboard=False)
    write(tmp_path, ROWS[2:], tensorboard=False)
    assert list(read_metrics(tmp_path)) == ROWS
    assert (tmp_path / FILE).read_text().count("run,step,name,value") == 1


def test_a_line_that_a_kill_cut_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, ROWS, tensorboard=False)
    text = (tmp_path / FILE).read_text()
    (tmp_path / FILE).write_text(text[:-4])
    assert list(read_metrics(tmp_path)) == ROWS[:-1]


def test_resuming_removes_what_is_measured_again(tmp_path: Path) -> None:
    write(tmp_path, ROWS, tensorboard=False)
    left, _ = rewind_metrics(tmp_path, ["a"], 10)
    assert list(left) == list(read_metrics(tmp_path)) == [*ROWS[:3], ROWS[4]], "b is not rewound"
    left, _ = rewind_metrics(tmp_path, ["a", "b"], 0, lambda name: name.startswith("train/"))
    assert list(left) == [ROWS[2]], "a stage counts epochs of its own"


def test_a_writer_appends_to_a_table_that_was_rewound(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path, tensorboard=False)
    writer.write(ROWS)
    rewind_metrics(tmp_path, ["a", "b"], 0)
    writer.reopen()
    writer.write(ROWS[3:])
    writer.close()
    assert list(read_metrics(tmp_path)) == ROWS[3:]


def test_a_curve_is_of_one_run() -> None:
    table = MetricsTable(ROWS)
    assert (table.runs, table.names) == (["a", "b"], ["train/q", "dynamics/loss"])
    steps, values = table.of("a").curve("train/q")
    assert (steps.tolist(), values.tolist()) == ([10, 20], [1.5, 3.0])
    assert table.last("train/q", "b") == -1e-30
    assert table.of("a").last("evaluation/score") is None
    with pytest.raises(InputError, match="train/q was measured in several runs; say which: a, b"):
        table.curve("train/q")


def test_each_run_has_a_board(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    assert sorted(path.name for path in (tmp_path / "tensorboard").iterdir()) == ["a", "b"]
    sizes = [sum(file.stat().st_size for file in run.iterdir()) for run in (tmp_path / "tensorboard").iterdir()]
    assert min(sizes) > 0


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = MetricsWriter(tmp_path, tensorboard=False)

    def full(rows: list[Row]) -> Never:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("score_rl.store.metrics._csv", full)
    with pytest.raises(InputError, match=r"No space left on device.; free some space, then go on with `resume`"):
        writer.write(ROWS)
    writer.close()


def test_a_metric_is_found_by_the_end_of_its_name_and_an_unknown_one_names_those_there_are() -> None:
    table = MetricsTable([Row("a", 10, "train/q", 1.0), Row("a", 10, "evaluation/score", 40.0)])
    assert list(table.curve("score")[1]) == [40.0]
    assert len(table.curve("evaluation/return")[0]) == 0, "known, but not measured"
    with pytest.raises(InputError, match=r"unknown metric 'scores': did you mean 'evaluation/score'"):
        table.curve("scores")
    with pytest.raises(InputError, match=r"unknown metric 'train/p': did you mean 'train/q'"):
        table.curve("train/p")
    with pytest.raises(InputError, match=r"unknown metric 'evaluation/scor': did you mean 'evaluation/score'"):
        table.curve("evaluation/scor")
