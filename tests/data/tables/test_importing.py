"""Any table that import accepts gives what a plain loop gives; any that it refuses is named by column and line."""

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from score_rl.data.catalogue import load_dataset
from score_rl.data.tables.csv_table import CsvTable
from score_rl.data.tables.frames import open_table, table_of_frame
from score_rl.data.tables.importing import Options, import_table
from score_rl.data.tables.preview import preview
from score_rl.data.tables.roles import Roles
from score_rl.errors import InputError
from tests.plants import heating

from .tables import ACTED, OBSERVED, log, plain_transitions, transitions, write_csv

ROLES = Roles(observations=("o*",), actions=ACTED, reward="r", episode="trip", time="t")
MARKED = Roles(observations=("o*",), actions=ACTED, reward="r", episode="trip", time="t", terminal="end")
HEATING = Roles(observations=("temp*", "flow"), actions=("valve", "pump"), reward="r", episode="trip", time="t")
BOUNDS = (0.0, 250.0, 600.0, 2400.0)


def imported(path: Path, roles: Roles = ROLES, **options: Any) -> Any:
    """The data set that comes of a file."""
    out = path.with_suffix(".hdf5")
    import_table(open_table(path), roles, out, Options(**options))
    return load_dataset(out, progress=False)


numbers = st.floats(-100, 100, width=32) | st.integers(-100, 100)
gaps = st.just(None) | numbers


@st.composite
def tables(draw: st.DrawFn, missing: str) -> list[dict[str, Any]]:
    """Rows of a few episodes in any order, with gaps where they are treated."""
    prefix = draw(st.sampled_from(["", "trip "]))
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=5))
    cells = numbers if missing == "error" else gaps
    rows = [
        {
            "trip": f"{prefix}{episode}" if prefix else episode,
            "t": step * draw(st.sampled_from([1, 1, 1, 0.5])) + 10 * step,
            "o1": draw(cells),
            "o2": draw(cells),
            "a1": draw(st.floats(-1, 1, width=32) if missing == "error" else st.none() | st.floats(-1, 1, width=32)),
            "r": draw(gaps if missing == "drop" else numbers),
            "end": int(draw(st.booleans())) if step == length - 1 else 0,
        }
        for episode, length in enumerate(lengths)
        for step in range(length)
    ]
    return draw(st.permutations(rows))


