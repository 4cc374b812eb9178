"""The Python of docs/deploy.md, with the files that it names."""

import sys
from pathlib import Path

import numpy as np
import pytest

from score_rl.deploy.exporting import export_policy
from score_rl.deploy.numpy_file import reader_text
from tests.deploy.trained import asked, policy
from tests.test_documents import blocks

OBSERVATION = [19.5, 18.9, 41.0, 4.2, 21.0, 1850.0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a policy in both formats and the reader beside them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    export_policy(policy("score"), tmp_path / "policy.onnx", "onnx")
    export_policy(policy("score"), tmp_path / "policy.npz", "numpy")
    (tmp_path / "policy_reader.py").write_text(reader_text())
    return tmp_path


def documented(word: str) -> str:
    (found,) = (block for block in blocks("docs/deploy.md") if word in block)
    return found


def test_acting_by_onnxruntime_and_by_numpy(folder: Path) -> None:
    expected = asked("score").actions(OBSERVATION)
    for word in ("onnxruntime", "policy_reader"):
        names: dict[str, object] = {}
        exec(documented(word), names)
        answer = names["answer"]
        assert isinstance(answer, dict)
        np.testing.assert_allclose(np.ravel(answer["actions"]), expected, rtol=1e-4)
    sys.modules.pop("policy_reader")


def test_the_service(folder: Path) -> None:
    from fastapi.testclient import TestClient

    text = documented("FastAPI")
    assert len([line for line in text.splitlines() if line]) <= 15
    names: dict[str, object] = {}
    exec(text, names)
    client = TestClient(names["app"])  # type: ignore[arg-type]
    answer = client.post("/act", json=OBSERVATION).json()
    assert list(answer["actions"]) == ["valve", "pump"]
    np.testing.assert_allclose(list(answer["actions"].values()), asked("score").actions(OBSERVATION), rtol=1e-4)
    assert answer["far"] is False
    assert client.post("/act", json=[*OBSERVATION[:-1], 90_000]).json()["far"] is True
    refused: list[object] = [OBSERVATION[:-1], [*OBSERVATION[:-1], None], ["warm"] * 6, {}]
    for wrong in refused:
        assert client.post("/act", json=wrong).status_code == 422
