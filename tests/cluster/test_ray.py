"""A real Ray cluster of four nodes on this machine, whose nodes and driver are killed at random moments."""

import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import score_rl
from score_rl.store.checkpoints import checkpoints
from score_rl.store.parts import PROGRESS, read_json
from tests.cluster.nodes import Nodes
from tests.end_to_end.conftest import start_process, wait_for
from tests.end_to_end.test_interruption import assert_same_result

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

REQUEST = (
    "--dataset", "replica:hopper-medium", "--transitions", "3000", "--algorithm", "bc", "td3-bc", "iql",
    "--environment", "none", "--log-every", "1000", "--eval-every", "100000",
    "--config.hidden", "16,16", "--config.batch-size", "16", "--precision", "float32",
)  # fmt: skip


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "programs"))  # of all nodes: less to compile
    with Nodes(tmp_path, 4) as cluster:
        yield cluster


def trained_alone(folder: Path, out: Path) -> Path:
    """The same fleets on this machine, from the same record."""
    out.mkdir()
    (out / "experiment.json").write_bytes((folder / "experiment.json").read_bytes())
    score_rl.resume(out, quiet=True, tensorboard=False)
    return out


def newest_steps(folder: Path) -> dict[str, str]:
    attempts = folder.glob("parts/fleet-*/attempt-*/fleet-*")
    return {str(path): checkpoints(path)[0].name for path in attempts if checkpoints(path)}


def newest_attempts(folder: Path) -> list[Path]:
    """What the machines that train now say of themselves."""
    fleets = folder.glob("parts/fleet-*")
    attempts = [sorted(fleet.glob("attempt-*"), key=lambda path: int(path.name[8:])) for fleet in fleets]
    return [found[-1] / PROGRESS for found in attempts if found]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("storage", "kills", "drivers", "seed"),
    [("auto", 7, 1, 1), ("auto", 7, 1, 2), ("auto", 7, 0, 3), ("driver", 6, 1, 4)],
)
def test_nodes_and_drivers_die_and_nothing_is_lost_or_doubled(
    nodes: Nodes, tmp_path: Path, storage: str, kills: int, drivers: int, seed: int
) -> None:
    out, on = tmp_path / "out", ("--on", f"ray:{nodes.address}", "--task", f"storage={storage}")
    rng = random.Random(seed)
    steps, hit, tries = 120_000, 0, set[Path]()
    process = start_process(
        "train", *REQUEST, "--steps", steps, "--checkpoint-minutes", "0.05", "--out", out, "--no-tensorboard", *on
    )
    wait_for(lambda: newest_steps(out), process, 300)
    for number in range(kills):
        time.sleep(rng.uniform(1, 12))
        if process.poll() is not None:
            break
        busy = [read_json(path).get("machine") for path in newest_attempts(out)]
        victims = sorted({name for name in busy if name is not None})
        hit += bool(victims) and nodes.kill(rng.choice(victims)) != "dead already"
        tries |= set(out.glob("parts/fleet-*/attempt-*"))
        if drivers and number == kills // 2:
            process = driver_killed(process, out, on)
    _, err = process.communicate(timeout=900)
    assert process.returncode == 0, err
    assert hit > kills // 2, "it ended too early; make it longer"
    assert len(tries) >= 3 + hit // 2, "kills hit tasks, and these were tried again"
    made = score_rl.load(out)
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
