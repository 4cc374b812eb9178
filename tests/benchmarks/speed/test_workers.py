"""Processes that play episodes with and without JAX: what is stored of them, and how a table shows it."""

import json
from pathlib import Path

import pytest

from benchmarks.speed import fleet_tables, machines, worker_processes


@pytest.mark.slow
def test_all_forms_play_the_same_episodes_and_fill_the_table(tmp_path: Path) -> None:
    out = tmp_path / "cpu.json"
    worker_processes.main(
        worker_processes.Arguments(tasks=("hopper",), policies=(1,), processes=(1,), rounds=1, updates=20, out=out)
    )
    stored = json.loads(out.read_text())["workers"]
    played = {entry["form"]: entry for name, entry in stored.items() if name.startswith("hopper")}
    assert set(played) == {"numpy", "numpy by hand", "jax", "jax stacked"}
    assert len({entry["steps"] for entry in played.values()}) == 1, "the same policy plays the same episodes"
    assert all(entry["core_microseconds_per_step"] > 0 for entry in played.values())
    table = fleet_tables.workers(machines.machines(tmp_path))
    assert [row.split("|")[2].strip() for row in table.splitlines()[2:6]] == list(fleet_tables.FORMS.values())[:4]
    assert "halfcheetah" in table
