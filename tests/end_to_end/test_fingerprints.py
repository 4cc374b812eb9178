"""Every method still computes what version 0.1.0 computed, from the same seeds."""

import json
from pathlib import Path

import jax
import pytest

from score_rl.engine import compilation
from tests.end_to_end.fingerprints import ABLATIONS, STORED, fingerprint, names

# Other processors and compilers round otherwise. After 24 updates that has grown to this; MOReL's natural gradient and
# its line search make more of it.
TOLERANCE = {"absolute_sum": 1e-6, "measured": 1e-4}
SLOW = ("mopo", "morel", "uwac")
NEWER = {"fql"}  # methods that version 0.1.0 did not have
MOREL = {"absolute_sum": 1e-3, "measured": 0.2}


def same_machine(about: dict[str, str]) -> bool:
    return about["jax"] == jax.__version__ and about["processor"] == compilation.processor_fingerprint()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in (*ABLATIONS, *SLOW) else name
        for name in names()
        if name not in NEWER
    ],
)
def test_the_same_seeds_give_the_same_parameters_as_before(name: str, tmp_path: Path) -> None:
    """To the bit on the kind of machine that the reference is from, else as close as roundings allow."""
    stored = json.loads(STORED.read_text())
    tolerance = MOREL if name == "morel" else TOLERANCE
    for now, before in zip(fingerprint(name, tmp_path), stored["methods"][name], strict=True):
        if same_machine(stored["about"]):
            assert now["parameters"] == before["parameters"]
            assert now["metrics"] == before["metrics"]
        assert now["numbers"] == before["numbers"]
        assert now["absolute_sum"] == pytest.approx(before["absolute_sum"], rel=tolerance["absolute_sum"])
        assert now["measured"] == pytest.approx(before["measured"], rel=tolerance["measured"], abs=1e-5)
