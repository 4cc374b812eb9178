"""What the families compute beside training: a separation, a choice, a count of parameters."""

import jax
import numpy as np
import pytest

from score_rl.algorithms.algorithm import Shapes
from score_rl.algorithms.registry import get_algorithm
from score_rl.paper.experiments.drives import AVENUE, STREET, TRIES, Drives, drives, true_value
from score_rl.paper.experiments.false_correlation import examples_of, summary
from score_rl.paper.experiments.runtime import PRINTED, parameters
from score_rl.paper.experiments.street_figure import draw_picks
from score_rl.paper.experiments.uncertainty_map import auroc, embed


def test_auroc_is_the_share_of_pairs() -> None:
    rng = np.random.default_rng(0)
    inside, outside = rng.integers(0, 8, 50) / 4, rng.integers(2, 12, 70) / 4  # with ties
    expected = np.mean([1.0 if o > i else 0.5 if o == i else 0.0 for o in outside for i in inside])
    assert auroc(inside, outside) == pytest.approx(expected)
    assert auroc(np.zeros(3), np.ones(4)) == 1.0
    assert auroc(np.ones(3), np.zeros(4)) == 0.0


def test_the_map_is_drawn_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more it takes ten times as long on cores that others use, and a trial has three minutes."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_info

    threads: list[int] = []
    fit = TSNE.fit_transform
    monkeypatch.setattr(
        TSNE, "fit_transform",
        lambda self, points: threads.extend(pool["num_threads"] for pool in threadpool_info()) or fit(self, points),
    )  # fmt: skip
    assert embed(np.random.default_rng(0).normal(size=(20, 3))).shape == (20, 2)
    assert set(threads) == {1}


@pytest.mark.parametrize("method", PRINTED)
def test_parameters_are_the_papers(method: str) -> None:
    algorithm = get_algorithm(method)
    state = jax.eval_shape(lambda: algorithm.init(algorithm.Config(), Shapes(17, 6), jax.random.key(0)))
    assert parameters(state) / 1e6 == pytest.approx(PRINTED[method][0] / 1e6, abs=0.005)


def test_the_avenue_is_best_and_luck_is_luck() -> None:
    grid = np.linspace(-1, 1, 2001)
    worth = true_value(grid)
    assert grid[worth.argmax()] == pytest.approx(-STREET)
    assert worth.max() == AVENUE
    sets = [drives(number) for number in range(200)]
    lucky = [data for data in sets if data.lucky]
    assert 0.1 < len(lucky) / len(sets) < 0.35  # three greens of four or more: 0.2
    for data in lucky:  # the estimate is wrong about the street, its lower bound is not
        assert data.road(street=True).mean() > data.road(street=False).mean()
        assert data.bound(street=True) < data.bound(street=False)
        assert (data.actions > 0).sum() == TRIES
    street = np.concatenate([data.road(street=True) for data in sets])
    assert street.mean() == pytest.approx(float(true_value(np.array([STREET]))[0]), abs=0.05)  # no luck on average


def test_picks_are_counted_by_luck_and_by_what_was_tried() -> None:
    """By hand, on the first lucky data set and two without luck."""
    lucky = next(number for number in range(60) if drives(number).lucky)
    one, other = [number for number in range(60) if not drives(number).lucky][:2]
    tried = float(drives(one).actions[drives(one).actions > 0][0])
    far = next(action for action in np.linspace(0.05, 1, 96) if np.abs(drives(lucky).actions - action).min() > 0.051)
    found = summary([(lucky, float(far)), (one, tried), (other, -0.5)])
    assert found["lucky"] == {"sets": 1, "street": 1, "never_tried": 1}
    assert found["unlucky"] == {"sets": 2, "street": 1, "never_tried": 0}
    assert found["mean_true_value"] == pytest.approx(float(true_value(np.array([far, tried, -0.5])).mean()))
    assert found["picks"] == [[lucky, far], [one, tried], [other, -0.5]]


def test_what_is_near_a_recorded_action_was_tried() -> None:
    data = Drives(np.array([-0.5, 0.4]), np.array([0.7, 1.0]))
    assert [data.knows(action) for action in (0.4, 0.44, 0.46, 1.0, -0.54)] == [True, True, False, False, True]


def test_the_pictures_show_a_lucky_set_and_one_that_fools_without_luck() -> None:
    sets = list(range(60))
    lucky = [number for number in sets if drives(number).lucky]
    without = [number for number in sets if not drives(number).lucky]
    chosen = [(number, 0.9 if number in (lucky[1], without[4], without[7]) else -0.5) for number in sets]
    assert examples_of(sets, chosen) == [lucky[0], without[4]]
    assert examples_of(without, [(number, -0.5) for number in without]) == without[:2]


def test_the_picture_of_the_picks_has_every_pick_with_its_luck() -> None:
    lucky, other = (next(n for n in range(60) if drives(n).lucky is luck) for luck in (True, False))
    numbers = {"a": summary([(lucky, 0.5), (other, -0.5)]), "b": summary([(other, 0.9)]), "data_sets": {"all": 2}}
    axis = draw_picks(numbers).axes[0]
    dots = [line for line in axis.get_lines() if line.get_marker() == "o"]
    assert [float(dot.get_xdata()[0]) for dot in dots] == [0.5, -0.5, 0.9]
    assert [dot.get_markerfacecolor() == "none" for dot in dots] == [False, True, True]
    assert [text.get_text() for text in axis.texts] == ["1/1, 0/1", "0/0, 1/1"]
    assert [text.get_text() for text in axis.get_yticklabels()] == ["a", "b"]
