"""Small recordings made on the spot."""

from collections.abc import Callable

import pytest

from score_rl.data.dataset import Dataset
from tests.engine.made_up import recording


@pytest.fixture
def make_recording() -> Callable[..., Dataset]:
    return recording
