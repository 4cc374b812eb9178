"""Kills, Ctrl-C, damage: what comes out is what an undisturbed run gives, to the bit."""

import os
import pty
import random
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest

import score_rl
from score_rl.errors import Stopped
from score_rl.report.grouping import gather
from score_rl.run import launch
from score_rl.store.checkpoints import checkpoints
from score_rl.store.lock import FILE
from tests.end_to_end.conftest import SMALL, Score, start_process, wait_for
from tests.end_to_end.test_train import final_arrays

# The precision is said: left to `auto`, it may differ between this process and another, see tests/conftest.py.
REQUEST = ("--dataset", "replica:hopper-medium", "--seeds", "0", "1", "--precision", "bfloat16", *SMALL)


def assert_same_result(one: Path, other: Path) -> None:
    first, second = final_arrays(one), final_arrays(other)
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    tables = [
        sorted(row for row in score_rl.load(folder).metrics if not row.name.startswith("speed/"))
        for folder in (one, other)
    ]
    assert tables[0] == tables[1], "the same measurements, none lost, none twice"


@pytest.fixture
def undisturbed(score: Score, tmp_path: Path) -> Path:
    done = score("train", *REQUEST, "--out", "undisturbed")
    assert done.code == 0, done.err
    return tmp_path / "undisturbed"


def test_a_damaged_checkpoint_falls_back_to_the_one_before_and_says_so(
    score: Score, tmp_path: Path, undisturbed: Path
) -> None:
    assert score("train", *REQUEST, "--out", "out").code == 0
    newest, before = checkpoints(tmp_path / "out" / "fleet-0")
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    before.rename(tmp_path / "aside")
    alone = score_rl.load(tmp_path / "out")[0]
    with pytest.raises(score_rl.InputError, match="is damaged"):
        alone.policy(np.zeros(11))
    (tmp_path / "aside").rename(before)
    # Which update that is depends on the disk: one too slow for every checkpoint is spared some.
    assert score_rl.load(tmp_path / "out")[0].step == int(before.stem.split("-")[-1]) < 60
    resumed = score("train", "--resume", "out")
    assert resumed.code == 0
    assert "is damaged" in resumed.err
    assert_same_result(tmp_path / "out", undisturbed)


def test_resuming_a_finished_experiment_changes_nothing(score: Score, tmp_path: Path, undisturbed: Path) -> None:
    assert score("train", *REQUEST, "--out", "out").code == 0
    before = (tmp_path / "out" / "metrics.csv").read_text()
    again = score("train", "--resume", "out")
    assert again.code == 0
    assert again.out.count("finished") == 2
    assert (tmp_path / "out" / "metrics.csv").read_text() == before
    assert_same_result(tmp_path / "out", undisturbed)


def test_a_finished_experiment_can_be_made_longer(score: Score, tmp_path: Path, undisturbed: Path) -> None:
    short = [*REQUEST]
    short[short.index("--steps") + 1] = "40"
    assert score("train", *short, "--out", "out").code == 0
    for steps, says in (("30", "out trains 40 updates; give more"), ("45", "must be a multiple of --log-every, 10")):
        refused = score("train", "--resume", "out", "--steps", steps)
        assert refused.code == 2
        assert says in refused.err
    assert [run.status.state for run in score_rl.load(tmp_path / "out")] == ["finished"] * 2
    longer = score("train", "--resume", "out", "--steps", "60")
    assert longer.code == 0, longer.err
    assert longer.out.count("finished") == 2
    assert_same_result(tmp_path / "out", undisturbed)
    record = score_rl.load(tmp_path / "out").record
    assert record.request == score_rl.load(undisturbed).record.request
    assert record.provenance["longer"]["40 to 60 updates"]["versions"]["jax"]
    (run, _) = gather([tmp_path / "out"])
    assert (run.status, run.step, run.steps) == ("finished", 60, 60)
    before = (tmp_path / "out" / "experiment.json").read_text()
    assert score("train", "--resume", "out", "--steps", "60").code == 0, "as after an interruption"
    assert (tmp_path / "out" / "experiment.json").read_text() == before


def test_made_longer_and_interrupted_it_is_not_called_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"hidden": (16, 16), "batch_size": 16}
    score_rl.train(
        "replica:hopper-medium", transitions=3000, steps=20, log_every=10, environment="none", config=options,
        out=tmp_path / "out", quiet=True, tensorboard=False,
    )  # fmt: skip

    class Impatient(launch.StopRequest):
        asked = property(lambda self: True, lambda self, value: None)

    with monkeypatch.context() as patch:
        patch.setattr(launch, "StopRequest", Impatient)
        with pytest.raises(Stopped):
            score_rl.resume(tmp_path / "out", steps=60, quiet=True, tensorboard=False)
    (run,) = gather([tmp_path / "out"])
    assert (run.status, run.step, run.steps) == ("interrupted", 30, 60)
    resumed = score_rl.resume(tmp_path / "out", quiet=True, tensorboard=False)
    assert (resumed.run.status.state, resumed.run.step) == ("finished", 60)


