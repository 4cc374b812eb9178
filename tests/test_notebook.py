"""How objects look in a notebook: tables whose content is text, whatever names the data have."""

import numpy as np

from score_rl.data.dataset import make_dataset
from score_rl.data.labels import Labels
from score_rl.notebook import html_table
from score_rl.store.metrics import MetricsTable, Row


def test_nothing_in_a_table_is_markup() -> None:
    shown = html_table("<b>", ["<i>"], [["<script>alert(1)</script>"]])
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_a_data_set_shows_its_columns_by_name() -> None:
    ends = np.array([False, False, True])
    data = make_dataset(
        "logs",
        observations=np.array([[1.0], [2.0], [3.0]], np.float32),
        actions=np.array([[0.5], [-0.5], [0.0]], np.float32),
        rewards=np.array([-1.0, -0.0, -1.0], np.float32),
        terminals=ends,
        timeouts=np.zeros(3, bool),
        labels=Labels(observations=("temperature <b>",), actions=("valve",)),
    )
    shown = data._repr_html_()
    assert "temperature &lt;b&gt;" in shown
    assert "<td style='text-align:left'>valve</td>" in shown
    assert ">-0<" not in shown
    assert "logs: 3 rows in 1 trajectory, 1 observation, 1 action" in shown


def test_metrics_say_what_they_hold_in_one_line_and_in_a_table() -> None:
    table = MetricsTable(
        [Row("a", 10, "train/q", 1.5), Row("b", 20, "train/q", 2.5), Row("b", 20, "evaluation/score", 7)]
    )
    assert repr(table) == "<metrics: 3 values of 2 metrics in 2 runs>"
    assert "<td style='text-align:left'>2.5</td>" in table._repr_html_()
    frame = table.to_pandas()
    assert list(frame.columns) == ["run", "step", "name", "value"]
    assert frame.value.tolist() == [1.5, 2.5, 7.0]
