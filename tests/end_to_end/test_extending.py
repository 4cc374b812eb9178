"""docs/extending.md: algorithms, environments and trackers of somebody's own, with the real libraries and offline."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import score_rl
from score_rl.algorithms import registry
from score_rl.algorithms.registry import get_algorithm, import_algorithm, installed_plugins
from score_rl.data.catalogue import load_dataset
from score_rl.disk import cache_folder
from score_rl.errors import InputError
from tests.data.recordings import plant, write
from tests.end_to_end.conftest import Score
from tests.test_documents import blocks

TINY: dict[str, Any] = {
    "config": {"hidden": (8, 8), "batch_size": 8}, "steps": 20, "log_every": 10, "eval_every": 20, "quiet": True,
    "tensorboard": False,
}  # fmt: skip
TINY_FLAGS = (
    "--config.hidden",
    "8,8",
    "--config.batch-size",
    "8",
    "--log-every",
    "10",
    "--eval-every",
    "20",
    "--quiet",
)
NAME = "my_methods:ALGORITHM"
PENDULUM = """
import gymnasium
gymnasium.register("Mine-v0", entry_point="gymnasium.envs.classic_control:PendulumEnv", max_episode_steps=20)
"""


def documented(word: str, language: str = "python") -> str:
    return next(block for block in blocks("docs/extending.md", language) if word in block)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where somebody works, with logs and a module; nothing of it stays imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))
    write(tmp_path / "logs.hdf5", plant())
    (tmp_path / "my_methods.py").write_text(documented("blur: float"))
    (tmp_path / "my_plant.py").write_text(PENDULUM)
    yield tmp_path
    for module in ("my_methods", "my_plant"):
        sys.modules.pop(module, None)


def in_a_fresh_process(text: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_algorithm_in_a_module(folder: Path, score: Score) -> None:
    """Trained by the documented command beside one of ours. The folder never imports it; whoever does may use it."""
    train = documented("--algorithm my_methods", "bash").splitlines()[0].split()[1:]
    done = score(*train, "--steps", "20", *TINY_FLAGS)
    assert done.code == 0, done.err
    run = "logs_my_methods-ALGORITHM_blur=0.05_seed=0"
    experiment = score_rl.load(folder / "runs" / "mine")
    assert {run, "logs_bc_seed=1"} <= set(experiment.keys())
    expected = experiment[run].policy(load_dataset("logs.hdf5").observations)
    told = in_a_fresh_process(
        "import sys, numpy as np, score_rl\n"
        "runs = score_rl.load('runs/mine')\n"
        "observations = score_rl.load_dataset('logs.hdf5').observations\n"
        "runs['logs_bc_seed=0'].policy(observations)\n"
        f"try: runs[{run!r}].policy(observations)\n"
        "except score_rl.InputError as error: print(error)\n"
        "assert 'my_methods' not in sys.modules\n"
        + documented("import my_methods")
        + "np.save('actions.npy', actions)\n"
    )
    assert "is in the module my_methods, which is not imported" in told
    np.testing.assert_allclose(np.load("actions.npy"), expected, rtol=1e-6)
    sys.modules.pop("my_methods")
    refused = score("train", "--resume", "runs/mine", "--steps", "40", "--quiet")
    assert refused.code == 2
    assert "--import my_methods in the command line" in refused.err
    done = score("train", "--resume", "runs/mine", "--steps", "40", "--quiet", "--import", "my_methods")
    assert done.code == 0, done.err
    assert {run.step for run in score_rl.load("runs/mine")} == {40}
    assert "Blurred BC: networks" in score("algorithms", NAME).out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_methods:ALGORITHM", "needs the module 'no_methods', which is neither installed nor in"),
        ("my_methods:OTHER", "OTHER of the algorithm my_methods:OTHER is not there"),
        ("my_methods:Config", "Config of the algorithm my_methods:Config is a type"),
    ],
)
def test_what_is_no_algorithm(folder: Path, name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        import_algorithm(name)


def test_an_installed_package_gives_its_algorithms_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = folder / "my_methods-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-methods\nVersion: 1.0\n")
    points = documented("entry-points", "toml").splitlines()[1].replace('"', "")
    (about / "entry_points.txt").write_text(f"[score_rl.algorithms]\n{points}\nscore = my_methods:ALGORITHM\n")
    monkeypatch.syspath_prepend(folder)
    installed_plugins.cache_clear()
    try:
        assert installed_plugins() == {"blurred-bc": "my_methods:ALGORITHM"}
        plugin = get_algorithm("blurred_bc")
        assert (plugin.name, plugin.title) == ("blurred-bc", "Blurred BC")
        assert get_algorithm("score").title == "SCORE", "a name of ours stays ours"
        assert registry.algorithm_name("Blurred-BC") == "blurred-bc"
    finally:
        installed_plugins.cache_clear()


def test_an_environment_in_a_module(folder: Path, score: Score) -> None:
    """It is imported where it is named, in judging processes too, and never because a folder names it."""
    rng = np.random.default_rng(0)
    rows = {
        "observations": rng.normal(size=(200, 3)),
        "actions": rng.uniform(-2, 2, (200, 1)),
        "rewards": np.arange(200.0),
    }
    data = {**rows, "episodes": np.arange(200) // 20, "times": np.arange(200)}
    options = {**TINY, "environment": "my_plant:Mine-v0", "algorithm": "bc", "eval_episodes": 1}
    experiment = score_rl.train(data, action_bounds=(-2, 2), out="runs/plant", **options)
    (returned,) = experiment.metrics.curve("evaluation/return")[1]
    assert returned < 0
    sys.modules.pop("my_plant")
    (cache_folder() / "trusted" / "modules.txt").write_text("")  # as on another machine
    for command in (
        ("evaluate", "runs/plant", "--episodes", "1"),
        ("train", "--resume", "runs/plant", "--steps", "40"),
    ):
        refused = score(*command)
        assert refused.code == 2
        assert "which would run the module 'my_plant'" in refused.err
        assert "my_plant" not in sys.modules
    done = score("evaluate", "runs/plant", "--episodes", "1", "--import", "my_plant")
    assert done.code == 0, done.err
    done = score("train", "--resume", "runs/plant", "--steps", "40", "--quiet", "--import", "my_plant")
    assert done.code == 0, done.err


def test_every_row_of_metrics_is_told(folder: Path) -> None:
    told: dict[tuple[str, int, str], float] = {}

    def callback(run: str, update: int, measured: Any) -> None:
        told.update({(run, update, name): value for name, value in measured.items()})

    whole = score_rl.train("logs.hdf5", algorithm="bc", seeds=[0, 1], callback=callback, out="runs/told", **TINY)
    assert told == {(row.run, row.step, row.name): row.value for row in whole.metrics}
    told.clear()
    longer = score_rl.resume("runs/told", steps=40, quiet=True, callback=callback)
    assert told == {(row.run, row.step, row.name): row.value for row in longer.metrics if row.step > 20}


def test_what_a_callback_raises_ends_training(folder: Path) -> None:
    def callback(run: str, update: int, measured: Any) -> None:
        raise RuntimeError("the tracker is gone")

    with pytest.raises(RuntimeError, match="the tracker is gone"):
        score_rl.train("logs.hdf5", algorithm="bc", callback=callback, out="runs/ended", **TINY)
    assert score_rl.load("runs/ended").folder.status().error == "the tracker is gone"
    assert len(score_rl.resume("runs/ended", quiet=True).metrics) > 0


def run_documented(word: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The documented example, with a small training in place of its own."""
    text = documented(word)
    assert len([line for line in text.splitlines() if line.strip() and not line.startswith("import")]) <= 13
    real = score_rl.train
    small = {**TINY, "algorithm": "bc", "out": "runs/tracked"}
    monkeypatch.setitem(score_rl.__dict__, "train", lambda dataset, **asked: real(dataset, **{**asked, **small}))
    names: dict[str, Any] = {}
    exec(text, names)
    return names


