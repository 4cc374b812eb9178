"""A real Ray cluster of four nodes on this machine, whose nodes and driver are killed at random moments."""

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import score_rl
from score_rl.store.parts import PROGRESS, read_json
from tests.cluster.nodes import Nodes
from tests.cluster.test_cluster import trained_alone
from tests.end_to_end.conftest import start_process, wait_for
from tests.end_to_end.test_interruption import assert_same_result

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

FRESH = 5.0  # seconds: who said more lately how far it is trains now
ALGORITHMS = ("bc", "td3-bc", "iql")
REQUEST = (
    "--dataset", "replica:hopper-medium", "--transitions", "3000", "--algorithm", *ALGORITHMS, "--environment", "none",
    "--log-every", "1000", "--eval-every", "100000",
    "--config.hidden", "16,16", "--config.batch-size", "16", "--precision", "float32",
)  # fmt: skip


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "programs"))  # of all nodes: less to compile
    with Nodes(tmp_path, 4) as cluster:
        yield cluster


def busy_nodes(folder: Path, began: dict[Path, int]) -> list[str]:
    """Nodes that have come further than where `began` first saw their attempt."""
    found = set()
    for path in folder.glob("parts/fleet-*/attempt-*"):
        said = read_json(path / PROGRESS)
        if said and time.time() - said["at"] < FRESH and said["step"] > began.setdefault(path, said["step"]):
            found.add(said["machine"])
    return sorted(found)


@pytest.mark.timeout(2400)
@pytest.mark.parametrize(
    ("storage", "steps", "kills", "drivers"),
    [("auto", 500_000, 20, 2), ("driver", 200_000, 6, 1)],
)
def test_nodes_and_drivers_die_and_nothing_is_lost_or_doubled(
    nodes: Nodes, tmp_path: Path, storage: str, steps: int, kills: int, drivers: int
) -> None:
    """At random moments some of the nodes die that train then, until so many have died."""
    out, on = tmp_path / "out", ("--on", f"ray:{nodes.address}", "--task", f"storage={storage}")
    rng, hit, tries = random.Random(1), 0, set[Path]()
    drivers_die_after = [kills * (number + 1) // (drivers + 1) for number in range(drivers)]
    process = start_process(
        "train", *REQUEST, "--steps", steps, "--checkpoint-minutes", "0.05", "--out", out, "--no-tensorboard", *on
    )
    began: dict[Path, int] = {}
    while hit < kills:
        time.sleep(rng.uniform(0, 8))
        assert process.poll() is None, f"it ended after {hit} kills: {process.communicate()[1]}"
        victims = busy_nodes(out, began)
        for victim in rng.sample(victims, rng.randint(min(1, len(victims)), len(victims))):
            hit += nodes.kill(victim) != "dead already"
        tries |= set(out.glob("parts/fleet-*/attempt-*"))
        if drivers_die_after and hit >= drivers_die_after[0]:
            drivers_die_after.pop(0)
            process = driver_killed(process, out, on)
    _, err = process.communicate(timeout=1200)
    assert process.returncode == 0, err
    assert not drivers_die_after
    assert len(tries) >= hit, "kills hit tasks, and these were tried again"
    made = score_rl.load(out)
    assert len(made) == len(ALGORITHMS)
    assert {(run.status.state, run.status.step) for run in made} == {("finished", steps)}
    assert not (out / "parts").exists()
    assert_same_result(out, trained_alone(out, tmp_path / "alone"))


def driver_killed(process: "subprocess.Popen[str]", out: Path, on: tuple[str, ...]) -> "subprocess.Popen[str]":
    """It gets no chance to tidy up. The next one takes over."""
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return start_process("train", "--resume", out, *on)


@pytest.mark.timeout(600)
def test_ctrl_c_stops_all_nodes_with_a_checkpoint(nodes: Nodes, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start_process(
        "train", *REQUEST, "--steps", 10**6, "--checkpoint-minutes", "1", "--out", out, "--on", f"ray:{nodes.address}"
    )
    wait_for(lambda: list(out.glob("parts/fleet-*/attempt-1/metrics.csv")), process, 300)
    time.sleep(5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=180)
    assert process.returncode == 130, err
    assert "--resume" in err
    assert "Traceback" not in err
    assert not (out / "parts").exists()
    assert score_rl.load(out).folder.status().state == "interrupted"
    assert any(run.status.step > 0 for run in score_rl.load(out))


@pytest.mark.timeout(900)
def test_a_node_that_breaks_every_task_gets_no_more_of_them(nodes: Nodes, tmp_path: Path) -> None:
    """Its cache cannot be written, as on a full disk. It is free again at once, and would take every fleet."""
    shutil.rmtree(tmp_path / "node-3", ignore_errors=True)
    (tmp_path / "node-3").write_text("no folder")
    out = tmp_path / "out"
    sizes = [f"{width},{width}" for width in range(8, 17)]
    process = start_process(
        "train", "--dataset", "replica:hopper-medium", "--transitions", "3000", "--algorithm", "bc", "--environment",
        "none", "--steps", "20000", "--config.hidden", *sizes, "--config.batch-size", "16", "--out", out,
        "--no-tensorboard", "--on", f"ray:{nodes.address}",
    )  # fmt: skip
    _, err = process.communicate(timeout=800)
    assert process.returncode == 0, err
    assert "node-3 gets no more tasks: 2 broke there" in " ".join(err.split())
    assert [run.status.state for run in score_rl.load(out)] == ["finished"] * len(sizes)


HOLDING = (
    "import ray, sys, time; ray.init(address=sys.argv[1], log_to_driver=False);"
    "held = ray.remote(num_cpus=1)(lambda: time.sleep(600)).remote();"
    "time.sleep(2); print(1, flush=True); ray.get(held)"
)


@pytest.mark.timeout(600)
def test_nodes_on_which_others_work_are_not_waited_for(nodes: Nodes, tmp_path: Path) -> None:
    out = tmp_path / "out"
    holder = subprocess.Popen([sys.executable, "-c", HOLDING, nodes.address], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        process = start_process(
            "train", *REQUEST, "--steps", "2000", "--out", out, "--no-tensorboard", "--on", f"ray:{nodes.address}"
        )
        _, err = process.communicate(timeout=400)
        assert holder.poll() is None
    finally:
        holder.kill()
        holder.communicate()
    assert process.returncode == 0, err
    assert [run.status.state for run in score_rl.load(out)] == ["finished"] * 3