def test_ctrl_c_ends_with_a_checkpoint_and_says_how_to_go_on(score: Score, tmp_path: Path, undisturbed: Path) -> None:
    process = start_process("train", *REQUEST, "--out", tmp_path / "out", "--steps", "20000")
    wait_for(lambda: checkpoints(tmp_path / "out" / "fleet-0"), process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "--resume" in err
    assert score_rl.load(tmp_path / "out").folder.status().state == "interrupted"
    step = score_rl.load(tmp_path / "out")[0].step
    assert 0 < step < 20_000
    assert f"stopped at update {step:,}" in err


@pytest.mark.slow
def test_a_terminal_that_is_closed_ends_with_a_checkpoint(tmp_path: Path, undisturbed: Path) -> None:
    """The terminal is gone by then: whatever is printed to it fails."""
    mine, theirs = pty.openpty()
    request = ["train", *REQUEST, "--out", str(tmp_path / "out"), "--steps", "20000"]
    script = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from score_rl.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", script, *request], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    threading.Thread(target=read_to_the_end, args=(mine,), daemon=True).start()
    wait_for(lambda: checkpoints(tmp_path / "out" / "fleet-0"), process)  # type: ignore[arg-type]
    os.close(mine)
    assert process.wait(timeout=60) == 130
    assert score_rl.load(tmp_path / "out").folder.status().state == "interrupted"
    assert 0 < score_rl.load(tmp_path / "out")[0].step < 20_000


def read_to_the_end(descriptor: int) -> None:
    with suppress(OSError):
        while select.select([descriptor], [], [], 0.1) and os.read(descriptor, 4096):
            pass


def test_a_folder_where_a_checkpoint_belongs_is_refused_before_training(score: Score, tmp_path: Path) -> None:
    assert score("train", *REQUEST, "--out", "out").code == 0
    for path in checkpoints(tmp_path / "out" / "fleet-0"):
        path.unlink()
        path.mkdir()
    refused = score("train", "--resume", "out")
    assert refused.code == 2
    assert "is a folder where a checkpoint belongs, and none can be written there: move it." in refused.err


def test_nothing_is_written_through_a_link(score: Score, tmp_path: Path) -> None:
    """A folder from a stranger: its lock was emptied and its table added to, wherever they led."""
    assert score("train", *REQUEST, "--out", "out").code == 0
    precious = tmp_path / "precious"
    for name in ("training.lock", "metrics.csv", "fleet-0/step-0000000070.safetensors"):
        precious.write_text("keep")
        place = tmp_path / "out" / name
        aside = place.rename(tmp_path / "aside") if place.exists() else None
        place.symlink_to(precious)
        refused = score("train", "--resume", "out", "--steps", "80")
        assert refused.code == 2
        assert f"{name} is a link" in refused.err
        assert precious.read_text() == "keep"
        place.unlink()
        if aside is not None:
            aside.rename(place)


def test_a_folder_has_one_trainer_and_a_killed_one_is_seen_at_once(score: Score, tmp_path: Path) -> None:
    def stands() -> set[str]:
        return {run.status for run in gather([tmp_path / "out"])}

    process = start_process("train", *REQUEST, "--out", tmp_path / "out", "--steps", "20000")
    wait_for(lambda: checkpoints(tmp_path / "out" / "fleet-0"), process)
    second = score("train", "--resume", "out")
    assert second.code == 2
    assert f"out is being trained by process {process.pid} on " in second.err
    assert stands() == {"training"}
    process.kill()
    process.communicate()
    assert stands() == {"silent"}
    holder = tmp_path / "out" / FILE
    holder.write_text(holder.read_text().replace('"machine": "', '"machine": "another-'))
    assert stands() == {"training"}, "another machine's process cannot be seen from here, and it wrote a moment ago"


def kill_at_random(process: "subprocess.Popen[str]", folder: Path, rng: Random) -> str:
    """Sometimes early, sometimes between checkpoints, sometimes the moment one is being written."""
    kind = rng.choice(["time", "checkpoint", "writing", "writing"])
    begin = time.monotonic()
    if kind == "time":
        wait_for(lambda: time.monotonic() - begin > rng.uniform(0.5, 6) or process.poll() is not None, process)
    else:
        known = {path.name for path in checkpoints(folder / "fleet-0")}
        parts = lambda: list((folder / "fleet-0").glob(".*.part"))  # noqa: E731
        new = lambda: {path.name for path in checkpoints(folder / "fleet-0")} - known  # noqa: E731
        seen = parts if kind == "writing" else new
        while process.poll() is None and not seen() and time.monotonic() - begin < 60:
            time.sleep(0.0005)
        time.sleep(rng.uniform(0, 0.02))
    process.kill()
    process.communicate()
    return kind


def drill(kills: int, folder: Path, rng: Random) -> list[str]:
    killed = []
    process = start_process("train", *REQUEST, "--out", folder)
    while True:
        killed.append(kill_at_random(process, folder, rng))
        if len(killed) >= kills:
            break
        if not (folder / "experiment.json").exists():
            process = start_process("train", *REQUEST, "--out", folder)
            continue
        process = start_process("train", "--resume", folder)
    process = start_process("train", "--resume", folder)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return killed


def test_two_kills_change_nothing(tmp_path: Path, undisturbed: Path) -> None:
    drill(2, tmp_path / "killed", random.Random(1))
    assert_same_result(tmp_path / "killed", undisturbed)
