"""Metrics of a window: means over all its updates, however many calls it took."""

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from score_rl.run.windows import STORED_UPDATES, WindowMetrics


def window_of(calls: list[tuple[int, list[float]]]) -> WindowMetrics:
    window = WindowMetrics()
    for updates, q in calls:
        window = window.after(updates, {"q": jnp.asarray(q, jnp.float32), "loss": -jnp.asarray(q, jnp.float32)})
    return window


CALLS = st.lists(
    st.tuples(st.integers(1, 50), st.lists(st.floats(-100, 100, width=32), min_size=2, max_size=2)), max_size=4
)


@given(CALLS)
def test_means_count_every_update_alike(calls: list[tuple[int, list[float]]]) -> None:
    means = window_of(calls).means()
    if not calls:
        assert means == {}
        return
    every_update = np.concatenate([np.tile(np.asarray(q, np.float64), (updates, 1)) for updates, q in calls])
    np.testing.assert_allclose(means["q"], every_update.mean(axis=0), rtol=1e-9, atol=1e-6)
    np.testing.assert_array_equal(means["loss"], -means["q"])


@given(CALLS)
def test_a_checkpoint_keeps_every_bit(calls: list[tuple[int, list[float]]]) -> None:
    window = window_of(calls)
    again = WindowMetrics.from_arrays(window.to_arrays())
    assert [call.updates for call in again.calls] == [call.updates for call in window.calls]
    for name, mean in window.means().items():
        np.testing.assert_array_equal(again.means()[name], mean)


def test_names_in_checkpoints_are_those_of_version_0_1_0() -> None:
    arrays = window_of([(10, [1.0, 2.0]), (5, [3.0, 4.0])]).to_arrays()
    assert STORED_UPDATES == "updates of each piece"
    assert sorted(arrays) == ["loss", "q", "updates of each piece"]
    np.testing.assert_array_equal(arrays["q"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(arrays[STORED_UPDATES], [10, 5])


def test_only_the_last_call_is_waited_for() -> None:
    assert WindowMetrics().is_ready
    assert window_of([(1, [0.0, 0.0])]).is_ready
