"""The workflow of CI for those who fork, read as GitHub reads it; nothing here can run it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
STEPS = WORKFLOW["jobs"]["ci"]["steps"]


def test_runs_the_script_of_ci_and_no_other_test() -> None:
    """A fork gets the same errors as a landing."""
    runs = [step["run"] for step in STEPS if "run" in step]

    assert "bash .ci/run" in runs
    assert not any("make " in run or "pytest" in run for run in runs)


def test_has_no_rights_and_a_version_of_each_action() -> None:
    """It runs the code of unauthenticated clients: it may only read."""
    used = [step["uses"] for step in STEPS if "uses" in step]

    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@v\d+(\.\d+)*", each)] == []


def test_the_script_runs_the_tests_of_the_readme() -> None:
    """CI runs `make test` with the part that has all; `make` knows each target that it names."""
    script = (ROOT / ".ci/run").read_text()
    commands = re.findall(r"^ *make (.*)$", script, re.MULTILINE)
    assert "test PART=landing" in commands
    for command in commands:
        subprocess.run(["make", "-n", *command.split()], cwd=ROOT, check=True, capture_output=True)
