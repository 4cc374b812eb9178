"""What is proposed for tables as people have them. The proposed command works as it stands."""

import datetime as dt
import random
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.splitting import LEAST, split_dataset
from score_rl.data.tables.frames import open_table, table_of_frame
from score_rl.data.tables.proposal import command, propose
from score_rl.errors import InputError
from tests.data.tables.tables import log, write_csv
from tests.end_to_end.conftest import Score, score

__all__ = ["score"]  # a fixture


def campaigns(count: int = 12) -> list[dict[str, Any]]:
    """A shop's campaigns, one after the other: numbers for days, a cost beside the reward, words at the ends."""
    rng = random.Random(0)
    rows = []
    for number in range(count):
        days = rng.randint(5, 12)
        for day in range(days):
            ended = rng.choice(["sold out", "stopped"]) if day == days - 1 else "running"
            rows.append(
                {
                    "campaign_id": f"C-{rng.randint(100, 999)}-{number}", "day": day + 1, "weekday": (day + number) % 7,
                    "clicks": rng.randint(0, 400), "channel": rng.choice(["search", "social"]) if day == 0 else "",
                    "bid_cents": rng.randint(10, 90), "spend": rng.randint(1, 99), "revenue": rng.random(),
                    "status": ended,
                }
            )  # fmt: skip
            rows[-1]["campaign_id"] = rows[-1 - day]["campaign_id"]
            rows[-1]["channel"] = rows[-1 - day]["channel"]
    return rows


def irrigation(days: int = 20) -> list[dict[str, Any]]:
    """A controller of three zones: one row for each at each time, a word that means nothing, a cell that is missing."""
    rng = random.Random(0)
    began = dt.datetime(2025, 4, 1, 5)
    rows: list[dict[str, Any]] = [
        {
            "logged": (began + dt.timedelta(hours=hour)).isoformat(), "area": area, "moisture [%]": rng.uniform(20, 40),
            "mode": rng.choice(["auto", "manual"]), "valve": rng.random(), "water cost": rng.random(),
        }
        for hour in range(days)
        for area in ("north", "south", "west")
    ]  # fmt: skip
    rows[7]["moisture [%]"] = None
    return rows


def proposed(rows: list[dict[str, Any]], **given: str) -> Any:
    return propose(table_of_frame(pl.DataFrame(rows), "logs"), given)


def test_ids_days_and_costs() -> None:
    found = proposed(campaigns())
    roles = found.roles
    assert (roles.episode, roles.time, roles.reward, roles.cost) == ("campaign_id", "day", "revenue", None)
    assert roles.observations == ("weekday", "clicks")
    assert roles.actions == ("bid_cents",)
    assert "spend belongs to the reward" in found.unclear[1]


def test_only_words_that_stand_at_the_ends_may_be_marks() -> None:
    (marks,) = (text for text in proposed(campaigns()).unclear if "marks failures" in text)
    assert "mostly at the ends of episodes: sold out, stopped" in marks
    assert "add --terminal 'status=sold out'" in marks
    assert not any("mode marks" in text for text in proposed(irrigation()).unclear)
    without = [{key: value for key, value in row.items() if key != "campaign_id"} for row in campaigns()]
    assert any("channel marks failures" in text for text in proposed(without).unclear), "nothing tells the episodes"


def test_a_text_that_tells_rows_of_one_time_apart_is_the_episode() -> None:
    found = proposed(irrigation())
    assert (found.roles.episode, found.roles.time, found.roles.cost) == ("area", "logged", "water cost")
    assert found.left_out == ("mode",)
    assert found.missing == "forward"
    unpaid = irrigation()
    unpaid[3]["water cost"] = None
    assert proposed(unpaid).missing == "drop", "no value before stands in for a cost"


def test_what_is_known_is_not_guessed() -> None:
    found = proposed(campaigns(), episode="status", terminal="channel=social").roles
    assert (found.episode, found.terminal) == ("status", "channel=social")
    with pytest.raises(InputError, match="unknown column for `episode` in logs: 'state': did you mean 'status'"):
        proposed(campaigns(), episode="state")


def test_an_hour_that_begins_anew_is_no_time() -> None:
    rows = [{**row, "hour": number % 2} for number, row in enumerate(campaigns())]
    for row in rows:
        del row["day"]
    found = proposed(rows).roles
    assert found.time is None
    assert "hour" in found.observations


def test_a_line_of_units_below_the_names_is_named(tmp_path: Path) -> None:
    (tmp_path / "logs.csv").write_text("trip,t,temp,valve,r\n-,s,°C,%,EUR\n" + "0,1,20.5,0.5,-1\n" * 3)
    with pytest.raises(InputError, match="line 2: it holds texts where all lines below hold numbers; remove it"):
        propose(open_table(tmp_path / "logs.csv"))


def test_times_that_cannot_be_read_are_not_passed_over() -> None:
    rows = [{**row, "time": f"{number % 3 + 1}/1/2024"} for number, row in enumerate(campaigns())]
    for row in rows:
        del row["day"]
    assert any("in the order of time, which cannot be read" in text for text in proposed(rows).unclear)


@pytest.mark.parametrize("make", [campaigns, irrigation])
def test_the_proposed_command_works_as_it_stands(make: Any, score: Score, tmp_path: Path) -> None:
    pl.DataFrame(make()).write_csv(tmp_path / "logs.csv", separator=";", decimal_comma=True)
    found = propose(open_table(tmp_path / "logs.csv"))
    text = command("logs.csv", found, out="logs.hdf5", bounds=True).replace("\\\n", "")
    done = score(*shlex.split(text)[1:])
    assert done.code == 0, done.err
    assert (tmp_path / "logs.hdf5").exists()


@pytest.mark.parametrize(("count", "share"), [(3, None), (4, 0.5), (15, 0.14), (16, 0.13), (40, 0.1)])
def test_the_next_command_holds_out_what_can_be_held_out(count: int, share: float | None, score: Score) -> None:
    write_csv(Path("logs.csv"), log([4] * count))
    done = score(*"data import logs.csv --episode trip --time t --observations o* --actions a1 --reward r".split())  # noqa: SIM905
    assert done.code == 0, done.err
    _, held, given = done.out.partition("--hold-out ")
    assert bool(held) == (share is not None)
    if share is None:
        assert "none can be held out to judge policies by" in done.out
        return
    assert float(given) == share
    assert len(split_dataset(load_dataset("logs.hdf5"), share).held_out.trajectories) >= LEAST
