"""The cache of programs: filled once, whole, and by several at once."""

from __future__ import annotations

import io
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest

from bellhop.adapters.programs.layer import download, fill
from bellhop.adapters.programs.program import HELM, KUBECTL, cache
from bellhop.errors import MissingError


def zipped(name: str, content: bytes, *more: tuple[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for each, text in ((name, content), *more):
            archive.writestr(each, text)
    return written.getvalue()


def wheel(helm: bytes, kubectl: bytes) -> bytes:
    """Pack programs as the layer has them."""
    layer = zipped("helm/helm", helm, ("kubectl/kubectl", kubectl))
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        member = tarfile.TarInfo("package/lib/layer.zip")
        member.size = len(layer)
        archive.addfile(member, io.BytesIO(layer))
    return zipped("aws_cdk/_jsii/layer@2.0.0.jsii.tgz", written.getvalue())


def test_both_programs_are_written_and_can_run(tmp_path: Path) -> None:
    fill(tmp_path / "new", wheel(b"#!/bin/sh\n", b"#!/bin/sh\necho Client Version: v1.37.1\n"))

    assert (tmp_path / "new" / "helm").read_bytes() == b"#!/bin/sh\n"
    assert KUBECTL.find({"BELLHOP_KUBECTL": str(tmp_path / "new" / "kubectl")})
    assert {each.name for each in (tmp_path / "new").iterdir()} == {"helm", "kubectl"}


def test_who_reads_while_it_is_filled_finds_whole_programs(tmp_path: Path) -> None:
    one, two = (wheel(letter * 100_000, letter) for letter in (b"1", b"2"))
    fill(tmp_path, one)

    def fill_again() -> None:
        for each in (one, two) * 10:
            fill(tmp_path, each)

    thread = threading.Thread(target=fill_again)
    thread.start()
    while thread.is_alive():
        assert (tmp_path / "helm").read_bytes() in (b"1" * 100_000, b"2" * 100_000)
    thread.join()


def test_a_full_cache_is_left_unchanged(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    folder = cache(environ)
    folder.mkdir(parents=True)
    for program in (HELM, KUBECTL):
        (folder / program.name).write_text("as it was")

    assert download(environ) == folder
    assert (folder / "kubectl").read_text() == "as it was"


def test_without_pip_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of Helm only is filled up; here nothing can be downloaded."""
    environ = {"HOME": str(tmp_path)}
    cache(environ).mkdir(parents=True)
    (cache(environ) / "helm").write_text("as it was")
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(failing))

    with pytest.raises(MissingError, match="from PyPI: no network; install them, and name them by"):
        download(environ)
    assert (cache(environ) / "helm").read_text() == "as it was"
