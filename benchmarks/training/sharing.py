"""Several trainings side by side on one GPU: what each process is told, and NVIDIA's service for many."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from score_rl.disk import write_file
from score_rl.errors import InputError
from score_rl.store.provenance import CODE_VERSION, code_version
from score_rl.versions import NOT_INSTALLED

MPS = "nvidia-cuda-mps-control"
TOLD_OF_FAILURE = 15  # lines of a log
SECONDS_BETWEEN_LOOKS = 1.0  # whether the parent is still there


def told_to_share(memory_share: float) -> dict[str, str]:
    """For the environment of a training: take memory as it is needed, at most this share of the GPU's."""
    return {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # JAX would take three quarters at once, and the next finds none
        "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{memory_share:.2f}",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }


@contextlib.contextmanager
def gpu_for_many() -> Iterator[None]:
    """NVIDIA's service that lets processes use a GPU at the same time, not in turns, where it is installed.

    Who finds it running leaves it running: others use it.
    """
    if shutil.which(MPS) is None:
        yield
        return
    started = subprocess.run([MPS, "-d"], check=False, stderr=subprocess.DEVNULL).returncode == 0
    try:
        yield
    finally:
        if started:
            with contextlib.suppress(subprocess.TimeoutExpired):  # it waits for processes that are still ending
                subprocess.run([MPS], input=b"quit\n", check=False, timeout=5)


def end_of(log: Path) -> str:
    """The last lines of a log."""
    return "".join(log.read_text(errors="replace").splitlines(keepends=True)[-TOLD_OF_FAILURE:]).strip()


def tell_trainings(file: Path, number: int) -> None:
    """Say how many trainings use the GPU from here, for who shares it and keeps an account."""
    if trainings_beside(file) != number:
        write_file(file, str(number))


def trainings_beside(file: Path | None) -> int:
    """How many trainings use the GPU beside one's own, as they tell in this file."""
    try:
        return int(file.read_text()) if file is not None else 0
    except (FileNotFoundError, ValueError):  # none has begun
        return 0


def stop_with_parent() -> None:
    """Ask this process for an orderly end when the one that started it is gone, even where that was killed."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def end_when_told() -> None:
    """Let SIGTERM end this process as Ctrl-C does: what it has started is stopped and stored first."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def refuse_nameless_code() -> None:
    """Results say which code they come from. A copy without git is told."""
    if code_version() == NOT_INSTALLED:
        raise InputError(
            f"results must say which code they come from, and this copy has no git to ask: set {CODE_VERSION} to its "
            "commit (git rev-parse HEAD)."
        )


def refuse_idle_gpu() -> None:
    """Where an NVIDIA GPU is there and JAX does not see it, training on the CPU would waste the GPU's time."""
    import jax

    if jax.default_backend() == "cpu" and "cpu" not in os.environ.get("JAX_PLATFORMS", "") and _has_gpu():
        raise InputError("this machine has an NVIDIA GPU that JAX does not see: pip install 'score-rl[cuda]'.")


def _has_gpu() -> bool:
    if shutil.which("nvidia-smi") is None:
        return False
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return listed.returncode == 0 and "GPU" in listed.stdout
