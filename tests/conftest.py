"""Settings that hold in every test."""

import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

# Tests compile hundreds of small programs and run each for a moment: let the compiler not try its hardest. Later
# versions no longer know the second, without which it takes twice as long.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0"
    + (" --xla_cpu_use_fusion_emitters=false" if version("jaxlib").startswith("0.10.") else ""),
)

import jax
import pytest
from hypothesis import settings

from tests.shapes import check_shapes

settings.register_profile("any machine", deadline=None)  # a busy machine is not a failure
settings.load_profile("any machine")

# A shape that broadcasts by accident is the commonest silent mistake in this kind of code.
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_configure() -> None:
    """Before anything of the package is imported. So nothing of it is imported above."""
    check_shapes()


@pytest.fixture(autouse=True)
def same_precision_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tests train is float32 unless they ask, also where the processor multiplies bfloat16."""
    monkeypatch.setattr("score_rl.run.precision.bfloat16_units", lambda: None)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Data sets built by tests go to a folder of their own, shared by all of them, command lines included."""
    from score_rl.run.compiled_programs import keep_compiled_programs

    before = os.environ.get("SCORE_RL_CACHE")
    folder = tmp_path_factory.mktemp("cache")
    os.environ["SCORE_RL_CACHE"] = str(folder)
    keep_compiled_programs()  # many tests start the same small fleet
    yield folder
    if before is None:
        del os.environ["SCORE_RL_CACHE"]
    else:
        os.environ["SCORE_RL_CACHE"] = before
