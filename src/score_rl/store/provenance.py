"""What produced a result: code, libraries, machine."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from score_rl.versions import version_of

CODE_VERSION = "SCORE_RL_CODE_VERSION"  # what to store as the code's version, where a copy's git cannot say


def provenance() -> dict[str, Any]:
    """What produced a result: code, libraries, machine."""
    import jax

    from score_rl.engine.compilation import processor

    packages = ("score-rl", "jax", "jaxlib", "equinox", "numpy", "mujoco", "gymnasium", "h5py", "safetensors")
    versions = {package: version_of(package) for package in packages}
    devices = jax.local_devices()
    return {
        "code": code_version(),
        "versions": versions,
        "python": platform.python_version(),
        "device": {"platform": devices[0].platform, "kind": devices[0].device_kind, "count": len(devices)},
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def code_version() -> str:
    """What SCORE_RL_CODE_VERSION says, else the commit when run from a checkout, else the installed version."""
    if os.environ.get(CODE_VERSION):
        return os.environ[CODE_VERSION]
    source = Path(__file__).resolve().parent
    try:
        git = ["git", "-C", str(source)]
        top = subprocess.run([*git, "rev-parse", "--show-toplevel"], capture_output=True, text=True, timeout=10)
        if top.returncode == 0 and (Path(top.stdout.strip()) / "src" / "score_rl").is_dir():
            commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10)
            changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, timeout=10)
            if commit.returncode == 0:
                return commit.stdout.strip() + (" with uncommitted changes" if changed.stdout.strip() else "")
    except (OSError, subprocess.TimeoutExpired):
        pass  # no git on this machine
    return version_of("score-rl")
