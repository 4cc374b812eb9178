"""Which jobs a driver takes over: those that its user started, and none that a folder alone names."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from score_rl.cluster import cluster
from score_rl.cluster.orders import Order, own_versions
from score_rl.disk import private_folder
from tests.store.test_records import RECORD

pytest.importorskip("submitit")


@pytest.fixture
def somebodys() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_no_job_is_taken_over_that_a_folder_alone_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, somebodys: "subprocess.Popen[bytes]"
) -> None:
    """A driver ends the jobs that it has taken over. A stranger's folder could name any process of its user."""
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))
    said = {"job": str(somebodys.pid), "kind": "local", "logs": str(tmp_path)}
    (tmp_path / "attempt-1").mkdir()
    (tmp_path / "attempt-1" / "job.json").write_text(json.dumps(said))
    (tmp_path / "0.json").write_text(json.dumps(said))
    made: Any = cluster("slurm:local", f"logs={tmp_path / 'logs'}")
    with made.connected() as engine:
        for token in ("0" * 32, "../../0", str(tmp_path / "0")):
            order = Order(
                0, str(tmp_path / "attempt-1"), token, RECORD.request, RECORD.runs, (), own_versions(), shared=True
            )
            assert not engine.adopt(order)
        order = Order(
            0, str(tmp_path / "attempt-1"), "a" * 32, RECORD.request, RECORD.runs, (), own_versions(), shared=True
        )
        noted = private_folder(tmp_path / "cache" / "jobs") / f"{order.token}.json"
        for job in ("-1", "0x5", "--user=me", None):
            noted.write_text(json.dumps(said | {"job": job}))
            assert not engine.adopt(order)
        assert somebodys.poll() is None
        noted.write_text(json.dumps(said))
        assert engine.adopt(order), "what this user started goes on"
        engine.close()
        assert somebodys.wait(10) != 0
