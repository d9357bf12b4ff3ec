"""The page on git: its files are made, its commands run, and they print what the page shows."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from bellhop.embedded.serve import running
from bellhop.logs import Log
from bellhop.settings import Settings
from infra.lab.cluster import Cluster
from tests.docs.typed import type_page

pytest_plugins = ["tests.kube_fixtures"]

PAGE = (Path(__file__).parents[2] / "docs/how-to/apply-from-git.md").read_text()
PROGRAMS = Path(sys.executable).parent
_KUBECONFIG = re.compile(r"^    apiVersion: v1\n    kind: Config\n(    .*\n)*", re.MULTILINE)
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Serve an installation, and go to an empty folder."""
    monkeypatch.setenv("BELLHOP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    with running(tmp_path / "state", Settings(), Log(io.StringIO()), "127.0.0.1", 0):
        yield tmp_path


@pytest.fixture
def page(source_cluster: Cluster) -> str:
    """The page, with the kubeconfig of a real cluster."""
    kubeconfig = textwrap.indent(json.dumps(source_cluster.kubeconfig()), "    ")
    found, times = _KUBECONFIG.subn(lambda _: f"{kubeconfig}\n", PAGE)
    assert times == 1
    return found


def test_every_command_prints_what_stands_below_it(served: Path, page: str) -> None:
    """A reader who saves the files and types the commands sees what the page shows."""
    first, *rest = _SHELL.split(page)
    type_page(first, served)
    for shell, typed in zip(rest[::2], rest[1::2], strict=True):
        subprocess.run(["/bin/sh", "-ec", shell], cwd=served, check=True)
        type_page(typed, served)
    for command in pipeline(served):
        done = subprocess.run(
            ["/bin/sh", "-ec", command],
            cwd=served,
            env={**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def pipeline(folder: Path) -> Iterator[str]:
    """Yield what the workflow runs, but for what connects it to a cloud."""
    workflow = yaml.safe_load((folder / ".github/workflows/bellhop.yaml").read_text())
    steps = [each for each in workflow["jobs"]["bellhop"]["steps"] if "run" in each]
    assert [each["name"] for each in steps] == [
        "Connect",
        "Show the change",
        "Register clusters",
        "Apply",
    ]
    yield from (each["run"] for each in steps[1:])
