"""The page on git: its files are made, its commands run, and they print what the page shows."""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from infra.lab.cluster import Cluster
from tests.docs.typed import type_page

pytest_plugins = ["tests.kube_fixtures"]

PAGE = (Path(__file__).parents[2] / "docs/how-to/apply-from-git.md").read_text()
_KUBECONFIG = re.compile(r"^    apiVersion: v1\n    kind: Config\n(    .*\n)*", re.MULTILINE)
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one, and an installation of its own."""
    monkeypatch.setenv("BELLHOP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def page(folder: Path, source_cluster: Cluster) -> str:
    """The page, with the kubeconfig of a real cluster, where `serve` has run before."""
    (folder / "state").mkdir(mode=0o700)
    address = {"url": "https://127.0.0.1:1", "ca": ""}
    (folder / "state/address.json").write_text(json.dumps(address))
    kubeconfig = textwrap.indent(json.dumps(source_cluster.kubeconfig()), "    ")
    found, times = _KUBECONFIG.subn(lambda _: f"{kubeconfig}\n", PAGE)
    assert times == 1
    return found


def test_every_command_prints_what_stands_below_it(folder: Path, page: str) -> None:
    """A reader who saves the files and types the commands sees what the page shows."""
    first, *rest = _SHELL.split(page)
    type_page(first, folder)
    for shell, typed in zip(rest[::2], rest[1::2], strict=True):
        subprocess.run(["/bin/sh", "-ec", shell], cwd=folder, check=True)
        type_page(typed, folder)