@pytest.mark.filterwarnings("ignore")
def test_weights_and_biases(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    for name, value in (("MODE", "offline"), ("SILENT", "true"), ("DIR", str(folder))):
        monkeypatch.setenv(f"WANDB_{name}", value)
    names = run_documented("import wandb", monkeypatch)
    assert sorted(names["runs"]) == ["logs_seed=0", "logs_seed=1"]
    wanted = [json.dumps(run.metrics.last("train/bc_error")).encode() for run in names["experiment"]]
    until = time.monotonic() + 60
    while not written_for_sync(folder, wanted):  # its own process writes the files, and may not have finished
        assert time.monotonic() < until, "no file that `wandb sync` sends has the last error"
        time.sleep(0.1)


def written_for_sync(folder: Path, values: list[bytes]) -> bool:
    """Whether one file for each value has it."""
    contents = [file.read_bytes() for file in folder.glob("wandb/offline-run-*/*.wandb")]
    return [sum(value in content for content in contents) for value in values] == [1] * len(values)


@pytest.mark.filterwarnings("ignore")
def test_mlflow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{folder}/mlruns")
    names = run_documented("import mlflow", monkeypatch)
    history = names["client"].get_metric_history(names["runs"]["logs_seed=1"], "train/bc_error")
    steps, values = names["experiment"]["logs_seed=1"].metrics.curve("train/bc_error")
    assert [(each.step, each.value) for each in history] == list(zip(steps.tolist(), values.tolist(), strict=True))
    assert mlflow.get_run(names["runs"]["logs_seed=0"]).info.status == "FINISHED"
