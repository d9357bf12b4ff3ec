"""The page on git: its files are made, its commands run, and they print what the page shows."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop import __version__
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from bellhop.settings import Settings
from infra.lab.cluster import Cluster
from tests.docs.typed import type_page

pytest_plugins = ["tests.kube_fixtures"]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/apply-from-git.md").read_text()
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
    path = f"{decrypter(served)}:{PROGRAMS}:{os.environ['PATH']}"
    variables, commands = pipeline(served)
    for command in commands:
        done = subprocess.run(
            ["/bin/sh", "-ec", command],
            cwd=served,
            env={**os.environ, **variables, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_the_pipeline_installs_what_a_release_has(tmp_path: Path) -> None:
    """Its wheel is checked before it is installed, and has the name and extras of the project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name = f"{project['name'].replace('-', '_')}-{__version__}-py3-none-any.whl"
    fetch, check, install = steps(workflow(PAGE))["Install"].splitlines()
    (tmp_path / name).write_bytes(b"wheel")
    sums = subprocess.run(
        ["sha256sum", name], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    (tmp_path / "SHA256SUMS").write_text(f"{sums.stdout}{'0' * 64}  another\n")
    subprocess.run(["/bin/sh", "-ec", check], cwd=tmp_path, check=True)
    words = shlex.split(install)
    extras = words[-1].removeprefix(f"./{name}[").removesuffix("]").split(",")

    assert shlex.split(fetch)[-1].endswith(f"/{name}")
    assert words[:-1] == ["pip", "install"]
    assert set(extras) <= project["optional-dependencies"].keys()


def test_a_pull_request_cancels_no_apply() -> None:
    """A group keeps one waiting run, so each ref has its own."""
    assert workflow(PAGE)["concurrency"].endswith("${{ github.ref }}")


def workflow(page: str) -> dict[str, Any]:
    text = page.partition("```yaml file=.github/workflows/bellhop.yaml\n")[2].partition("```")[0]
    found = yaml.safe_load(text)
    assert isinstance(found, dict)
    return found


def steps(workflow: dict[str, Any]) -> dict[str, str]:
    """Return the commands of a workflow, by the names of their steps."""
    return {
        each["name"]: each["run"] for each in workflow["jobs"]["bellhop"]["steps"] if "run" in each
    }


def pipeline(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Return the variables and commands of the workflow, without its connection to a cloud."""
    read = yaml.safe_load((folder / ".github/workflows/bellhop.yaml").read_text())
    found = steps(read)
    assert list(found) == [
        "Install",
        "Connect",
        "Show the change",
        "Decrypt kubeconfigs",
        "Register clusters",
        "Apply",
    ]
    return read["env"], list(found.values())[2:]


def decrypter(folder: Path) -> Path:
    """Make a `sops` that accepts only the page's options, and leaves the plain file as it is."""
    programs = folder / "programs"
    programs.mkdir()
    program = programs / "sops"
    program.write_text(
        '#!/bin/sh -e\ntest "$1 $2 $#" = "decrypt --in-place 3"\ngrep -q "^sops:" "$3"\n'
    )
    program.chmod(0o755)
    return programs
