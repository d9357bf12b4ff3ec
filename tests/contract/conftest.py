"""One suite for each port, run on every provider: `rig` is what a test gets of one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RIGS = {
    path.stem: f"tests.contract.rigs.{path.stem}:Rig"
    for path in sorted((Path(__file__).parent / "rigs").glob("*.py"))
}
"""A provider is one file there: its `Rig` has a method for each port that the provider has."""

Other = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(params=RIGS)
def rig_class(request: pytest.FixtureRequest) -> str:
    return RIGS[request.param]


@pytest.fixture
def rig(rig_class: str, tmp_path: Path) -> Iterator[Any]:
    module, _, name = rig_class.partition(":")
    rig = getattr(import_module(module), name)(str(tmp_path))
    yield rig
    rig.close()


@pytest.fixture
def other_process(rig: Any, rig_class: str) -> Iterator[Other]:
    """Start a role of other_process.py in another process, at the same place."""
    started: list[subprocess.Popen[str]] = []

    def start(role: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.contract.other_process", rig_class, rig.place, role]
        process = subprocess.Popen(
            [*command, *map(str, arguments)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
