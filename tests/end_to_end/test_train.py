"""From recorded data to a judged policy, through the real command."""

import shutil
import warnings
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import score_rl
from score_rl.errors import InputError, Stopped
from score_rl.report.page import write_report
from score_rl.run import launch
from score_rl.store.checkpoints import checkpoints, load_checkpoint
from score_rl.store.records import RunStatus
from score_rl.store.request import AlgorithmRequest, ExperimentSpec
from tests.data.recordings import plant, write
from tests.end_to_end.conftest import SMALL, Score


def final_arrays(folder: Path) -> dict[str, np.ndarray]:
    (path, *_), arrays = checkpoints(folder / "fleet-0"), None
    _, arrays, _ = load_checkpoint(path)
    return {name: values for name, values in arrays.items() if name != "history"}  # it holds speeds


def test_train_prints_a_table_and_leaves_a_folder_that_says_what_it_was(score: Score, tmp_path: Path) -> None:
    done = score("train", "--dataset", "replica:hopper-medium", "replica:hopper-random", "--seeds", 0, 1,
                 "--config.beta", 0.1, 0.5, "--out", "out", *SMALL)  # fmt: skip
    assert done.code == 0, done.err
    assert "behaviour policy" in done.out
    assert "Run folder: out" in done.out
    assert done.out.count("finished") == 8
    record = score_rl.load(tmp_path / "out").record
    assert len(record.runs) == 8
    assert {run.fleet for run in record.runs} == {0}, "equal shapes must train as one fleet"
    assert record.provenance["versions"]["jax"]
    assert all(len(data.checksum) == 64 for data in record.datasets.values())
    behaviour_score = record.datasets["replica:hopper-medium"].behaviour_score
    assert behaviour_score is not None
    assert behaviour_score > 20

    experiment = score_rl.load(tmp_path / "out")
    run = experiment["replica-hopper-medium_beta=0.5_seed=1"]
    assert run.config.beta == 0.5
    assert experiment[run] is run
    assert run in experiment
    assert run.id in experiment
    assert experiment.get(run.id) is run
    assert experiment.get("another") is experiment.get(99) is None
    assert dict(experiment) == dict(experiment.items()), "a mapping from ids to runs"
    assert list(experiment) == experiment.values() == experiment[:], "and a sequence of runs"
    assert "score " in experiment._repr_html_()
    assert "train/q" in run._repr_html_()
    steps, scores = run.metrics.curve("evaluation/score")
    assert list(steps) == [20, 40, 60]
    assert np.isfinite(scores).all()
    assert list(run.metrics.curve("train/critic_loss")[0]) == [10, 20, 30, 40, 50, 60]
    boards = list((tmp_path / "out" / "tensorboard" / run.id).glob("events*"))
    assert boards
    assert boards[0].stat().st_size > 500


def test_the_python_interface_mirrors_the_command(tmp_path: Path) -> None:
    run = score_rl.train(
        "replica:hopper-medium", transitions=3000, steps=40, eval_every=20, eval_episodes=2, out=tmp_path / "out",
        config={"hidden": (16, 16), "batch_size": 16}, quiet=True,
    )  # fmt: skip
    observation = np.zeros(11)
    action = run.policy(observation)
    assert action.shape == (3,)
    assert np.abs(action).max() <= 1
    batch = np.random.default_rng(0).normal(size=(7, 11))
    assert run.policy(batch).shape == (7, 3)
    doubt = run.uncertainty(batch, run.policy(batch))
    assert doubt.shape == (7,)
    assert (doubt > 0).all()
    assert run.uncertainty(observation, action).shape == ()
    assert run.metrics.last("evaluation/return") is not None
    np.testing.assert_array_equal(run.policy(batch), score_rl.load(tmp_path / "out").policy(batch))
    with pytest.raises(score_rl.InputError, match=r"expected \(11,\) or \(batch, 11\)"):
        run.policy(np.zeros(5))
    judged = run.evaluate(3)
    assert judged.returns.shape == (1, 3)
    np.testing.assert_array_equal(judged.returns, run.evaluate(3).returns)
    assert not np.array_equal(judged.returns, run.evaluate(3, seed=1).returns)


