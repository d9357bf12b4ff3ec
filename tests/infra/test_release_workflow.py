"""The workflow that publishes a release, read as GitHub reads it; nothing here can run it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from infra.release.checkout import Checkout
from infra.release.image import IMAGES, archive_name

ROOT = Path(__file__).parents[2]
WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
RUN = "\n".join(step["run"] for step in STEPS if "run" in step)


def test_begins_only_with_the_tag_of_a_version() -> None:
    """YAML reads the key `on` as true."""
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}


def test_its_targets_and_files_are_there() -> None:
    """`make` knows each target, and what is published is what it builds."""
    targets = re.findall(r"\bmake ([\w-]+)", RUN)
    assert targets == ["release"]
    for target in targets:
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)
    [names] = re.findall(r"for name in (.+); do", RUN)
    [archive] = re.findall(r'archive="release/(\S+)"', RUN)
    made = Checkout(root=ROOT, version="$version", time=0, tagged=True)
    assert {archive.replace("$name", each) for each in names.split()} == {
        re.sub("arm64", "amd64", archive_name(each, made)) for each in IMAGES
    }


def test_each_action_has_a_version() -> None:
    """No branch of somebody else's is run with rights to publish."""
    used = [step["uses"] for step in STEPS if "uses" in step]

    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@v\d+(\.\d+)*", each)] == []


def test_each_job_has_the_rights_that_it_needs() -> None:
    """None by default; only PyPI's has an identity, and no text of an event is put into a shell."""
    rights = {name: job["permissions"] for name, job in WORKFLOW["jobs"].items()}

    assert WORKFLOW["permissions"] == {}
    assert rights == {
        "build": {"contents": "read"},
        "github": {"contents": "write"},
        "pypi": {"id-token": "write"},
        "image": {"packages": "write"},
    }
    assert "${{" not in RUN
