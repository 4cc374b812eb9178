"""Files act as the policies do: every method, every format."""

from pathlib import Path

import numpy as np
import pytest

from score_rl.algorithms.registry import algorithm_names
from score_rl.deploy.exporting import ENDINGS, export_policy
from score_rl.deploy.opening import DeployedPolicy, open_policy
from score_rl.errors import InputError
from tests.deploy.trained import asked, observations, policy
from tests.plants import heating

TOLERANCE = 1e-5  # of the range of an action
SAMPLED = ("score", "iql", "bcq", "pbrl-prior")  # in the fast tests: plain, without an uncertainty, candidates, priors
CANDIDATES = ("bcq", "bear", "uwac")
ALONE = ("uwac",)  # whose passes depend on the number of rows, as far as StableHLO knows


def exported(name: str, kind: str, folder: Path) -> DeployedPolicy:
    path = folder / f"policy{ENDINGS[kind]}"
    export_policy(policy(name), path, kind)
    return open_policy(path)


def require_same(name: str, file: DeployedPolicy, rows: int) -> None:
    seen = observations(rows)
    limits = policy(name).limits
    assert limits is not None
    expected, found = asked(name).checked(seen, limits), file(seen)
    ranges = heating.ACTION_HIGH - heating.ACTION_LOW
    apart = (np.abs(found["actions"] - expected.actions) > TOLERANCE * ranges).any(axis=1)
    # Where two candidates are equally good to the last bit, rounding decides between them.
    assert apart.mean() <= (1e-3 if name in CANDIDATES else 0)
    same = ~apart
    assert found["actions"].min() >= heating.ACTION_LOW.min()
    np.testing.assert_allclose(found["distance"], expected.distance, rtol=1e-4)
    assert expected.far.any()
    assert not expected.far.all()
    close = np.abs(expected.distance - 1) < 1e-3
    np.testing.assert_array_equal(found["far"][~close], expected.far[~close])
    if expected.uncertainty is None:
        assert "uncertainty" not in found
        return
    assert expected.unknown is not None
    spread = expected.uncertainty.std()
    np.testing.assert_allclose(found["uncertainty"][same], expected.uncertainty[same], rtol=1e-3, atol=1e-4 * spread)
    assert limits.uncertainty is not None
    limit = float(limits.uncertainty)
    sure = same & (np.abs(expected.uncertainty - limit) > 1e-3 * limit)
    np.testing.assert_array_equal(found["unknown"][sure], expected.unknown[sure])


@pytest.mark.parametrize("kind", ["onnx", "numpy"])
@pytest.mark.parametrize("name", SAMPLED)
def test_a_file_acts_as_the_policy_does(name: str, kind: str, tmp_path: Path) -> None:
    require_same(name, exported(name, kind, tmp_path), rows=1_000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(ENDINGS))
@pytest.mark.parametrize("name", algorithm_names())
def test_files_of_every_method_act_as_the_policies_do(name: str, kind: str, tmp_path: Path) -> None:
    if kind == "stablehlo" and name in ALONE:
        with pytest.raises(InputError, match="other numbers of rows"):
            exported(name, kind, tmp_path)
        return
    require_same(name, exported(name, kind, tmp_path), rows=10_000)


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_the_number_of_rows_does_not_matter(rows: int, tmp_path: Path) -> None:
    """Also the two numbers with which a policy is traced."""
    seen = observations(7)
    for kind in ("onnx", "numpy"):
        file = exported("bcq", kind, tmp_path)
        np.testing.assert_allclose(file(seen[:rows])["actions"], file(seen)["actions"][:rows], rtol=1e-5)
