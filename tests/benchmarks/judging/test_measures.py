"""The figures by which the judge is measured, on rankings whose figures are known, and the documents made of them."""

import json
from typing import Any

import numpy as np
import pytest

from benchmarks.judging import measures, trust_tables
from score_rl.paper.evidence.documents import with_tables
from score_rl.store.judgements import BETTER, FITTED, MODEL, PESSIMISTIC, SAME

TRUTH = np.array([1.0, 2.0, 3.0, 5.0])


def test_rank_correlation_is_spearmans() -> None:
    assert measures.rank_correlation(np.array([1.0, 10.0, 100.0, 1000.0]), TRUTH) == pytest.approx(1)
    assert measures.rank_correlation(-TRUTH, TRUTH) == pytest.approx(-1)
    assert measures.rank_correlation(np.array([1.0, 1.0, 2.0, 2.0]), TRUTH) == pytest.approx(0.894, abs=1e-3)
    assert measures.rank_correlation(np.ones(4), TRUTH) is None


def test_regret_is_what_the_choice_lacks_as_a_share_of_the_spread() -> None:
    worst_first = -TRUTH
    assert measures.regret(TRUTH, TRUTH, 1) == 0
    assert measures.regret(worst_first, TRUTH, 1) == 1
    assert measures.regret(worst_first, TRUTH, 3) == pytest.approx(0.5)
    assert measures.regret(np.ones(4), np.ones(4), 1) == 0


def test_sharpe_ratio_is_gain_for_risk() -> None:
    chosen = TRUTH[2:]
    assert measures.sharpe_ratio(TRUTH, TRUTH, 2.0, 2) == pytest.approx((5 - 2) / chosen.std())
    assert measures.sharpe_ratio(TRUTH, TRUTH, 2.0, 1) is None


def test_absolute_error_is_a_share_of_the_spread() -> None:
    assert measures.absolute_error(TRUTH + 1, TRUTH) == pytest.approx(1 / 4)


def result() -> dict[str, Any]:
    policies = [
        {
            "contender": "score" if place == 2 else "bc", "updates": 10, "score": score, "per_step": score / 10,
            "verdict": BETTER if score > 2 else SAME, "rank": score, "moved": 1.0, "own_value": None,
            "estimates": {
                FITTED: {"value": score / 10}, MODEL: {"value": -score / 10, "difference": 9, "difference_low": 9},
                PESSIMISTIC: {"value": 0, "difference": -score, "difference_low": score},
            },
        }
        for place, score in enumerate(TRUTH)
    ]  # fmt: skip
    return {"data": {"name": "plant", "behaviour_score": 2.5}, "policies": policies}


def measured() -> trust_tables.Measured:
    return trust_tables.Measured.of(result())


def test_tables_say_who_chose_well() -> None:
    found = [measured()]
    rows = {line.split("|")[1].strip(): line for line in trust_tables.estimators_table(found).splitlines()[2:]}
    assert "| 1.00 | 1.00 | 0.00 | 0.00 | 0.00 |" in rows[FITTED]
    assert "| -1.00 | -1.00 | 1.00 |" in rows[MODEL]
    assert rows[MODEL].endswith("| 1 of 1 |"), "its choice is below the behaviour"
    assert "| 0.50 |" in rows["always the default"]
    assert rows["judge"].startswith("| judge | 1.00 |"), "it ranks by lower ends"
    assert f"{trust_tables.MIDDLES} | -1.00 |" in rows[trust_tables.MIDDLES]
    assert f"| {BETTER} | 2 | 0 |" in trust_tables.verdicts_table(found)
    assert f"| {SAME} | 0 | 2 |" in trust_tables.verdicts_table(found)
    assert "| plant | 2 | 5 | 3 | 5 |" in trust_tables.sets_table(found)


def test_every_row_of_a_table_has_a_cell_for_each_heading() -> None:
    """A row with more cells than headings loses its last ones wherever Markdown is shown."""
    for name, made in trust_tables.tables(trust_tables.stored_results()[:1]).items():
        rows = [line.count("|") for line in made().splitlines() if line.startswith("|")]
        assert len(set(rows)) <= 1, name


def test_a_random_choice_lacks_the_mean() -> None:
    assert measured().regret_of_random(1) == pytest.approx((5 - TRUTH.mean()) / 4, abs=0.03)
    assert measured().regret_of_random(4) == 0


def test_the_document_holds_what_is_stored() -> None:
    found = trust_tables.stored_results()
    assert len(found) >= 5
    for document in trust_tables.DOCUMENTS:
        text = document.read_text()
        assert "<!-- judging:" in text
        assert with_tables(text, "judging", trust_tables.tables(found)) == text, "run: make tables"


def test_every_stored_set_names_code_and_data() -> None:
    for file in sorted((trust_tables.RESULTS / "judging").glob("*.json")):
        stored = json.loads(file.read_text())
        assert stored["provenance"]["code"]
        assert stored["data"]["checksum"]
        assert len(stored["policies"]) >= 18
