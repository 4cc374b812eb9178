"""Every table and figure of the paper through the command line: from nothing to a picture that says what it shows."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from score_rl.paper.experiments.registry import EXPERIMENTS
from score_rl.report.published import paper_dataset
from score_rl.report.stored_results import read_stored
from tests.end_to_end.conftest import Score, start_process, wait_for

STORED = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One pool of runs for all of them, as a user would have."""
    return tmp_path_factory.mktemp("experiments")


def check(name: str, folder: Path, scale: str) -> dict[str, Any]:
    """Files, and that what they say is what was measured."""
    result = json.loads((folder / "result.json").read_text())
    assert result["experiment"] == name
    assert result["scale"] == scale
    assert result["not_finished"] == []
    assert "proves nothing" in result["what_it_shows"]
    assert result["provenance"]["versions"]["jax"]
    files = {Path(file).suffix for file in result["files"]}
    assert {".svg", ".pdf", ".csv", ".tex"} <= files
    for file in result["files"]:
        assert (folder / file).stat().st_size > 0
    pictures = [(folder / file).read_text() for file in result["files"] if file.endswith(".svg")]
    for picture in pictures:
        assert "nothing." in picture  # matplotlib names what it draws: the warning is in the picture
    return result


# One of each kind in the fast tests, every name in all of them.
FAST = ("main-table", "grid", "uncertainty-map", "sweep-beta", "false-correlation")
NAMES = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in EXPERIMENTS]


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_and_says_what_it_shows(score: Score, out: Any, name: str) -> None:
    done = score("experiment", "run", name, "--scale", "smoke", "--out", out)  # not quiet: messages can fail too
    assert done.code == 0, done.err
    assert f"Drawing {name} ..." in done.err
    assert "proves nothing" in done.out
    folder = out / name / "smoke"
    assert str(folder) in done.out
    result = check(name, folder, "smoke")
    if "groups" in result["numbers"]:  # curves: the table's means are those of the stored runs
        check_groups(folder, result["numbers"]["groups"])
    if name == "grid":
        check_choice(folder, result["numbers"]["datasets"])


def check_choice(folder: Path, datasets: Any) -> None:
    """The chosen setting's runs are there with the reported seeds, and the others with those that chose."""
    runs = json.loads((folder / "runs" / "summary.json").read_text())["runs"]
    (found,) = datasets
    seeds: dict[tuple[float, float], set[int]] = {}
    for run in runs:
        setting = (run["config"]["beta"], run["config"]["bc_decay"])
        seeds.setdefault(setting, set()).add(run["seed"])
    reported, chosen = {0, 1}, tuple(found["chosen"].values())
    assert len(seeds) == 9
    assert set(found["by_seeds"]).isdisjoint(reported)
    assert all(set(found["by_seeds"]) <= mine for mine in seeds.values())
    assert {setting for setting, mine in seeds.items() if reported <= mine} == {chosen, (0.2, 0.98)}
    assert found["chosen"] == {
        k: v for k, v in max(found["grid"], key=lambda each: each["mean"]).items() if k != "mean"
    }
    assert len(found["chosen_last"]) == 2


