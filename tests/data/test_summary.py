"""The overview of a data set, and the figures in it."""

import numpy as np
import pytest
from rich.console import Console

from score_rl.data.dataset import Dataset, make_dataset
from score_rl.data.labels import Labels
from score_rl.data.summary import (
    action_range_used,
    cells_visited,
    effective_dimension,
    facts,
    histogram,
    saturation,
    summary,
)

from .recordings import hopper_recording, recording


def dataset_of(observations: np.ndarray, actions: np.ndarray, **options: object) -> Dataset:
    rows = len(observations)
    ends = np.zeros(rows, dtype=bool)
    ends[-1] = True
    return make_dataset(
        "test",
        observations=observations,
        next_observations=observations,
        actions=actions,
        rewards=np.ones(rows),
        terminals=ends,
        timeouts=np.zeros(rows, dtype=bool),
        **options,  # type: ignore[arg-type]
    )


def test_everything_is_on_the_page() -> None:
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(summary(make_dataset("mine[/x]", **recording((50, 40, 3), "tcp"))))
    page = captured.get()
    for words in ("mine[/x]", "93", "3 dimensions", "2 dimensions, -1 to 1", "3: 2 complete, 1 partial", "█"):
        assert words in page
    assert "normalised" not in page


def test_scores_where_there_is_a_reference() -> None:
    lines = facts(make_dataset("test", **hopper_recording(), environment="hopper"))
    assert lines["normalised score"].startswith("0.")


def test_only_partial_episodes() -> None:
    lines = facts(make_dataset("test", **recording((4, 3), "cp", observations=np.ones((7, 3)))))
    assert lines["trajectories"] == "2: 1 complete, 1 partial"


def test_saturation_counts_values_near_a_bound_in_its_own_units() -> None:
    actions = np.array([[1.99, -2.0], [0.0, 1.5]])
    assert saturation(dataset_of(np.ones((2, 1)), actions, action_bounds=(-2.0, 2.0))) == 0.5


def test_action_range() -> None:
    generator = np.random.default_rng(0)
    observations = np.ones((5000, 1))
    assert action_range_used(dataset_of(observations, generator.uniform(-1, 1, (5000, 2)))) == 1.0
    assert action_range_used(dataset_of(observations, np.full((5000, 2), 0.3))) == 1 / 20


def test_effective_dimension() -> None:
    generator = np.random.default_rng(0)
    independent = dataset_of(generator.normal(size=(8000, 3)), generator.uniform(-1, 1, (8000, 2)))
    assert effective_dimension(independent) == pytest.approx(5.0, abs=0.05)
    line = np.linspace(-1, 1, 500)[:, None]
    assert effective_dimension(dataset_of(np.tile(line, 3), np.tile(line, 2))) == pytest.approx(1.0)
    assert effective_dimension(dataset_of(np.ones((4, 3)), np.zeros((4, 2)))) == 0.0


def test_a_loop_visits_fewer_cells_than_noise() -> None:
    generator = np.random.default_rng(0)
    angle = np.linspace(0, 200, 20_000)[:, None]
    loop = dataset_of(np.concatenate([np.sin(angle), np.cos(angle)], axis=1), np.sin(angle))
    noise = dataset_of(generator.normal(size=(20_000, 2)), generator.uniform(-1, 1, (20_000, 1)))
    assert cells_visited(loop) < 0.25 < 0.6 < cells_visited(noise)
    assert cells_visited(dataset_of(np.ones((4, 3)), np.zeros((4, 2)))) == 1 / 400


def test_histogram_lines() -> None:
    lines = histogram(np.array([0.0] * 10 + [1.0] * 5), bins=2)
    assert [line.count("█") for line in lines] == [40, 20]
    assert histogram(np.array([3.0, 3.0])) == [f"{2.5:>10.1f} to {3.5:>10.1f} {2:>8} {'█' * 40}"]


def test_what_was_dropped_and_terminals_on_the_way_are_said() -> None:
    arrays = recording((5, 1, 4), "ccc", next_observations=None)
    lines = facts(make_dataset("test", **arrays))
    assert lines["dropped"] == "3 recorded rows without a next observation, 1 of them a whole trajectory"
    assert "dropped" not in facts(make_dataset("test", **recording((5, 4), "tc")))
    ends, solved = arrays.pop("timeouts"), np.isin(np.arange(10), (1, 2))
    lines = facts(make_dataset("test", **{**arrays, "terminals": solved}, trajectory_ends=ends))
    assert lines["marks"] == "2 terminals (2 inside a trajectory), 0 timeouts"


def test_small_rewards_keep_their_figures() -> None:
    rewards = -1e-3 * np.linspace(0.5, 1.5, 12)
    lines = facts(make_dataset("test", **recording(rewards=rewards)))
    assert lines["return"] == "-0.003886 ± 0.000477, -0.004364 to -0.003409"
    assert lines["reward"] == "-0.001000 on average, -0.001500 to -0.000500"
    page = histogram(np.array([-0.0038, -0.0031]), bins=2)
    assert page[0].split()[:3] == ["-0.00380", "to", "-0.00345"]


def test_lengths_are_of_recorded_rows_as_returns_are() -> None:
    lines = facts(make_dataset("test", **recording((5, 1, 4), "ccc", next_observations=None)))
    assert lines["trajectory length"] == "4.5 on average, 4 to 5 recorded rows (returns are over them too)"


def test_names_and_units_are_shown() -> None:
    labels = Labels(("in", "out", "flow"), ("valve", "pump"), {"flow": "l/h"})
    lines = facts(make_dataset("test", **recording(), labels=labels))
    assert lines["observations"] == "3 dimensions (in, out, flow [l/h])"
    assert lines["actions"] == "2 dimensions (valve, pump), -1 to 1"
