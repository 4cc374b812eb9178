"""Every block of code in the documents runs, in the order of its document, in an empty folder with a user's files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents.blocks import RUN, SHOWN, blocks, documents, shortened
from tests.documents.sentences import CHECKOUT
from tests.documents.workplace import furnish

SECONDS = 600  # of a document


@pytest.mark.parametrize("document", documents())
def test_every_block_says_how_it_is_tested(document: str) -> None:
    for block in blocks(document):
        assert block.language in RUN or block.language in SHOWN, f"{block.where} is of no known language"
        if block.kind == "run by":
            test = CHECKOUT / block.about
            assert test.exists(), block.where
            assert Path(document).name in test.read_text(), f"{block.about} does not mention {document}"
        block.as_run()


def test_options_take_the_place_of_a_commands_own() -> None:
    line = "score train --dataset a.hdf5 --seeds 0 1 2 --steps 1e6 --out runs/a   # a comment"
    assert shortened(line, "--steps 20 --seeds 0") == "score train --dataset a.hdf5 --out runs/a --steps 20 --seeds 0"
    assert shortened("score judge runs", "--steps 20") == "score judge runs"


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [d for d in documents() if any(b.language in RUN and b.kind not in ("not run", "run by") for b in blocks(d))],
)
def test_blocks_run(document: str, tmp_path: Path) -> None:
    environment = furnish(tmp_path)
    python: list[str] = []  # the Python so far: later blocks use names of earlier ones
    for block in blocks(document):
        if block.language not in RUN or block.kind in ("not run", "run by"):
            continue
        if RUN[block.language] == "bash":
            command = ["bash", "-euo", "pipefail", "-c", block.as_run()]
        else:
            python.append(block.as_run())
            command = [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", "\n".join(python)]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{block.where}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
