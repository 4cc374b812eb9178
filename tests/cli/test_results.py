"""The tables at the end of a training, in terminals of any width."""

import json
from pathlib import Path

import pytest
from rich.console import Console

import score_rl
from score_rl.cli.results import MOST_RUNS, name_in_lines, results_tables, shared_beginning
from tests.report.folders import write_experiment
from tests.report.judged_folder import write_judged

SETTINGS = ({"beta": 0.1}, {"beta": 0.2}, {"beta": 0.5})


def shown(folder: Path, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(results_tables(score_rl.load(folder), width))
    return [line.rstrip() for line in capture.get().splitlines()]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_name_is_broken_inside_a_word(tmp_path: Path, width: int) -> None:
    folder = write_experiment(
        tmp_path / "out", dataset="replica:halfcheetah-medium-expert", settings=SETTINGS,
        scores={seed: (1.0, 2.0, 3.0 + seed) for seed in range(6)},
    )  # fmt: skip
    lines = shown(folder, width)
    assert max(map(len, lines)) <= width
    whole = " ".join(lines)
    assert whole.count("replica-halfcheetah-medium-expert_") == (18 if width == 120 else 1), "shared, so said once"
    assert all(whole.count(f"seed={seed}") == 3 for seed in range(6))
    assert len([line for line in lines if "finished" in line]) == 18
    assert len(lines) < 40, "a line for each run"
    assert whole.count("SCORE (beta=") == 3


def test_means_over_seeds_come_last_with_the_best_first(tmp_path: Path) -> None:
    scores = {0: (1.0, 2.0, 30.0), 1: (1.0, 2.0, 40.0), 2: (1.0, 2.0, 20.0)}
    lines = shown(write_experiment(tmp_path / "out", settings=SETTINGS, scores=scores), 80)
    means = [line for line in lines if "SCORE (" in line]
    assert [line.split("beta=")[1][:3] for line in means] == ["0.5", "0.2", "0.1"], "later settings score higher"
    assert "50.0 ± 8.2" in means[0], "divided by n, as on the page"
    assert "31.0 ± 2.7" in means[0], "mean over seeds of (1, 2, x) / 3, and their deviation, with 20 added"
    assert any("behaviour policy 40.0 ± 1.0" in line for line in lines)


def test_one_seed_has_no_deviation(tmp_path: Path) -> None:
    folder = write_experiment(tmp_path / "out", settings=SETTINGS[:2], scores={0: (1.0, 2.0)})
    means = [line for line in shown(folder, 80) if "SCORE (" in line]
    assert len(means) == 2
    assert not any("±" in line for line in means)


def test_only_whole_parts_are_shared() -> None:
    assert shared_beginning(["a_b=0.1_seed=0", "a_b=0.2_seed=0"]) == "a_"
    assert shared_beginning(["a_seed=0", "a_seed=1"]) == "a_"
    assert shared_beginning(["one_seed=0"]) == shared_beginning(["a_x", "b_x"]) == ""


def test_one_episode_has_no_deviation_and_two_have(tmp_path: Path) -> None:
    for episodes, deviation in ((1, False), (2, True)):
        folder = write_experiment(tmp_path / str(episodes), scores={0: (1.0, 2.0), 1: (3.0, 4.0)})
        rows = (folder / "metrics.csv").read_text()
        more = [line.replace("/score,", "/score_std,") for line in rows.splitlines() if "/score," in line]
        (folder / "metrics.csv").write_text(rows + "\n".join([*more, ""]))
        record = json.loads((folder / "experiment.json").read_text())
        record["request"]["eval_episodes"] = episodes
        (folder / "experiment.json").write_text(json.dumps(record))
        (run, *_) = [line for line in shown(folder, 80) if "finished" in line]
        assert ("±" in run) == deviation


def test_a_single_run_stands_beside_the_behaviour_policy(tmp_path: Path) -> None:
    lines = shown(write_experiment(tmp_path / "out", scores={0: (1.0, 2.0)}), 80)
    assert any("40.0 ± 1.0" in line and "finished" in line for line in lines)
    assert not any("best first" in line for line in lines)


def test_of_many_runs_only_those_that_need_a_look_are_listed(tmp_path: Path) -> None:
    scores = dict.fromkeys(range(MOST_RUNS + 1), (1.0, 2.0))
    folder = write_experiment(tmp_path / "out", scores=scores, states={3: "diverged"})
    lines = shown(folder, 80)
    assert sum("seed=" in line for line in lines) == 1
    assert any("diverged" in line for line in lines)
    assert any(f"{MOST_RUNS} more runs finished" in line for line in lines)
    assert any(f"{MOST_RUNS} of {MOST_RUNS + 1}" in line for line in lines)


def test_without_a_simulator_no_score_is_shown(tmp_path: Path) -> None:
    lines = shown(write_experiment(tmp_path / "out", scores={0: (), 1: ()}, environment=None), 80)
    assert lines[1].startswith("not judged in episodes")
    assert not any("learned policy" in line for line in lines)


def test_names_break_between_their_parts() -> None:
    assert name_in_lines("logs_beta=0.1_seed=0", 12) == "logs_\nbeta=0.1_\nseed=0"
    assert name_in_lines("logs_seed=0", 40) == "logs_seed=0"
    assert "\n" not in name_in_lines("averylongnamewithoutparts", 5)


def test_what_the_judge_does_not_trust_is_said_and_red(tmp_path: Path) -> None:
    folder = write_judged(tmp_path / "out")
    console = Console(width=100, force_terminal=True, color_system="standard")
    with console.capture() as capture:
        console.print(results_tables(score_rl.load(folder), 100))
    lines = capture.get().splitlines()
    good = next(line for line in lines if "seed=0" in line)
    ruined = next(line for line in lines if "seed=1" in line)
    assert "\x1b[1;31m" in ruined, "bold red"
    assert "\x1b[1;31m" not in good
    words = " ".join(shown(folder, 100))
    assert "better than the behaviour" in words
    assert "not to be trusted" in words


def test_sums_over_unequal_recordings_stand_nowhere(tmp_path: Path) -> None:
    """Beside returns of whole episodes the behaviour is shown per step, and so is the policy."""
    folder = write_experiment(tmp_path / "out", scores={0: (10.0, 20.0)}, metric="evaluation/return", unequal=True)
    (line,) = [line for line in shown(folder, 100) if "finished" in line]
    assert "0.25 per step" in line
    assert "1000.0" not in line
    assert any("0.4 per step" in line for line in shown(folder, 100)), "20 in episodes of 50 steps"


def test_settings_that_the_judge_does_not_trust_are_counted(tmp_path: Path) -> None:
    folder = write_experiment(tmp_path / "out", settings=SETTINGS[:2], scores={0: (1.0, 2.0), 1: (2.0, 3.0)})
    assert not any("suspect" in line for line in shown(folder, 100))
    status = folder / "status.json"
    stored = json.loads(status.read_text())
    next(iter(stored["runs"].values()))["warning"] = "Q is 9."
    status.write_text(json.dumps(stored))
    lines = shown(folder, 100)
    assert any("suspect" in line for line in lines)
    assert any("SCORE (beta=0.1)" in line and "1 of 2" in line for line in lines)