def test_a_run_can_be_printed_at_any_time(tmp_path: Path) -> None:
    out = tmp_path / "out"
    experiment = score_rl.train(
        "replica:hopper-medium", transitions=3000, steps=20, environment="none", out=out, quiet=True,
        config={"hidden": (16, 16), "batch_size": 16}, tensorboard=False,
    )  # fmt: skip
    assert repr(list(experiment)) == "[<run replica-hopper-medium_seed=0: finished at update 20>]"
    shutil.rmtree(out / "fleet-0")
    assert repr(score_rl.load(out)[0]) == "<run replica-hopper-medium_seed=0: finished at update 20>"
    (out / "status.json").unlink()
    assert repr(score_rl.load(out)[0]) == "<run replica-hopper-medium_seed=0: not started at update 0>"
    (out / "status.json").write_text("{")
    assert "state unknown" in repr(score_rl.load(out)[0])
    assert "state unknown" in repr(score_rl.load(out))


def test_data_named_from_where_training_began_are_found_from_elsewhere(
    score: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "data" / "hopper-mine.hdf5"
    file.parent.mkdir()
    small = [argument for argument in SMALL if argument not in ("--transitions", "3000")]
    built = score_rl.load_dataset("replica:hopper-medium", transitions=3000).source["path"]
    shutil.copyfile(built, file)
    assert score("train", "--dataset", "data/hopper-mine.hdf5", "--out", "out", *small).code == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    resumed = score("train", "--resume", tmp_path / "out", "--steps", "80")
    assert resumed.code == 0, resumed.err
    assert score_rl.load(tmp_path / "out").run.step == 80
    assert score_rl.train(file, steps=2, environment="none", out=tmp_path / "path", quiet=True).run.step == 2


def test_begun_in_the_same_second_they_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = ExperimentSpec(
        algorithms=(AlgorithmRequest("score"),), datasets=("replica:hopper-medium",), seeds=(0,), steps=2, eval_every=2,
        eval_episodes=1, log_every=2,
    )  # fmt: skip

    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(2024, 5, 6, 7, 8, 9)

    monkeypatch.setattr(launch, "datetime", Stopped)
    names = []
    for _ in range(3):
        path = launch.default_folder(spec)
        path.mkdir(parents=True)
        names.append(path.name)
    assert names == [f"score-hopper-medium-20240506-070809{end}" for end in ("", "-2", "-3")]


def test_evaluate_judges_fresh_episodes_under_either_physics(score: Score) -> None:
    assert score("train", "--dataset", "replica:hopper-medium", "--out", "out", *SMALL).code == 0
    ours, stock = score("evaluate", "out", "--episodes", 3), score("evaluate", "out", "--physics", "stock")
    assert (ours.code, stock.code) == (0, 0)
    assert "3 episodes each" in ours.out
    assert ours.out.split("return")[1] != stock.out.split("return")[1]
    assert score("evaluate", "out", "--run", "nobody").code == 2


def test_several_algorithms_train_into_one_experiment_and_resume(
    score: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is trained as it would be alone, also where a stop comes while the second one trains."""
    config = {"hidden": (16, 16), "batch_size": 16, "iql.temperature": [1.0, 3.0]}
    options: dict[str, Any] = {
        "dataset": "replica:hopper-medium", "transitions": 3000, "steps": 20, "log_every": 10, "quiet": True,
        "environment": "none", "tensorboard": False,
    }  # fmt: skip
    own = {"hidden": (16, 16), "batch_size": 16}
    alone = score_rl.train(algorithm="bc", config=own, out=tmp_path / "alone", **options)

    class AfterTheFirstFleet(launch.StopRequest):
        asked = property(lambda self: (tmp_path / "out" / "fleet-0").exists(), lambda self, value: None)

    with monkeypatch.context() as patch:
        patch.setattr(launch, "StopRequest", AfterTheFirstFleet)
        with pytest.raises(Stopped):
            score_rl.train(algorithm=["bc", "iql"], config=config, out=tmp_path / "out", **options)
    assert [run.status.state for run in score_rl.load(tmp_path / "out")] == ["finished", "training", "training"]

    done = score("train", "--resume", "out")
    assert done.code == 0, done.err
    assert [line.split()[0] for line in done.out.splitlines() if "finished" in line] == [
        "replica-hopper-medium_bc_seed=0",
        "replica-hopper-medium_iql_temperature=1.0_seed=0",
        "replica-hopper-medium_iql_temperature=3.0_seed=0",
    ]
    together = score_rl.load(tmp_path / "out")
    assert [run.config.temperature for run in together[1:]] == [1.0, 3.0]
    trained = [[row[1:] for row in run.metrics if row.name.startswith("train/")] for run in (alone.run, together[0])]
    assert trained[0] == trained[1]
    page = write_report([tmp_path / "out"], tmp_path / "page").read_text()
    assert "IQL: settings.temperature" in page


def test_settings_of_another_shape_train_one_after_the_other(score: Score, tmp_path: Path) -> None:
    done = score("train", "--dataset", "replica:hopper-medium", "--out", "out", *SMALL, "--config.critics", 2, 3)
    assert done.code == 0, done.err
    experiment = score_rl.load(tmp_path / "out")
    assert [run.record.fleet for run in experiment] == [0, 1]
    assert [run.state.critics.weights[0].shape[0] for run in experiment] == [2, 3]
    assert all(run.status == RunStatus("finished", 60) for run in experiment)


def test_actions_with_other_bounds_are_scaled_in_and_out(
    score: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pendulum's torque is within ±2: a Gymnasium environment, by its id."""
    import gymnasium
    import h5py

    rng = np.random.default_rng(0)
    rows: dict[str, list[Any]] = {k: [] for k in ("observations", "actions", "rewards", "next_observations")}
    env = gymnasium.make("Pendulum-v1")
    for episode in range(3):
        observation, _ = env.reset(seed=episode)
        for _ in range(200):
            action = rng.uniform(-2, 2, 1).astype(np.float32)
            following, reward, *_ = env.step(action)
            for key, value in zip(rows, (observation, action, reward, following), strict=True):
                rows[key].append(value)
            observation = following
    with h5py.File(tmp_path / "swings.hdf5", "w") as file:
        for key, values in rows.items():
            file[key] = np.asarray(values, np.float32)
        file["terminals"] = np.zeros(600, bool)
        file["timeouts"] = np.arange(600) % 200 == 199
    small = [argument for argument in SMALL if argument not in ("--transitions", "3000")]
    refused = score("train", "--dataset", "swings.hdf5", "--out", "out", *small)
    assert refused.code == 2
    assert "--action-bounds" in refused.err
    done = score("train", "--dataset", "swings.hdf5", "--environment", "Pendulum-v1", "--out", "out", *small)
    assert done.code == 0, done.err
    run = score_rl.load(tmp_path / "out").run
    last_return = run.metrics.last("evaluation/return")
    assert last_return is not None
    assert last_return < 0
    assert run.metrics.last("evaluation/score") is None, "Pendulum has no reference score"
    actions = run.policy(rng.normal(size=(200, 3)) * 10)
    assert np.abs(actions).max() <= 2
    np.testing.assert_allclose(run.treatment.action_halfwidth, 2)
    judged_without = score("train", "--dataset", "swings.hdf5", "--environment", "none", "--action-bounds", "-2", "2",
                           "--out", "other", *small)  # fmt: skip
    assert judged_without.code == 0, judged_without.err
    assert "not judged" in judged_without.out


def test_a_run_that_diverges_is_marked_and_the_others_go_on(score: Score, tmp_path: Path) -> None:
    done = score("train", "--dataset", "replica:hopper-medium", "--out", "out", *SMALL,
                 "--config.critic-learning-rate", "3e-4", "1e30")  # fmt: skip
    assert done.code == 0, done.err
    assert "diverged" in done.err
    healthy, broken = score_rl.load(tmp_path / "out")
    assert healthy.status.state == "finished"
    assert broken.status.state == "diverged"
    last_return = healthy.metrics.last("evaluation/return")
    assert last_return is not None
    assert np.isfinite(last_return)
    assert all(np.isfinite(row.value) for row in broken.metrics)
    assert score("evaluate", "out").out.count("diverged") == 1


def test_values_that_rewards_cannot_add_up_to_are_named_everywhere(score: Score, tmp_path: Path) -> None:
    done = score("train", "--dataset", "replica:hopper-medium", "--out", "out", *SMALL,
                 "--config.critic-learning-rate", "3e-4", "1e3")  # fmt: skip
    assert done.code == 0, done.err
    sound, doubtful = score_rl.load(tmp_path / "out")
    assert sound.status.warning is None
    assert "rewards add up to" in (doubtful.status.warning or "")
    with pytest.warns(UserWarning, match="do not trust the policy"):
        doubtful.policy(np.zeros(11))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sound.policy(np.zeros(11))
    assert f"Warning, {doubtful.id} by update 10" in done.err
    assert "1 of 2 runs ended with values that their rewards cannot add up to" in " ".join(done.err.split())
    assert done.out.count("doubtful") == 1
    pytest.importorskip("jinja2")
    assert score("report", "out", "--out", "page").code == 0
    page = (tmp_path / "page" / "index.html").read_text()
    assert "1 of 2 runs has values that rewards cannot add up to" in page
    assert page.count("do not trust the policy") == 1


def test_what_is_doubtful_about_a_file_is_said_before_training(score: Score, tmp_path: Path) -> None:
    rows = plant()
    rows["observations"][:, 0] *= 1000
    rows["actions"][:, 1] *= 0.01
    write(tmp_path / "plant.hdf5", rows)
    small = [argument for argument in SMALL if argument not in ("--transitions", "3000")]
    ask = ("train", "--dataset", "plant.hdf5", "--environment", "none", *small)
    done = score(*ask, "--out", "scaled")
    assert done.code == 0, done.err
    assert "Warning, plant: Action 1 stays between -0.00999" in done.err
    assert "--config.normalise-states" not in done.err, "SCORE scales observations"
    done = score(*ask, "--algorithm", "iql", "--config.normalise-states", "False", "--out", "raw")
    assert "Warning, plant: Observation 0 is of the order of" in done.err


@pytest.mark.parametrize(
    ("algorithm", "setting", "steps", "says"),
    [
        ("bear", "warmup-steps", 100, "never learns from the values"),
        ("bear", "warmup-steps", 20, None),
        ("iql", "schedule-steps", 100, "will not have fallen to 0"),
        ("iql", "schedule-steps", 30, "stands still"),
        ("iql", "schedule-steps", 60, None),
        ("iql", "schedule-steps", 0, None),
    ],
)
def test_schedules_of_another_length_than_training_are_named(
    score: Score, algorithm: str, setting: str, steps: int, says: str | None
) -> None:
    small = (*SMALL, "--config.vae-hidden", "16,16") if algorithm == "bear" else SMALL
    done = score("train", "--algorithm", algorithm, "--dataset", "replica:hopper-medium", "--out", "out", *small,
                 f"--config.{setting}", steps)  # fmt: skip
    assert done.code == 0, done.err
    notes = [line for line in done.err.splitlines() if line.startswith("Note, ")]
    assert len(notes) == (says is not None)
    if says is not None:
        share = {"warmup-steps": 2, "schedule-steps": 60}[setting]
        assert says in notes[0]
        assert notes[0].endswith(f"--config.{setting} {share}")
    if algorithm == "iql" and steps == 60:
        with pytest.raises(InputError, match=r"IQL estimates no uncertainty; these do: .*\bscore\b.*\buwac\b"):
            score_rl.load("out").uncertainty(np.zeros(11), np.zeros(3))
        done = score("train", "--resume", "out", "--steps", 80)
        assert done.code == 0, done.err
        assert "training has 80 updates, so the actor stands still" in done.err


def test_settings_that_the_authors_chose_for_the_data_are_named(score: Score) -> None:
    ask = ("train", "--algorithm", "rebrac", "--dataset", "replica:hopper-medium", *SMALL)
    done = score(*ask, "--out", "out")
    assert done.code == 0, done.err
    said = "Note, ReBRAC on replica:hopper-medium has its authors' settings for such data: "
    assert f"{said}actor_bc_weight 0.01, critic_bc_weight 0.01\n" in done.err
    done = score(*ask, "--config.actor-bc-weight", "0.5", "--out", "other")
    assert f"{said}critic_bc_weight 0.01\n" in done.err


def test_a_policy_refuses_what_it_cannot_answer(score: Score, tmp_path: Path) -> None:
    done = score("train", "--dataset", "replica:hopper-medium", "--out", "out", *SMALL)
    assert done.code == 0, done.err
    run = score_rl.load(tmp_path / "out").run
    observations, actions = np.zeros((4, 11)), np.zeros((4, 3))
    assert np.isfinite(run.uncertainty(observations, actions)).all()
    observations[2, 5] = np.nan
    with pytest.raises(InputError, match="observation 5 in row 2 is nan; give a finite number"):
        run.policy(observations)
    with pytest.raises(InputError, match="observation 5 is nan"):
        run.policy(observations[2])
    actions[1, 2] = 1.5
    with pytest.raises(InputError, match=r"action 2 is 1.5, but lies between -1 and 1"):
        run.uncertainty(np.zeros((4, 11)), actions)
