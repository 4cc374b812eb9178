"""The same training by tasks, with submitit's debug executor: jobs run in this process, one after the other."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import score_rl
from score_rl.cli import main
from score_rl.cluster import cluster, survey, work
from score_rl.cluster.engines import Task
from score_rl.cluster.mirror import TEMPORARY, Mirror, apply
from score_rl.cluster.orders import BROKEN, Order, own_versions
from score_rl.cluster.process_engine import ProcessEngine
from score_rl.cluster.speed import Pace
from score_rl.errors import InputError, Stopped
from score_rl.run.experiment import Experiment
from score_rl.store.parts import PARTS
from tests.end_to_end.test_interruption import assert_same_result

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # submitit's debug executor leaves its logs open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
OPTIONS: dict[str, Any] = {
    "transitions": 3000, "steps": 20, "log_every": 10, "environment": "none", "quiet": True, "tensorboard": False,
    "checkpoint_minutes": 0.0, "precision": "float32",
}  # fmt: skip
CONFIG = {"hidden": (16, 16), "batch_size": 16}


def train(out: Path, **options: Any) -> Experiment:
    return score_rl.train(
        "replica:hopper-medium", algorithm=["bc", "td3-bc"], seeds=[0, 1], config=CONFIG, out=out, **(OPTIONS | options)
    )


def trained_alone(folder: Path, out: Path) -> Path:
    """The same fleets on this machine, from the same record."""
    out.mkdir()
    (out / "experiment.json").write_bytes((folder / "experiment.json").read_bytes())
    score_rl.resume(out, quiet=True, tensorboard=False)
    return out


def debug(tmp_path: Path, *task: str) -> Any:
    return cluster("slurm:debug", f"logs={tmp_path / 'logs'}", *task, quiet=True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same on one machine: the same fleets."""
    return train(tmp_path_factory.mktemp("alone") / "out").path


def test_tasks_give_what_one_machine_gives_to_the_bit(tmp_path: Path, alone: Path) -> None:
    made = train(tmp_path / "out", on=debug(tmp_path, "at-once=1"))
    assert {run.status.state for run in made} == {"finished"}
    assert_same_result(tmp_path / "out", alone)
    assert not (tmp_path / "out" / PARTS).exists()
    assert made.record.provenance["cluster"]["engine"] == "SLURM"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {path.name for path in alone.iterdir()}


def test_a_fleet_is_split_over_devices_where_that_is_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On machines that take twice as long for twice the runs. One machine trains the same fleets to the same bits."""
    monkeypatch.setattr(survey, "measured_pace", lambda *_: Pace(0.0, 1.0))
    made = score_rl.train(
        "replica:hopper-medium", algorithm="bc", seeds=[0, 1, 2], config=CONFIG, out=tmp_path / "out",
        on=debug(tmp_path, "at-once=2"), **OPTIONS,
    )  # fmt: skip
    assert [run.record.fleet for run in made] == [0, 0, 1]
    assert {run.status.state for run in made} == {"finished"}
    assert_same_result(tmp_path / "out", trained_alone(tmp_path / "out", tmp_path / "alone"))


def test_a_machine_goes_on_where_a_cluster_stopped_and_a_cluster_where_a_machine_did(
    tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every task dies after its first checkpoint, and the driver with it; then the other way round."""

    class Dying(work.FleetTrainer):
        def _save(self, checkpoint: Any, *rest: Any) -> None:
            super()._save(checkpoint, *rest)
            raise KeyboardInterrupt

    for first, second in ((debug(tmp_path, "at-once=1"), None), (None, debug(tmp_path, "at-once=1"))):
        out = tmp_path / f"out-{first is None}"
        with monkeypatch.context() as patch:
            patch.setattr(work if first is not None else sys.modules["score_rl.run.launch"], "FleetTrainer", Dying)
            with pytest.raises(KeyboardInterrupt):
                train(out, on=first)
        assert (out / PARTS).exists() == (first is not None)
        score_rl.resume(out, quiet=True, tensorboard=False, on=second)
        assert_same_result(out, alone)