def written(folder: Path, rows: list[dict[str, Any]], kind: str) -> Path:
    """The table in a file of this kind, of which nothing else is left in the folder."""
    if kind == "csv":
        return write_csv(folder / "logs.csv", rows)
    frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    if kind == "parquet":
        frame.write_parquet(folder / "logs.parquet")
        return folder / "logs.parquet"
    text = frame.write_csv(separator=";", decimal_comma=True, line_terminator="\r\n", quote_style="non_numeric")
    (folder / "logs.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder / "logs.csv.gz"


def outcome(path: Path, rows: list[dict[str, Any]], missing: str) -> None:
    """Import either gives the plain loop's transitions, or says why there are none or too few."""
    wanted = plain_transitions(rows, missing)
    try:
        dataset = imported(path, MARKED, missing=missing)
    except InputError as error:
        kept = sum(all(row[name] is not None for name in (*OBSERVED, *ACTED, "r")) for row in rows)
        said = str(error)
        if "only " in said or "no row with a next observation" in said:
            assert len(wanted) < max(kept, len(rows)) or not wanted
        else:
            assert "something is missing in every row" in said
            assert not wanted
        return
    assert transitions(dataset) == wanted


FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("missing", ["error", "forward", "drop"])
def test_rows_in_any_order_give_what_a_plain_loop_gives(
    tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, rows_at_once in (("arrangement", 3), ("order", 4)):  # so that episodes go on from one part to the next
        monkeypatch.setattr(f"score_rl.data.tables.{place}.CHUNK", rows_at_once)

    @FEW
    @given(rows=tables(missing), kind=st.sampled_from(["csv", "european csv", "parquet"]))
    def check(rows: list[dict[str, Any]], kind: str) -> None:
        outcome(written(tmp_path, rows, kind), rows, missing)

    check()


faults = st.sampled_from(
    [
        ("o1", "high"),
        ("o2", None),
        ("a1", "inf"),
        ("a1", "1.5"),
        ("r", ""),
        ("r", "1e60"),
        ("trip", None),
        ("t", "soon"),
        ("t", None),
        ("end", "perhaps"),
        ("end", None),
    ]
)


@FEW
@given(fault=faults, place=st.integers(0, 11), shuffle=st.randoms(use_true_random=False))
def test_a_cell_that_cannot_be_used_is_named_by_column_and_line(
    tmp_path: Path, fault: tuple[str, Any], place: int, shuffle: Any
) -> None:
    rows = log((5, 4, 3), end=0)
    shuffle.shuffle(rows)
    column, text = fault
    rows[place][column] = text
    with pytest.raises(InputError) as refused:
        imported(write_csv(tmp_path / "logs.csv", rows), MARKED)
    said = str(refused.value)
    assert f" {column} " in said
    assert f"line {place + 2}:" in said


@FEW
@given(one=st.integers(0, 10), other=st.integers(0, 10), shuffle=st.randoms(use_true_random=False))
def test_rows_of_one_time_are_named_by_both_lines(tmp_path: Path, one: int, other: int, shuffle: Any) -> None:
    rows = log((12,))
    rows[one]["t"] = rows[one if one == other else other]["t"]
    shuffle.shuffle(rows)
    path = write_csv(tmp_path / "logs.csv", rows)
    if one == other:
        imported(path)
        return
    lines = sorted(number + 2 for number, row in enumerate(rows) if row["t"] == other)
    with pytest.raises(InputError, match=f"t of another row .*such as line {lines[0]} and line {lines[1]}:"):
        imported(path)


def test_shuffled_rows_give_the_same_file(tmp_path: Path) -> None:
    logs = heating.record(8, seed=1)
    heating.write_csv(tmp_path / "sorted.csv", logs)
    heating.write_csv(tmp_path / "shuffled.csv", logs, np.random.default_rng(0).permutation(len(logs)))
    one, other = (imported(tmp_path / f"{name}.csv", HEATING, action_bounds=BOUNDS) for name in ("sorted", "shuffled"))
    assert one.checksum == other.checksum
    last = logs.ends
    np.testing.assert_array_equal(one.observations, logs.observations[~last].astype(np.float32))
    np.testing.assert_array_equal(one.next_observations, logs.next_observations[~last].astype(np.float32))
    assert one.observation_names == heating.OBSERVATIONS
    np.testing.assert_array_equal(one.action_high, [250, 2400])


def test_blocks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = heating.record(20, seed=2)
    path = heating.write_csv(tmp_path / "logs.csv", logs, np.random.default_rng(0).permutation(len(logs)))
    whole = imported(path, HEATING, action_bounds="data", missing="forward")
    monkeypatch.setattr("score_rl.data.tables.csv_table.BLOCK", 1000)
    monkeypatch.setattr("score_rl.data.tables.arrangement.CHUNK", 17)
    monkeypatch.setattr("score_rl.data.tables.order.CHUNK", 13)
    assert imported(path, HEATING, action_bounds="data", missing="forward").checksum == whole.checksum
    text = path.read_text().splitlines()
    text[900] = text[900].replace(text[900].split(",")[3], "warm")
    path.write_text("\n".join(text))
    with pytest.raises(InputError, match=r"line 901: temp_wall holds 'warm', which is no number"):
        imported(path, HEATING, action_bounds="data")


@pytest.mark.parametrize("word", ["NA", "-", "null", "nan"])
def test_words_say_that_something_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """In the first block or a later one: blocks of numbers alone are read in a faster way."""
    monkeypatch.setattr("score_rl.data.tables.csv_table.BLOCK", 500)
    rows = log((30, 30, 30), where="A")
    rows[77]["o2"] = None
    empty = imported(write_csv(tmp_path / "logs.csv", rows), missing="forward").checksum
    rows[77]["o2"] = word
    assert imported(write_csv(tmp_path / "logs.csv", rows), missing="forward").checksum == empty
    rows[60]["where"] = word
    with pytest.raises(InputError, match="line 62: where is missing"):
        imported(write_csv(tmp_path / "logs.csv", rows), dataclasses.replace(ROLES, episode="where"), missing="forward")


def test_the_same_rows_in_every_format(tmp_path: Path) -> None:
    rows = log((6, 5, 4))
    frame = pl.DataFrame(rows)
    frame.write_parquet(tmp_path / "p.parquet")
    frame.write_csv(tmp_path / "semicolon.csv", separator=";", decimal_comma=True)
    frame.write_csv(tmp_path / "tab.tsv", separator="\t", include_bom=True)
    np.savez(tmp_path / "n.npz", **dict[str, Any]({name: frame[name].to_numpy() for name in frame.columns}))
    write_csv(tmp_path / "c.csv", rows)
    names = ("c.csv", "p.parquet", "semicolon.csv", "tab.tsv", "n.npz")
    datasets = [imported(tmp_path / name) for name in names]
    assert transitions(datasets[0]) == plain_transitions(rows)
    assert len({dataset.checksum for dataset in datasets}) == 1
    assert {dataset.observation_names for dataset in datasets} == {OBSERVED}


@pytest.mark.parametrize(
    "written",
    [
        lambda minute: f"2024-02-28 23:{minute:02}:00",
        lambda minute: f"2024-02-28T23:{minute:02}:00.250Z",
        lambda minute: f"28.02.2024 23:{minute:02}",
        lambda minute: f"2/28/2024 11:{minute:02} PM",
        lambda minute: f"28/2/2024 23:{minute:02}",
        lambda minute: f"23:{minute:02}:00",
    ],
)
def test_times_as_dates(tmp_path: Path, written: Any) -> None:
    rows = log((5, 6), t=lambda episode, step: written(2 * step + (10 if episode == 1 and step > 3 else 0)))
    path = write_csv(tmp_path / "logs.csv", rows[::-1])
    out = tmp_path / "logs.hdf5"
    summary = import_table(open_table(path), ROLES, out)
    gaps = summary.arranged.gaps
    assert gaps is not None
    assert (gaps.number, gaps.places) == (1, ("line 3",))
    with h5py.File(out) as file:
        np.testing.assert_allclose(file["times"][:5], np.arange(5) * 120.0)
    assert transitions(load_dataset(out)) == plain_transitions(rows)
    cut = import_table(open_table(path), ROLES, out, Options(gap=300))
    assert sorted(cut.lengths) == [2, 4, 5]


def test_no_value_is_carried_over_a_gap_that_ends_a_trajectory(tmp_path: Path) -> None:
    rows = log((8,), t=lambda episode, step: step + (100 if step > 3 else 0))
    rows[2]["o2"] = rows[4]["o2"] = rows[6]["o2"] = None
    path = write_csv(tmp_path / "logs.csv", rows)
    summary = import_table(open_table(path), ROLES, tmp_path / "x.hdf5", Options(missing="forward", gap=10))
    assert (summary.lengths.tolist(), summary.arranged.left_out, summary.arranged.filled) == ([4, 3], 1, {"o2": 2})
    whole = import_table(open_table(path), ROLES, tmp_path / "x.hdf5", Options(missing="forward"))
    assert (whole.lengths.tolist(), whole.arranged.filled) == ([8], {"o2": 3})


def test_dates_of_which_either_number_may_be_the_month_are_refused(tmp_path: Path) -> None:
    rows = log((5, 6), t=lambda episode, step: f"{episode + 1}/{step + 1}/2024")
    with pytest.raises(InputError, match=r"line 3: t is '1/2/2024', of which either number may be the month"):
        imported(write_csv(tmp_path / "logs.csv", rows))


def test_what_the_file_says_of_itself(tmp_path: Path) -> None:
    rows = [{"temp [°C]": row["o1"], **row} for row in log((6, 5), t=None)]
    rows = [{**row, "t": number} for number, row in enumerate(rows)]
    roles = Roles(("temp*", "o2"), ACTED, cost="r", episode="trip", time="t", units={"o2": "l/h", "a*": "%"})
    dataset = imported(write_csv(tmp_path / "logs.csv", rows), roles, action_bounds="data")
    assert dataset.units == {"temp [°C]": "°C", "o2": "l/h", "a1": "%"}
    assert dataset.rewards.max() == 2.0  # a cost of -2
    assert not np.signbit(dataset.rewards[0]), "no cost is 0, and not -0"
    recipe = dataset.source["recipe"]
    assert recipe["action_bounds"] == "from the data"
    assert recipe["source"]["file_sha256"]
    assert (dataset.action_low, dataset.action_high) == (dataset.actions.min(), np.float32(1))
    json.dumps(dict(dataset.source))


def test_outcomes_and_marks(tmp_path: Path) -> None:
    """The last row of an episode is terminal or a timeout; a terminal inside one is not its end."""
    rows = log((5, 4, 6), outcome=lambda e, s: "failed" if (e, s) in ((0, 4), (2, 2)) else None)
    roles = Roles(("o*",), ACTED, reward="r", episode="trip", time="t", terminal="outcome=failed")
    dataset = imported(write_csv(tmp_path / "logs.csv", rows), roles)
    rows = [{**row, "end": row["outcome"] == "failed"} for row in rows]
    assert transitions(dataset) == plain_transitions(rows)
    assert dataset.trajectories.tolist() == [[0, 5], [5, 8], [8, 13]]
    assert int(dataset.terminals.sum()) == 2


def test_a_mark_that_stands_in_no_row_is_refused(tmp_path: Path) -> None:
    """But not by the preview, which sees the first rows only."""
    rows = log((700, 700), outcome=lambda e, s: "failed" if (e, s) == (1, 699) else "running")
    path = write_csv(tmp_path / "logs.csv", rows)
    slip, right = (
        Roles(("o*",), ACTED, reward="r", episode="trip", time="t", terminal=f"outcome={word}")
        for word in ("faild", "failed")
    )
    words = r"no row has 'faild' in outcome, which holds running, failed; correct `terminal`, or leave it out"
    with pytest.raises(InputError, match=words):
        imported(path, slip)
    assert imported(path, right).terminals.sum() == 1
    preview(open_table(path), right, Options())


def test_without_episodes_the_marks_tell_them(tmp_path: Path) -> None:
    rows = log((5, 4, 6), stop=lambda e, s: "yes" if s == (5, 4, 6)[e] - 1 else "no")
    roles = Roles(("o*",), ACTED, reward="r", time="t", timeout="stop")
    assert transitions(imported(write_csv(tmp_path / "logs.csv", rows), roles)) == plain_transitions(rows)
    rows[2], rows[3] = rows[3], rows[2]
    with pytest.raises(InputError, match=r"t goes back in line 5 .*name the column that tells the episodes"):
        imported(write_csv(tmp_path / "logs.csv", rows), roles)


def test_given_next_observations(tmp_path: Path) -> None:
    rows = log((3, 2), n1=lambda e, s: s + 0.5, n2=lambda e, s: e, end=lambda e, s: int((e, s) == (1, 1)))
    rows[-1] |= {"n1": None, "n2": None}  # nothing follows
    roles = Roles(("o1", "o2"), ACTED, reward="r", terminal="end", episode="trip", next_observations=("n1", "n2"))
    dataset = imported(write_csv(tmp_path / "logs.csv", rows), roles)
    assert len(dataset) == 5
    np.testing.assert_array_equal(dataset.next_observations[:3, 0], [0.5, 1.5, 2.5])
    np.testing.assert_array_equal(dataset.next_observations[4], dataset.observations[4])
    rows[1]["n1"] = None
    with pytest.raises(InputError, match="line 3: n1 is missing"):
        imported(write_csv(tmp_path / "logs.csv", rows), roles, missing="forward")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("1,2\n3,4\n", "the first line holds numbers"),
        ("trip,t,o1,o1\n1,2,3,4\n", "several columns called 'o1'"),
        ("trip,t,o1,o2,a1,r\n0,0,1,2,0,1\n0,1,1,2,0,1,9\n", "line 3: it has 7 cells"),
        ("trip,t,o1,o2,a1,r\n0,0,1,2,0,1\n0,1,1,2\n", "line 3: a1 is missing"),
        ("trip,t,o1,o2,a1,r\n0,0,1,2,0,1\n\n0,1,1,2,0,1\n", "line 3: a1 is missing"),
        ("trip,t,o1,o2,a1,r\n", "has no rows"),
        ("trip,t,o1,o2,a1,r\n0,0,1,2,0,1\n0,0,1,2,0,1\n", "such as line 2 and line 3: keep one of them"),
        ("trip,t,o1,o2,a1,r\n0,0,on,2,0,1\n0,1,off,2,0,1\n", r"line 2: o1 holds 'on'.*\(texts in it: 'off', 'on'\)"),
        (
            "trip,t,o1,o2,a1,r\n0,0,1,2,0,1\n" + "0,1,5%,2,0,1\n" * 2,
            "line 3: o1 holds '5%'.* a number and nothing else",
        ),
        ("# a logger\ntrip,t,o1,o2,a1,r\n", "first line names 1 column .*; remove what stands above"),
        ("trip,t,o1,o2,a1,r\n0,0,[m],2,0,1\n" + "0,1,1,2,0,1\n" * 20, "line 2: o1 holds .*; correct it, or remove"),
        ("trip,t,o1,o2,a1,r\n0,0,1,2,0,1\nA7,0,1,2,0,1\n", None),
        ("\xff\xfet\0r\0", "save it again as CSV in UTF-8"),
    ],
)
def test_tables_that_are_wrong(tmp_path: Path, text: str, words: str | None) -> None:
    path = tmp_path / "logs.csv"
    path.write_bytes(text.encode("latin-1"))
    if words is None:
        assert len(CsvTable(path).sample) == 2
        return
    with pytest.raises(InputError, match=words):
        imported(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reward": None}, "neither a reward nor a cost"),
        ({"cost": "r"}, "a reward and a cost"),
        ({"observations": ("x*",)}, r"no column for `observations` matches 'x\*'; it has trip, t, o1"),
        ({"actions": ("a2",)}, "unknown column for `actions` in logs.csv: 'a2': did you mean .*'a1'"),
        ({"actions": ("o1",)}, "'o1' was named for observations and for actions"),
        ({"next_observations": ("o1",)}, "column 'o1' was named for observations and for next_observations"),
        ({"units": {"z": "m"}}, "`units` names 'z'"),
        ({"reward": "*1"}, r"'\*1' matches o1, a1, but `reward` is one column; name it"),
    ],
)
def test_columns_that_do_not_fit(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    given = {"observations": ("o1", "o2"), "actions": ACTED, "reward": "r", "episode": "trip", "time": "t"}
    with pytest.raises(InputError, match=words):
        imported(write_csv(tmp_path / "logs.csv", log((4, 4))), Roles(**(given | changes)))


def test_a_pattern_leaves_out_what_is_named(tmp_path: Path) -> None:
    dataset = imported(
        write_csv(tmp_path / "logs.csv", log((4, 4))), Roles(("*",), ("a1",), "r", episode="trip", time="t")
    )
    assert dataset.observation_names == OBSERVED


def test_a_pattern_may_mean_a_single_column(tmp_path: Path) -> None:
    rows = [{"r [EUR]": row.pop("r"), **row} for row in log((4, 4))]
    roles = Roles(("*",), ACTED, reward="r *", episode="tr*", time="t")
    dataset = imported(write_csv(tmp_path / "logs.csv", rows), roles)
    assert dataset.observation_names == OBSERVED
    assert dataset.rewards[1] == -0.5


def test_short_episodes_are_not_blamed_on_the_order(tmp_path: Path) -> None:
    """The import has sorted the rows."""
    with pytest.raises(InputError, match="the right rows apart") as refused:
        imported(write_csv(tmp_path / "logs.csv", log((2, *[1] * 5))))
    assert "sorted" not in str(refused.value)


def test_bounds_are_taken_from_the_data_only_when_asked(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "logs.csv", log((4, 4), a1=lambda e, s: 3.0 + s))
    with pytest.raises(InputError, match=r"line 2: a1 is beyond ±1, and nobody said .* `action_bounds=data`"):
        imported(path)
    with pytest.raises(InputError, match="line 5: a1 is 6, beyond its bounds 0 to 5"):
        imported(path, action_bounds=(0, 5))
    assert imported(path, action_bounds="data").action_high == 6
    constant = write_csv(tmp_path / "constant.csv", log((4, 4), a1=3.0))
    with pytest.raises(InputError, match="a1 is always 3, so the data give it no bounds"):
        imported(constant, action_bounds="data")


def test_a_failed_import_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        imported(write_csv(tmp_path / "logs.csv", log((4, 4), o1="x")))
    assert [path.name for path in tmp_path.iterdir()] == ["logs.csv"]


def test_pandas_and_polars_frames(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows = log((5, 4), o1=lambda e, s: None if s == 2 else 0.5 * s)
    frames = [pandas.DataFrame(rows), pl.DataFrame(rows), pandas.DataFrame(rows).set_index(["trip", "t"])]
    for number, frame in enumerate(frames):
        out = tmp_path / f"{number}.hdf5"
        import_table(table_of_frame(frame, "frame"), ROLES, out, Options(missing="forward"))
        assert transitions(load_dataset(out)) == plain_transitions(rows, "forward")
    with pytest.raises(InputError, match="frame, row 2: o1 is missing"):
        import_table(table_of_frame(frames[0], "frame"), ROLES, tmp_path / "x.hdf5")
    with pytest.raises(InputError, match="a dict is no frame"):
        table_of_frame({}, "frame")
