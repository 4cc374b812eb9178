"""The other commands, as a person calls them."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Never

import pytest

import score_rl.cli as cli
from score_rl.algorithms.registry import algorithm_names, get_algorithm
from score_rl.run.expansion import expand_runs
from score_rl.store.request import AlgorithmRequest, ExperimentSpec
from tests.end_to_end.conftest import Score
from tests.run.conftest import recording


def test_help_answers_without_loading_jax(score: Score) -> None:
    code = (
        "import sys, score_rl.cli\ntry: score_rl.cli.main(['--help'])\n"
        "except SystemExit: pass\nprint('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip().endswith("False"), done.stdout + done.stderr
    assert "score train" in done.stdout
    assert score().code == 2
    assert score("--version").out.strip()


@pytest.mark.parametrize("command", ["train", "evaluate", "report", "algorithms", "data", "theory"])
def test_every_command_has_a_help_that_teaches(score: Score, command: str) -> None:
    done = score(command, "--help")
    assert done.code == 0
    assert f"usage: score {command}" in done.out


def test_evaluate_help_names_a_run_as_runs_are_named(score: Score) -> None:
    (run,) = expand_runs(
        ExperimentSpec((AlgorithmRequest("score"),), ("replica:hopper-medium",), (0,), 2, 2, 1, 2),
        [dataclasses.replace(recording(), name="replica:hopper-medium")],
    )
    assert f"--run {run.id}\n" in re.sub(r"[ │]+\n", "\n", score("evaluate", "--help").out)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
def test_a_reader_that_leaves_is_no_error() -> None:
    code = "import score_rl.cli; score_rl.cli.main(['train', '--help'])"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 141


def test_another_broken_pipe_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(arguments: list[Any]) -> Never:
        raise BrokenPipeError("of a process that died")

    monkeypatch.setitem(cli.COMMANDS, "train", (breaks, ""))
    with pytest.raises(BrokenPipeError, match="died"):
        cli.main(["train"])


def test_train_help_shows_the_settings_of_the_chosen_algorithm(score: Score) -> None:
    assert "--config.bc-decay" in score("train", "--help").out
    shown = score("train", "--algorithm", "iql", "--help-all").out
    assert "--config.expectile" in shown
    assert "--config.bc-decay-every" not in shown


def test_train_help_shows_the_papers_settings_first(score: Score) -> None:
    shown = score("train", "--help-all").out
    settings = re.findall(r"--config\.([a-z-]+)", shown[shown.index("SCORE, the method") :])  # after the examples
    papers = {"beta", "bc-decay", "bc-decay-every", "critics", "actor-delay", "tau", "target-noise"}
    assert {*settings[:8]} == {*papers, "target-noise-clip"}
    headings = ["SCORE, the method", "SCORE, networks, optimisers", "SCORE, ablations"]
    places = [shown.index(heading) for heading in headings]
    assert places == sorted(places)
    assert len(settings) == len({*settings}) == len(dataclasses.fields(get_algorithm("score").Config))


def test_algorithms_lists_all_and_explains_one(score: Score) -> None:
    shown = score("algorithms").out
    assert all(name in shown for name in algorithm_names())
    one = score("algorithms", "score").out
    assert "bc_decay" in one
    assert "0.98" in one
    assert "walker2d-expert*" in score("algorithms", "sac-n").out, "what the authors chose for single data sets"


@pytest.mark.parametrize("name", algorithm_names())
def test_no_setting_is_cut_in_a_narrow_terminal(score: Score, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = score("algorithms", name).out
    assert "…" not in shown
    assert all(f" {field.name} " in shown for field in dataclasses.fields(get_algorithm(name).Config))


def test_data_list_info_build_and_check(score: Score, cache: Path) -> None:
    assert "replica:walker2d-expert" in score("data", "list").out
    built = score("data", "build", "replica:hopper-expert", "--transitions", 2000)
    assert built.code == 0, built.err
    assert "2,000 rows" in built.out
    shown = score("data", "info", "replica:hopper-expert", "--transitions", 2000)
    assert "normalised score" in shown.out
    assert "█" in shown.out
    (file,) = cache.rglob("*hopper-expert*.hdf5")
    assert score("data", "check", file).code == 0
    file.write_bytes(file.read_bytes()[:5000])
    broken = score("data", "check", file)
    assert broken.code == 2
    assert "truncated" in broken.out
    file.unlink()


def test_recollect_needs_a_policy_and_uses_it(score: Score, tmp_path: Path, cache: Path) -> None:
    assert score("data", "build", "replica:hopper-medium", "--transitions", 2500).code == 0
    (file,) = cache.rglob("*hopper-medium-2500*.hdf5")
    done = score("data", "recollect", file, "--out", "again.hdf5", "--transitions", 1500)
    assert done.code == 0, done.err
    assert "1,500 rows" in done.out
    assert (tmp_path / "again.hdf5").exists()
    refused = score("data", "recollect", file, "--out", "again.hdf5")
    assert refused.code == 2
    assert "exists already" in refused.err


def test_theory_lists_runs_and_refuses(score: Score, tmp_path: Path) -> None:
    shown = score("theory", "list")
    assert "green-lights" in shown.out
    done = score("theory", "run", "corrections", "--out", "theory")
    assert done.code == 0, done.err
    numbers = json.loads((tmp_path / "theory" / "corrections" / "numbers.json").read_text())
    assert numbers
    refused = score("theory", "run", "greenlights")
    assert refused.code == 2
    assert "'green-lights'" in refused.err
