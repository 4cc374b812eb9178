import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from score_rl.errors import InputError
from score_rl.paper.theory.studies import STUDIES, run_study


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_runs_and_writes_what_it_says(name: str, tmp_path: Path) -> None:
    result = run_study(name, tmp_path / "out", quick=True)
    assert result.rows
    assert all(len(row) == len(result.columns) for row in result.rows)
    assert result.verdicts
    assert not any("NOT" in verdict or "FAIL" in verdict for verdict in result.verdicts)
    assert {file.suffix for file in result.files} == {".svg", ".pdf", ".json"}
    assert all(file.stat().st_size > 0 for file in result.files)
    numbers = json.loads((tmp_path / "out" / "numbers.json").read_text(encoding="utf-8"))
    assert numbers["study"] == name
    assert numbers["paper"] == STUDIES[name].paper


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (run_study("green-lights", tmp_path / d, quick=True).files for d in "ab")
    assert [f.read_bytes() for f in first] == [f.read_bytes() for f in second]


def test_bad_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'coverage'"):
        run_study("covrage", tmp_path)
    with pytest.raises(InputError, match="seed"):
        run_study("coverage", tmp_path, seed=-1)
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match="is a file"):
        run_study("coverage", tmp_path / "file")


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = dataclasses.replace(STUDIES["coverage"], run=lambda seed, quick: pytest.fail("computed all the same"))
    monkeypatch.setitem(STUDIES, "coverage", study)
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot write to .*file/below \(Not a directory\); give another `out`"):
        run_study("coverage", tmp_path / "file" / "below")


def test_without_matplotlib_the_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'score-rl\[paper\]'"):
        run_study("coverage", tmp_path)


def test_listing_the_studies_loads_neither_jax_nor_matplotlib() -> None:
    code = (
        "import sys, score_rl.paper.theory.studies as s; assert s.STUDIES; "
        "assert not {'jax', 'matplotlib', 'numpy'} & set(sys.modules), set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
