"""Jobs by submitit: by its local executor, and with small programs of this test in the place of SLURM's commands."""

import os
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import score_rl
from score_rl.cluster import cluster
from score_rl.disk import cache_folder
from score_rl.store.checkpoints import checkpoints
from score_rl.store.parts import read_json
from tests.cluster.test_cluster import trained_alone
from tests.end_to_end.conftest import start_process, wait_for
from tests.end_to_end.test_interruption import assert_same_result

pytestmark = pytest.mark.slow

REQUEST = (
    "--dataset", "replica:hopper-medium", "--transitions", "3000", "--algorithm", "bc", "td3-bc", "--environment",
    "none", "--log-every", "500", "--eval-every", "5000", "--config.hidden", "16,16", "--config.batch-size", "16",
    "--precision", "float32", "--no-tensorboard", "--checkpoint-minutes", "0.02",
)  # fmt: skip
SBATCH = """#!{python}
import os, subprocess, sys
script = sys.argv[-1]
folder = os.path.dirname(os.path.abspath(__file__))
job = str(1000 + len(os.listdir(folder + "/jobs")))
output = [line.split("=", 1)[1].strip() for line in open(script) if line.startswith("#SBATCH --output")][0]
said = open(output.replace("%j", job).replace("%A", job).replace("%t", "0"), "w")
own = dict(os.environ, SLURM_JOB_ID=job, SLURM_NTASKS="1", SLURM_JOB_NUM_NODES="1", SLURM_NODEID="0",
           SLURM_PROCID="0", SLURM_LOCALID="0", SLURM_JOB_NODELIST="node")
process = subprocess.Popen(["bash", script], env=own, stdout=said, stderr=said, start_new_session=True)
open(folder + "/jobs/" + job, "w").write(str(process.pid))
print("Submitted batch job", job)
"""
SRUN = """#!{python}
import os, sys
rest = sys.argv[1:]
while rest and rest[0].startswith("-"):
    rest = rest[2:] if rest[0] in ("--output", "--error") else rest[1:]
os.execvp(rest[0], rest)
"""
SACCT = """#!{python}
import os, sys
folder = os.path.dirname(os.path.abspath(__file__)) + "/jobs"
print("JobID|State|NodeList")
for job in sorted(os.listdir(folder)):
    try:
        os.kill(int(open(folder + "/" + job).read()), 0)
        state = "RUNNING"
    except ProcessLookupError:
        state = "COMPLETED"
    print(job + "|" + state + "|node")
"""
SCANCEL = """#!{python}
import os, signal, sys
folder = os.path.dirname(os.path.abspath(__file__)) + "/jobs"
try:
    os.killpg(int(open(folder + "/" + sys.argv[-1]).read()), signal.SIGTERM)
except ProcessLookupError:
    pass
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """SLURM's four commands; a job is a process of this machine."""
    folder = tmp_path / "slurm"
    (folder / "jobs").mkdir(parents=True)
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", SACCT), ("scancel", SCANCEL)):
        (folder / name).write_text(text.format(python=sys.executable))
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def jobs_of(out: Path) -> list[str]:
    """The jobs of the first attempts, as the cache knows them."""
    orders = [read_json(path) for path in sorted(out.glob("parts/fleet-*/attempt-1/order.json"))]
    return [read_json(cache_folder() / "jobs" / f"{order['token']}.json")["job"] for order in orders]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["slurm", "slurm:local"])
def test_jobs_go_on_without_their_driver_and_the_next_one_takes_them_over(
    slurm: Path, tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "out"
    on = ("--on", kind, "--task", "at-once=2", f"logs={tmp_path / 'logs'}", "partition=gpu", "minutes=30")
    first = start_process("train", *REQUEST, "--steps", "300000", "--out", out, *on)

    def newest() -> list[Any]:
        return [checkpoints(path) for path in out.glob("parts/fleet-*/attempt-1/fleet-*")]

    wait_for(lambda: any(newest()), first, 300)
    assert len(set(jobs_of(out))) == 2
    first.kill()
    first.wait()  # its pipes stay open until its local jobs end
    before, until = newest(), time.monotonic() + 60
    while newest() == before:
        assert time.monotonic() < until, "jobs go on without the driver"
        time.sleep(0.1)
    process = start_process("train", "--resume", out, *on)
    _, err = process.communicate(timeout=500)
    assert process.returncode == 0, err
    first.communicate()
    assert_same_result(out, trained_alone(out, tmp_path / "alone"))
    assert "attempt-2" not in err
    assert not (out / "parts").exists()
    if kind == "slurm":
        assert len(list((slurm / "jobs").iterdir())) == 3 + 2, "two questions, one when it went on, and two fleets"
    assert not any(out.rglob("*.pkl")), "what submitit pickles lies in a folder of its own"


@pytest.mark.timeout(600)
def test_a_job_that_is_ended_before_its_time_goes_on_as_another(slurm: Path, tmp_path: Path) -> None:
    """SLURM warns by a signal, or kills; both ways the fleet goes on from its newest checkpoint."""
    out = tmp_path / "out"
    on = ("--on", "slurm", "--task", "at-once=2", f"logs={tmp_path / 'logs'}")
    process = start_process("train", *REQUEST, "--steps", "300000", "--out", out, *on)

    def newest() -> list[Any]:
        return [checkpoints(path) for path in out.glob("parts/fleet-*/attempt-1/fleet-*")]

    wait_for(lambda: len(newest()) == 2 and all(newest()), process, 300)
    groups = [int((slurm / "jobs" / job).read_text()) for job in jobs_of(out)]
    os.killpg(groups[0], signal.SIGKILL)
    (trainer,) = [read_json(path)["process"] for path in out.glob("parts/fleet-1/attempt-1/progress.json")]
    os.kill(int(trainer), signal.SIGUSR2)
    _, err = process.communicate(timeout=500)
    assert process.returncode == 0, err
    assert err.count("goes on from update") == 2
    assert_same_result(out, trained_alone(out, tmp_path / "alone"))


def test_the_script_that_slurm_gets(slurm: Path, tmp_path: Path) -> None:
    """The one that docs/cluster.md shows."""
    asked = ("partition=gpu", "gres=gpu:1", "cpus-per-task=8", "account=rl", "minutes=240", "reservation=night")
    made: Any = cluster("slurm", f"logs={tmp_path / 'logs'}", *asked)
    with made.connected() as engine:
        script = engine.script()
    for line in (
        "--partition=gpu", "--gres=gpu:1", "--cpus-per-task=8", "--account=rl", "--time=240", "--reservation=night",
        "--signal=USR2@90", "--job-name=score-rl",
    ):  # fmt: skip
        assert f"#SBATCH {line}" in script
    shown = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    for line in script.splitlines():
        if line.startswith("#SBATCH") and "--output" not in line and "--error" not in line:
            assert line in shown, "make the example of docs/cluster.md new"


def test_no_slurm_here_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    made: Any = cluster("slurm", f"logs={tmp_path / 'logs'}")
    with pytest.raises(score_rl.InputError, match="SLURM cannot be used from here"), made.connected():
        pass
