"""`score act`: the actions of a table's rows, by the names of its columns."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from score_rl.deploy.exporting import export_policy
from score_rl.deploy.opening import open_policy
from score_rl.deploy.table_acting import act_on_table
from score_rl.errors import InputError
from tests.deploy.trained import asked, logs, policy
from tests.end_to_end.conftest import Score, score
from tests.plants import heating

__all__ = ["score"]  # a fixture


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("policies") / "policy.npz"
    export_policy(policy("score"), path, "numpy")
    return path


def write_table(path: Path, rows: int = 50) -> np.ndarray:
    """A table with its columns in another order, one observation of which is far; the observations in the data's."""
    observations = logs().observations[:rows].copy()
    observations[7, heating.FLOW] = 90_000
    columns = {name: observations[:, place] for place, name in enumerate(heating.OBSERVATIONS)}
    frame = pl.DataFrame({"t": np.arange(rows), **dict(reversed(columns.items()))})
    (frame.write_parquet if path.suffix == ".parquet" else frame.write_csv)(path)
    return observations


@pytest.mark.parametrize(("given", "wanted"), [("today.csv", "actions.csv"), ("today.parquet", "actions.parquet")])
def test_each_row_gets_its_action_and_its_flag(exported: Path, score: Score, given: str, wanted: str) -> None:
    observations = write_table(Path(given))
    outcome = score("act", exported, given, "--keep", "t", "--out", wanted)
    assert outcome.code == 0, outcome.err
    assert "50 rows" in outcome.out
    answer = pl.read_csv(wanted) if wanted.endswith(".csv") else pl.read_parquet(wanted)
    assert answer.columns == ["t", "valve", "pump", "uncertainty", "distance", "flag"]
    assert answer["t"].to_list() == list(range(50))
    limits = policy("score").limits
    assert limits is not None
    expected = asked("score").checked(observations, limits)
    ranges = heating.ACTION_HIGH - heating.ACTION_LOW
    assert (np.abs(answer.select("valve", "pump").to_numpy() - expected.actions) / ranges).max() < 1e-5
    flags = [text or "" for text in answer["flag"].to_list()]
    assert expected.unknown is not None
    assert ["far" in text for text in flags] == expected.far.tolist()
    assert ["unknown" in text for text in flags] == expected.unknown.tolist()
    assert "far" in flags[7]
    assert sum("far" in text for text in flags) == 1


def test_columns_that_are_missing_or_unknown_are_refused(exported: Path, score: Score) -> None:
    write_table(Path("today.csv"))
    unknown = score("act", exported, "today.csv")
    assert unknown.code == 2
    assert "does not observe: t; name them in --keep to copy them, or in --ignore." in unknown.err
    assert "unknown column of today.csv 'time'" in score("act", exported, "today.csv", "--keep", "time").err
    assert score("act", exported, "today.csv", "--ignore", "*", "--quiet").code == 0
    pl.read_csv("today.csv").drop("flow").write_csv("less.csv")
    assert "has no column flow, which the policy observes" in score("act", exported, "less.csv").err
    pl.read_csv("today.csv").with_columns(valve=pl.lit(1)).write_csv("more.csv")
    twice = score("act", exported, "more.csv", "--keep", "*")
    assert "valve would be written twice" in twice.err
    assert "end it in .csv or .parquet" in score("act", exported, "today.csv", "--out", "actions.xlsx").err


@pytest.mark.parametrize(
    ("cell", "said"), [("", "is empty"), ("warm", "holds 'warm'"), ("inf", "is inf, which is too large")]
)
def test_a_cell_that_is_no_number_is_named_by_its_line(exported: Path, tmp_path: Path, cell: str, said: str) -> None:
    write_table(tmp_path / "today.csv", rows=30)
    lines = (tmp_path / "today.csv").read_text().splitlines()
    place = lines[0].split(",").index("temp_wall")
    cells = lines[20].split(",")
    cells[place] = cell
    lines[20] = ",".join(cells)
    (tmp_path / "today.csv").write_text("\n".join(lines))
    out = tmp_path / "actions.csv"
    with pytest.raises(InputError, match=rf"today\.csv, line 21: temp_wall {said}"):
        act_on_table(open_policy(exported), tmp_path / "today.csv", out, ignore=["t"])
    assert not out.exists()


def test_a_row_with_an_empty_cell_may_be_marked(exported: Path, score: Score) -> None:
    """The other rows are answered as ever, wherever they stand; a row of which all is missing too."""
    write_table(Path("today.csv"))
    assert score("act", exported, "today.csv", "--ignore", "t").code == 0
    whole = pl.read_csv("actions.csv")
    lines = Path("today.csv").read_text().splitlines()
    first, _, *rest = lines[4].split(",")
    lines[4] = ",".join([first, "NA", *rest])
    lines[9] = "9" + "," * lines[9].count(",")
    Path("today.csv").write_text("\n".join(lines))
    outcome = score("act", exported, "today.csv", "--ignore", "t", "--missing", "mark")
    assert outcome.code == 0, outcome.err
    assert "2 with an empty cell and no action" in outcome.out
    answer = pl.read_csv("actions.csv")
    left = [row for row in range(50) if row not in (3, 8)]
    assert answer["flag"][left].to_list() == whole["flag"][left].to_list()
    marked, unmarked = (frame[left].drop("flag").to_numpy() for frame in (answer, whole))
    np.testing.assert_allclose(marked, unmarked, rtol=1e-4)
    assert answer[3].drop("flag").null_count().sum_horizontal().item() == 4
    assert answer["flag"][[3, 8]].to_list() == ["missing", "missing"]


def test_names_with_units_in_brackets_are_names(exported: Path, score: Score) -> None:
    """Not patterns, which the brackets would make of them; texts are read as importing reads them."""
    write_table(Path("today.csv"))
    frame = pl.read_csv("today.csv").with_columns(pl.lit(1).alias("load [%]"), pl.lit(2).alias("load %"))
    frame = frame.with_columns(pl.format(" {} ", "flow").alias("flow"))
    frame.write_csv("today.csv")
    outcome = score("act", exported, "today.csv", "--keep", "load [%]", "--ignore", "t", "load %")
    assert outcome.code == 0, outcome.err
    assert pl.read_csv("actions.csv").columns[0] == "load [%]"
