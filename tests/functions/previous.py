"""A version of Bellhop that was, out of the project's history, in a process of its own.

Its functions are called as those of now are: `Previous(…).handlers[stage](event, context)`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.lab.moto import ACCESS_KEY, REGION, SECRET_KEY

ROOT = Path(__file__).parents[2]
COMMIT = "e7fafbad73e3865ee11b15863aef109a3709ab68"
"""The first version with functions on AWS, whatever was changed since."""

# Answers one line for each: which stage, and the event.
_WORKER = """
import io, json, os, sys
from importlib import import_module
from bellhop.adapters.aws.services import Services
from bellhop.aws.batch import Batch
from bellhop.aws.front import Front
from bellhop.aws.resources import open_resources
from bellhop.logs import Log
from bellhop.model.reach import HERE

class Context:
    def get_remaining_time_in_millis(self):
        return 60_000

def opening():
    services = Services(region=region, endpoint=endpoint, keys=(access, secret))
    return open_resources(os.environ, services, Log(io.StringIO()), reach=HERE)

region, endpoint, access, secret = sys.argv[1:]
handlers = {"ingest": Front(import_module("functions.ingest.aws")._stage, opening)}
for stage in ("evaluate", "deploy", "sweep"):
    handlers[stage] = Batch(import_module(f"functions.{stage}.aws")._stage, opening)
for line in sys.stdin:
    stage, event = json.loads(line)
    print(json.dumps(handlers[stage](event, Context())), flush=True)
"""


class Previous:
    """An installation's functions as they were."""

    def __init__(self, environment: Mapping[str, str], endpoint: str, folder: Path) -> None:
        tree = _unpacked(folder)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORKER, REGION, endpoint, ACCESS_KEY, SECRET_KEY],
            cwd=folder,
            env={**environment, "PYTHONPATH": f"{tree}:{tree / 'shared'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stages = ("ingest", "evaluate", "deploy", "sweep")
        self.handlers = {stage: self._handler(stage) for stage in stages}

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def _handler(self, stage: str) -> Callable[[Mapping[str, Any], Any], dict[str, Any]]:
        def handle(event: Mapping[str, Any], _context: Any) -> dict[str, Any]:
            assert self._process.stdin
            assert self._process.stdout
            self._process.stdin.write(json.dumps([stage, event]) + "\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
            return answer

        return handle


def _unpacked(folder: Path) -> Path:
    """Take the version out of git; in a clone that was made without history a test is skipped."""
    tree = folder / "previous"
    tree.mkdir()
    archive = folder / "previous.tar"
    git = ["git", "archive", "-o", str(archive), COMMIT, "shared", "functions"]
    done = subprocess.run(git, cwd=ROOT, capture_output=True, check=False, text=True)
    if done.returncode:
        reason = (
            f"cannot run the version {COMMIT[:12]}: git does not have it"
            f" ({done.stderr.strip()}); `git fetch --unshallow` brings a clone's whole history"
        )
        asked = ["git", "rev-parse", "--is-shallow-repository"]
        shallow = subprocess.run(asked, cwd=ROOT, capture_output=True, check=False, text=True)
        whole = os.environ.get("CI") == "true" and shallow.stdout.strip() == "false"
        pytest.fail(reason) if whole else pytest.skip(reason)
    subprocess.run(["tar", "-xf", str(archive), "-C", str(tree)], check=True)
    return tree
