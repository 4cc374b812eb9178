"""What is refused, in one sentence that says what to do."""

import os
import stat
from pathlib import Path

import pytest

from score_rl.cli import main
from score_rl.errors import InputError, as_read, in_command_line, refuse_unwritable, unknown_name, with_flags


def test_a_folder_that_can_be_written_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / "new", tmp_path / "new" / "below", tmp_path.relative_to(tmp_path) / "here"):
        refuse_unwritable(folder)
    assert list(tmp_path.iterdir()) == []


def test_below_a_file_there_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "file" / "far" / "below"):
        with pytest.raises(InputError, match=r"Not a directory\); give another `out`"):
            refuse_unwritable(folder)


def test_nor_where_it_is_forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        if os.access(tmp_path, os.W_OK):  # root may do everything
            monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(InputError, match=r"cannot write to .*new/below \(Permission denied\)"):
            refuse_unwritable(tmp_path / "new" / "below")
    finally:
        tmp_path.chmod(stat.S_IRWXU)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "`eval_every` is 30; it must be a multiple of `log_every`, 20.",
            "--eval-every is 30; it must be a multiple of --log-every, 20.",
        ),
        ("give `config.normalise_states=True`.", "give --config.normalise-states True."),
        ("go on with `resume=runs/my run`", "go on with --resume runs/my run"),
        (
            "`score train` and `HOME` are no arguments, nor is `9`.",
            "`score train` and `HOME` are no arguments, nor is `9`.",
        ),
    ],
)
def test_arguments_become_flags(message: str, shown: str) -> None:
    assert with_flags(message) == shown
    assert as_read(message) == message
    with in_command_line():
        assert as_read(message) == shown
    assert as_read(message) == message


def test_a_command_names_flags_where_python_names_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import score_rl

    with pytest.raises(InputError, match="`eval_every` is 0; it must be 1 or more"):
        score_rl.train(eval_every=0, out=tmp_path / "out")
    with pytest.raises(SystemExit) as ended:
        main(["train", "--eval-every", "0", "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "score: --eval-every is 0; it must be 1 or more.\n"


def test_a_near_name_is_found_without_case_and_behind_a_slash_and_a_far_one_is_not_proposed() -> None:
    assert "did you mean 'score'?" in str(unknown_name("algorithm", "SCOR", ["score", "bc"]))
    assert "did you mean 'evaluation/score'?" in str(unknown_name("metric", "scor", ["evaluation/score", "train/q"]))
    assert "known: completion, train." in str(unknown_name("command", "score", ["train", "completion"]))