def test_a_task_that_dies_is_tried_again_and_one_that_always_dies_is_told(
    tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths: list[int] = []

    class Dying(work.FleetTrainer):
        def _save(self, checkpoint: Any, *rest: Any) -> None:
            super()._save(checkpoint, *rest)
            if len(deaths) < 3:
                deaths.append(checkpoint.step)
                raise RuntimeError("the device failed")

    with monkeypatch.context() as patch:
        patch.setattr(work, "FleetTrainer", Dying)
        train(tmp_path / "out", on=debug(tmp_path, "at-once=1"))
        assert len(deaths) == 3
        assert_same_result(tmp_path / "out", alone)

    class Dead(work.FleetTrainer):
        def train(self) -> None:
            if self.program.algorithm.name == "bc":
                raise RuntimeError("the device failed")
            super().train()

    monkeypatch.setattr(work, "FleetTrainer", Dead)
    with pytest.raises(InputError, match=r"1 of 2 fleets failed; fleet 0: 5 tasks in a row died .*device failed"):
        train(tmp_path / "dead", on=debug(tmp_path, "at-once=1"))
    assert [run.status.state for run in score_rl.load(tmp_path / "dead")][2:] == ["finished"] * 2


def test_a_machine_with_other_versions_is_refused_though_it_came_late(tmp_path: Path, alone: Path) -> None:
    """The driver asks machines once. A node that is added later is not among them."""
    record, versions = score_rl.load(alone).record, own_versions() | {"jax": "0.1"}
    order = Order(0, str(tmp_path), "token", record.request, record.runs, (), versions, shared=False)
    outcome = work.perform(order, tmp_path, work.StopRequest())
    assert outcome.state == BROKEN, "another machine may do better"
    assert re.search(r"has jax [\d.]+ and the driver 0\.1.*; install the same version", str(outcome.error))


def test_what_a_killed_task_left_in_the_cache_is_removed_by_the_next_one(
    tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))
    record = score_rl.load(alone).record
    order = Order(3, str(tmp_path), "token", record.request, record.runs, (), own_versions(), shared=False)
    files = {"fleet-3/step-0000000001.safetensors": np.zeros(9, np.uint8)}
    code = (
        "import os, sys, numpy; from score_rl.cluster.mirror import Mirror; from score_rl.cluster.orders import Order\n"
        "mirror = Mirror(Order.from_json(sys.argv[1]), {'fleet-3/step-0000000001.safetensors': numpy.zeros(9)})\n"
        "os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, order.to_json()]).returncode == 9
    (left,) = (tmp_path / "cache" / TEMPORARY).iterdir()
    with Mirror(order, files) as one, Mirror(order, files) as other:
        assert not left.exists()
        assert one.folder.is_dir(), "somebody uses it"
        assert other.folder.is_dir()
    assert not list((tmp_path / "cache" / TEMPORARY).iterdir())


def test_a_stop_leaves_one_folder_as_on_one_machine(
    tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from score_rl.cluster import driver

    class Impatient(driver.StopRequest):
        asked = property(lambda self: (tmp_path / "out" / "fleet-0").exists(), lambda self, value: None)

    with monkeypatch.context() as patch:
        patch.setattr(driver, "StopRequest", Impatient)
        with pytest.raises(Stopped, match="go on with `resume=`"[:12]):
            train(tmp_path / "out", on=debug(tmp_path, "at-once=1"))
    assert not (tmp_path / "out" / PARTS).exists()
    assert score_rl.load(tmp_path / "out").folder.status().state == "interrupted"
    score_rl.resume(tmp_path / "out", quiet=True, tensorboard=False)
    assert_same_result(tmp_path / "out", alone)


def test_a_machine_whose_attempt_is_gone_leaves_nothing_behind(
    tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else finished its fleet meanwhile. What it still writes would look like an attempt."""
    gone: list[Path] = []

    class Late(work.FleetTrainer):
        def train(self) -> None:
            attempt = self.context.folder.path
            if not gone:
                gone.append(attempt)
                assert not work.is_over(attempt)
                shutil.rmtree(attempt.parent)
                assert work.is_over(attempt)
                super().train()
                assert attempt.exists()
                return
            assert not gone[0].exists() or gone[0] == attempt
            super().train()

    monkeypatch.setattr(work, "FleetTrainer", Late)
    train(tmp_path / "out", on=debug(tmp_path, "at-once=1"))
    assert_same_result(tmp_path / "out", alone)


def test_nothing_is_imported_without_on(tmp_path: Path) -> None:
    """By a real training, which is judged."""
    code = (
        "import sys, pytest; from score_rl.cli import main\n"
        "def score(*arguments):\n"
        "    with pytest.raises(SystemExit) as end: main(list(arguments))\n"
        "    assert end.value.code == 0, arguments\n"
        "score('train', '--dataset', 'replica:hopper-medium', '--transitions', '3000', '--algorithm', 'bc',\n"
        "      '--steps', '10', '--environment', 'none', '--config.hidden', '8,8', '--out', 'out', '--quiet')\n"
        "score('status', 'out')\n"
        "score('experiment', 'run', 'sweep-beta', '--plan')\n"
        "import score_rl.judge.selection.selecting, score_rl.judge.judging, score_rl.cluster.machines\n"
        "print([name for name in ('ray', 'submitit') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("on", "task", "says"),
    [
        ("raya", (), "it must be ray, ray:ADDRESS, slurm or processes:N"),
        ("processes:none", (), "give a number of processes"),
        ("slurm:here", (), "slurm:local or slurm:debug"),
        ("ray", ("gpus",), "must be KEY=VALUE"),
        ("ray", ("gpu=1",), "holds gpu, which --on ray does not know; it knows gpus, cpus"),
        ("ray", ("gpus=many",), "must be a number"),
        ("ray", ("storage=moon",), "must be auto, shared or driver"),
        ("ray:10.0.0.1", (), "--on is ray:10.0.0.1; it must be ray:HOST:PORT, such as ray:10.0.0.1:6379"),
        ("ray:127.0.0.1:1", (), "no Ray cluster answers at 127.0.0.1:1 ("),
        ("ray:ray://10.0.0.1:10001", (), "is an address of Ray Client, and training is led from a machine"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(
    on: str, task: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if task == ("gpus=many",):
        with pytest.raises(InputError, match=says):
            Task.parse(task).number("gpus")
        return
    with pytest.raises(SystemExit) as end:
        main(["train", "--out", str(tmp_path / "out"), "--on", on, *(["--task", *task] if task else [])])
    assert end.value.code == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("on", "library"), [("ray", "ray"), ("slurm", "submitit")])
def test_a_library_that_is_missing_is_named_with_its_extra(
    on: str, library: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(SystemExit) as end:
        main(["train", "--out", str(tmp_path / "out"), "--on", on])
    assert end.value.code == 2
    assert f"which is not installed: pip install 'score-rl[{on}]'." in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("visible", "gpus", "processes", "shares"),
    [(None, 4, 2, ["0,2", "1,3"]), ("2,5", 2, 2, ["2", "5"]), (None, 1, 1, [None]), (None, 3, 2, ["0,2", "1"])],
)
def test_processes_share_the_gpus_of_a_machine(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, gpus: int, processes: int, shares: list[str | None]
) -> None:
    """No GPU is here: the answer of the process that looks for them is given."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(ProcessEngine, "ask", lambda *_: {"platform": "gpu", "devices": gpus})
    engine = ProcessEngine(processes, Task({}))
    engine.survey({"kind": "survey"})
    assert [engine._environment(place).get("CUDA_VISIBLE_DEVICES") for place in range(processes)] == shares
    with pytest.raises(InputError, match=rf"`on` is processes:9 and there are {gpus} GPUs"):
        ProcessEngine(9, Task({})).survey({"kind": "survey"})


def test_an_order_survives_its_way_and_a_machine_writes_below_its_attempt_alone(tmp_path: Path, alone: Path) -> None:
    record = score_rl.load(alone).record
    order = Order(0, str(tmp_path), "token", record.request, record.runs, (), {"jax": "1"}, shared=True)
    assert Order.from_json(json.dumps(json.loads(order.to_json()))) == order
    for path in ("../outside", "/etc/outside", "a/../../outside"):
        with pytest.raises(InputError, match="nothing is written outside"):
            apply({"path": path, "content": b""}, tmp_path)
