"""Episode bounds and training view, for recordings of every shape."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from score_rl.data.dataset import make_dataset
from score_rl.data.episodes import complete_episodes, split_episodes, spread_rows, training_view

from .recordings import recording

settings.register_profile("any machine", deadline=None)  # a busy machine is not a failure
settings.load_profile("any machine")

episode_ends = st.lists(st.tuples(st.integers(1, 6), st.sampled_from("tc")), min_size=1, max_size=8)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], str]:
    """Lengths and ends of episodes, the last possibly partial."""
    episodes = draw(episode_ends)
    partial = draw(st.integers(0, 4))
    lengths = tuple(length for length, _ in episodes) + ((partial,) if partial else ())
    return lengths, "".join(end for _, end in episodes) + ("p" if partial else "")


@given(shapes())
def test_split_finds_every_episode(shape: tuple[tuple[int, ...], str]) -> None:
    lengths, ends = shape
    arrays = recording(lengths, ends)
    episodes = split_episodes(arrays["terminals"], arrays["timeouts"])
    stops = np.cumsum(lengths)
    np.testing.assert_array_equal(episodes, np.stack([stops - lengths, stops], axis=1))
    assert episodes.dtype == np.int64
    complete = complete_episodes(episodes, arrays["terminals"], arrays["timeouts"], None)
    np.testing.assert_array_equal(complete, [end != "p" for end in ends])
    limited = complete_episodes(episodes, arrays["terminals"], arrays["timeouts"], 4)
    expected = [end == "t" or (end == "c" and length >= 4) for length, end in zip(lengths, ends, strict=True)]
    np.testing.assert_array_equal(limited, expected)


def test_split_of_nothing() -> None:
    assert split_episodes(np.zeros(0, bool), np.zeros(0, bool)).shape == (0, 2)


@given(shapes())
def test_with_stored_next_observations_every_row_stays(shape: tuple[tuple[int, ...], str]) -> None:
    arrays = recording(*shape)
    dataset = make_dataset("test", **arrays)
    assert len(dataset) == sum(shape[0])
    for key, values in arrays.items():
        np.testing.assert_array_equal(getattr(dataset, key), values)


@given(shapes())
def test_without_them_exactly_the_rows_with_a_known_next_one_stay(shape: tuple[tuple[int, ...], str]) -> None:
    lengths, ends = shape
    arrays = recording(lengths, ends)
    view = training_view(arrays["terminals"], arrays["timeouts"])
    kept = [length - (end != "t") for length, end in zip(lengths, ends, strict=True)]
    assert len(view.rows) == sum(kept)
    np.testing.assert_array_equal(view.kept, np.flatnonzero(kept))
    np.testing.assert_array_equal(view.episodes[:, 1] - view.episodes[:, 0], [count for count in kept if count])
    terminal = arrays["terminals"][view.rows]
    # The next observation is the true one wherever it can be bootstrapped from.
    following = arrays["observations"][view.next_rows]
    np.testing.assert_array_equal(following[~terminal], arrays["next_observations"][view.rows][~terminal])
    np.testing.assert_array_equal(view.next_rows[terminal], view.rows[terminal])
    # Every terminal is still there, and every cut that is left is at the end of its episode.
    assert terminal.sum() == arrays["terminals"].sum()
    last = view.episodes[:, 1] - 1
    assert set(np.flatnonzero(view.timeouts)) <= set(last)
    ended = (terminal | view.timeouts)[last]
    np.testing.assert_array_equal(ended, [end != "p" for end, count in zip(ends, kept, strict=True) if count])


@given(shapes())
def test_returns_count_whole_episodes_in_both_views(shape: tuple[tuple[int, ...], str]) -> None:
    lengths, ends = shape
    arrays = recording(lengths, ends)
    parts = np.split(arrays["rewards"].astype(np.float64), np.cumsum(lengths)[:-1])
    expected = np.array([part.sum() for part in parts])
    values, complete = make_dataset("test", **arrays).returns()
    np.testing.assert_allclose(values, expected, atol=1e-12)
    np.testing.assert_array_equal(complete, [end != "p" for end in ends])
    view = training_view(arrays["terminals"], arrays["timeouts"])
    if len(view.rows):
        bare = make_dataset("test", **{key: v for key, v in arrays.items() if key != "next_observations"})
        np.testing.assert_allclose(bare.returns().values, expected[view.kept], atol=1e-12)
        assert len(bare.returns().values) == len(bare.episodes)


@given(shapes(), st.data())
def test_spread_rows_takes_whole_episodes_but_one(shape: tuple[tuple[int, ...], str], data: st.DataObject) -> None:
    arrays = recording(*shape)
    episodes = split_episodes(arrays["terminals"], arrays["timeouts"])
    count = data.draw(st.integers(1, sum(shape[0])))
    rows, cut = spread_rows(episodes, count)
    assert len(rows) == len(cut) == count
    assert (np.diff(rows) > 0).all()
    whole = 0
    for start, stop in episodes:
        inside = rows[(rows >= start) & (rows < stop)]
        np.testing.assert_array_equal(inside, np.arange(start, start + len(inside)))
        whole += 0 < len(inside) < stop - start
    assert whole == cut.sum() <= 1


def test_spread_rows_represents_every_part() -> None:
    stops = np.arange(1, 101) * 10
    rows, _ = spread_rows(np.stack([stops - 10, stops], axis=1), 200)
    assert np.histogram(rows, bins=4, range=(0, 1000))[0].min() >= 40
