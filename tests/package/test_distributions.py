"""The wheel and the source distribution, as a user gets them: built, checked, installed elsewhere, and used."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("build", reason="build is not installed")
pytest.importorskip("twine", reason="twine is not installed")
pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[2]
WHEEL_BYTES = 13_000_000  # of them 11.8 million are behaviour policies, which no lossless packing brings below 8.6
AT_THE_TOP = {"build", "dist", "site", "runs", "experiments", "carry", ".git"}  # a user's own, and git's
LEFT_OUT = shutil.ignore_patterns(".venv*", ".*_cache", "__pycache__", "*.egg-info")


def said(*command: object, **about: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **about)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return str(done.stdout)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("package")
    tree = folder / "tree"
    tree.mkdir()
    for child in CHECKOUT.iterdir():
        if child.name in AT_THE_TOP or LEFT_OUT(str(CHECKOUT), [child.name]):
            continue
        if child.is_dir():
            shutil.copytree(child, tree / child.name, ignore=LEFT_OUT)
        else:
            shutil.copy(child, tree)
    said(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", tree)
    return folder / "dist"


@pytest.fixture(scope="module")
def environment(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment with the wheel in it. Its dependencies are those of the tests."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (wheel,) = distributions.glob("*.whl")
    place = Path(
        said(folder / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    )
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--no-deps", "--no-index"]
    said(*pip, wheel)
    (place / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def clean(folder: Path) -> dict[str, object]:
    """Where nothing leads back to the checkout."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SCORE_RL"))}
    return {"cwd": folder, "env": {**variables, "SCORE_RL_CACHE": str(folder / "cache")}}


def test_an_index_would_take_them(distributions: Path) -> None:
    said(sys.executable, "-m", "twine", "check", "--strict", *distributions.iterdir())


def test_the_description_has_no_link_that_leads_nowhere(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        about = archive.read(name).decode()
    assert "Description-Content-Type: text/markdown" in about
    links = re.findall(r"\]\(([^)\s]+)\)", about)
    assert len(links) > 10
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_wheel_is_small_and_has_no_tests(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    assert wheel.stat().st_size < WHEEL_BYTES
    listed = said(sys.executable, "-m", "zipfile", "-l", wheel)
    assert "score_rl/py.typed" in listed
    assert "tests/" not in listed
    assert "benchmarks/" not in listed


def test_the_installed_wheel_records_trains_and_reports(environment: Path, tmp_path: Path) -> None:
    about = clean(tmp_path)
    here = said(
        environment / "python", "-c", "import score_rl; print(score_rl.__file__, score_rl.__version__)", **about
    )
    version = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["version"]
    assert here.startswith(str(environment.parent))
    assert here.split()[-1] == version
    score = environment / "score"
    train = ["--transitions", "3000", "--steps", "20", "--config.hidden", "16,16", "--eval-episodes", "1", "--quiet"]
    said(score, "train", "--dataset", "replica:hopper-medium", *train, "--out", "runs/one", **about)
    said(score, "report", "runs", "--out", "page", **about)
    assert "hopper-medium" in (tmp_path / "page" / "index.html").read_text()


def test_tests_run_from_the_source_distribution(distributions: Path, tmp_path: Path) -> None:
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    for name in ("Makefile", "constraints.txt", "CITATION.cff", "mkdocs.yml", "website/links.py"):
        assert (tree / name).exists(), name
    about = clean(tree)
    about["env"] = {**about["env"], "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}  # type: ignore[dict-item]
    tests = [
        "tests/test_documents.py",
        "tests/test_layers.py",
        "tests/paper/evidence",
        "tests/benchmarks/speed/test_tables.py",
    ]
    said(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests, **about)
