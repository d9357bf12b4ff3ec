"""What checkov finds in modules and examples is waived one by one, with a reason, or put right."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.lab.terraform import ROOT
from tests.missing import missing

WAIVERS = ROOT / ".checkov.yaml"
PACKAGE, RESOLVED_AS_OF = "checkov==3.3.30", "2026-11-20"
UV = Path(sys.executable).with_name("uv")


def test_each_waiver_has_a_reason() -> None:
    """A sentence stands before it, or behind the check that a resource skips."""
    listed = re.search(r"^skip-check:\n(.*)", WAIVERS.read_text(), re.DOTALL | re.MULTILINE)
    assert listed
    for reason, checks in re.findall(r"((?:  # .*\n)+|^)((?:  - .*\n)+)", listed[1]):
        assert reason.rstrip().endswith("."), checks
    for path in ROOT.rglob("*.tf"):
        for skipped in re.findall(r"checkov:skip=(.*)", path.read_text()):
            assert re.fullmatch(r"CKV2?_\w+:[A-Z].*\.", skipped), path


@pytest.mark.timeout(600)
def test_checkov_finds_what_is_waived_and_nothing_else(tmp_path: Path) -> None:
    """A waiver that no resource needs any more is deleted."""
    waived = yaml.safe_load(WAIVERS.read_text())
    left_out = shutil.ignore_patterns(WAIVERS.name, ".terraform*", *waived["skip-path"])
    shutil.copytree(ROOT, tmp_path / "terraform", ignore=left_out)
    install = [UV, "tool", "run", "-q", "--exclude-newer", RESOLVED_AS_OF, "--from", PACKAGE]
    options = ["-d", "terraform", "--framework", *waived["framework"], "--skip-download"]
    done = subprocess.run(
        [*install, "checkov", *options, "--compact", "-o", "json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout.startswith("{"):
        missing(f"checkov does not run: {done.stderr[-500:]}")
    failed = {
        each["check_id"]: f"{each['check_name']}: {each['resource']} in {each['file_path']}"
        for each in json.loads(done.stdout)["results"]["failed_checks"]
    }

    unwaived = {
        check: found for check, found in failed.items() if check not in waived["skip-check"]
    }
    assert unwaived == {}
    assert sorted(set(waived["skip-check"]) - failed.keys()) == []