def check_groups(folder: Path, groups: Any) -> None:
    runs = json.loads((folder / "runs" / "summary.json").read_text())["runs"]
    with (folder / "runs" / "curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sum(group["asked"] for group in groups) == len(runs)
    for dataset in {run["dataset"] for run in runs}:
        mine = {str(number) for number, run in enumerate(runs) if run["dataset"] == dataset}
        last = [
            float(r["value"])
            for r in rows
            if r["run"] in mine and r["name"] == "evaluation/score" and r["step"] == "40"
        ]
        means = [group["last"]["evaluation/score"]["mean"] for group in groups if group["dataset"] == dataset]
        assert sum(means) / len(means) == pytest.approx(sum(last) / len(last), rel=1e-4)


def test_again_trains_nothing(score: Score, out: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (out / "fleets").rglob("*") if path.is_file()}
    quiet = score("experiment", "run", "sweep-beta", "--scale", "smoke", "--out", out, "--quiet")
    assert (quiet.code, quiet.err) == (0, "")
    done = score("experiment", "run", "sweep-beta", "--scale", "smoke", "--out", out)
    assert done.code == 0
    assert "8 of 8 runs are there already." in done.err
    after = {path: path.stat().st_mtime_ns for path in (out / "fleets").rglob("*") if path.is_file()}
    assert {path: after[path] for path in before} == before


def test_an_interrupted_experiment_is_gone_on_with(score: Score, tmp_path: Path) -> None:
    options = ("--scale", "smoke", "--steps", "4000", "--seeds", "0", "--datasets", "hopper-medium", "--out", tmp_path)
    command = ("experiment", "run", "ablation-bc", *options)
    process = start_process(*command)
    wait_for(lambda: any(path.stat().st_size > 500 for path in tmp_path.glob("fleets/*/metrics.csv")), process)
    process.send_signal(2)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "call the same command again" in said
    assert not (tmp_path / "ablation-bc" / "smoke").exists()
    done = score(*command)
    assert done.code == 0, done.err
    assert "Going on with" in done.err
    check("ablation-bc", tmp_path / "ablation-bc" / "smoke", "smoke")
    assert len(list((tmp_path / "fleets").iterdir())) == 1


def test_list_names_all_and_their_cost(score: Score) -> None:
    done = score("experiment", "list")
    assert done.code == 0
    for name in EXPERIMENTS:
        assert name in done.out
    assert "50 × 300k" in done.out  # sweep-alpha in a day: 5 values, 2 data sets, 5 seeds
    assert "smoke" not in done.out


def test_plan_leaves_nothing_behind(score: Score, tmp_path: Path) -> None:
    done = score("experiment", "run", "false-correlation", "--scale", "trial", "--out", tmp_path / "out", "--plan")
    assert done.code == 0, done.err
    assert "drives-000" in done.out  # what would be trained on, drawn in passing
    assert not (tmp_path / "out").exists()


def test_plan_says_what_would_be_trained(score: Score, tmp_path: Path) -> None:
    done = score("experiment", "run", "sweep-alpha", "sweep-beta", "--scale", "day", "--out", tmp_path, "--plan")
    assert done.code == 0
    assert "24,000,000" in done.out  # 8 settings, 2 data sets, 5 seeds
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_kept_results_are_shown_without_training(score: Score, tmp_path: Path) -> None:
    done = score(
        "experiment", "run", "main-table", "aggregates", "profiles", "--from-stored", STORED, "--out", tmp_path
    )  # fmt: skip
    assert done.code == 0, done.err
    assert not (tmp_path / "fleets").exists()
    for name in ("main-table", "aggregates", "profiles"):
        result = json.loads((tmp_path / name / "stored" / "result.json").read_text())
        assert result["scale"] is None
        assert "stored results" in result["what_it_shows"]
    with (tmp_path / "main-table" / "stored" / "table.csv").open() as file:
        rows = {(row["dataset"], row["method"]): row for row in csv.DictReader(file)}
    for folder in ("bc-hopper", "bc-halfcheetah-walker2d"):  # in the paper's length: what is shorter gives way to them
        kept = read_stored(STORED / folder)
        for dataset in {run.dataset for run in kept}:
            row = rows[paper_dataset(dataset), "BC"]
            assert (row["data"], row["updates"]) == (dataset, "1000000")
            scores = [run.score for run in kept if run.dataset == dataset and run.score is not None]
            assert float(row["mean"]) == pytest.approx(sum(scores) / len(scores))


@pytest.mark.parametrize("name", ["ablation-bc", "ablation-constraint", "sweep-critics"])
def test_an_ablation_finds_its_runs_among_those_of_others(score: Score, tmp_path: Path, name: str) -> None:
    done = score("experiment", "run", name, "--from-stored", STORED, "--out", tmp_path)
    assert done.code == 0, done.err
    made, kept = (
        {
            (found["dataset"], found["variant"], found["asked"]): found["last"]["evaluation/score"]["mean"]
            for found in of
        }
        for of in (
            json.loads((folder / "result.json").read_text())["numbers"]["groups"]
            for folder in (tmp_path / name / "stored", STORED / "experiments" / name)
        )
    )
    assert made == pytest.approx(kept, rel=1e-5)


def test_one_line_is_no_figure(score: Score, tmp_path: Path) -> None:
    done = score("experiment", "run", "ablation-bc", "--from-stored", STORED / "hopper-medium", "--out", tmp_path)
    assert done.code == 2
    assert "holds no runs that ablation-bc could compare" in done.err


def test_from_stored_alone_means_the_checkout(score: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(STORED.parents[1])
    done = score("experiment", "run", "profiles", "--out", tmp_path, "--from-stored")
    assert done.code == 0, done.err
    assert (tmp_path / "profiles" / "stored" / "profiles.svg").exists()
    monkeypatch.chdir(tmp_path)
    done = score("experiment", "run", "profiles", "--from-stored")
    assert done.code == 2
    assert "run it in a checkout of this project, or name a folder" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sweep-gamma",), "sweep-"),
        ((), "score experiment list"),
        (("sweep-beta", "--scale", "month"), "trial, day or paper"),
        (("sweep-beta", "--source", "minari"), "neither replica nor d4rl"),
        (("sweep-beta", "--source", "nowhere.hdf5"), "it does not exist"),
        (("runtime", "--source", "nowhere.hdf5", "--plan"), "it does not exist"),
        (("uncertainty-map", "--source", "nowhere.hdf5"), "it does not exist"),
        (("sweep-beta", "--source", ".."), "it is a folder"),
        (("sweep-beta", "--source"), "--source is empty"),
        (("sweep-beta", "--source", "replica", "d4rl"), "one of the three"),
        (("false-correlation", "--source", "nowhere.hdf5"), "draws its own"),
        (("false-correlation", "--datasets", "hopper-medium"), "draws its own"),
        (("sweep-beta", "--datasets", "hopper-medum"), "did you mean 'hopper-medium'"),
        (("runtime", "--datasets", "hopper-medum", "--plan"), "did you mean 'hopper-medium'"),
        (("main-table", "--methods", "dqn"), "unknown method"),
        (("sweep-beta", "--methods", "cql"), "compares none"),
        (("sweep-beta", "--steps", "1"), "2 or more"),
        (("uncertainty-map", "--datasets", "hopper-medium"), "medium-replay"),
        (("runtime", "--from-stored", "."), "cannot be rebuilt"),
        (("sweep-beta", "--from-stored", "nowhere"), "does not exist"),
    ],
)
def test_bad_requests_are_refused_in_a_sentence(score: Score, arguments: tuple[str, ...], message: str) -> None:
    done = score("experiment", "run", *(STORED if a == "." else a for a in arguments))
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.timeout(660)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_trial_runs_from_nothing(tmp_path: Path, name: str) -> None:
    """As a user would start it: programs compiled with all optimisations, unlike those of the other tests."""
    request = ("experiment", "run", name, "--scale", "trial", "--out", tmp_path, "--quiet")
    process = start_process(*request, XLA_FLAGS="")
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    check(name, tmp_path / name / "trial", "trial")
