"""The page on backups: what a timer and cron run writes a backup, and asks nobody."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from tests.terraform.recovery import HEADING, NOT_TYPED, lines, untyped

PAGE = (Path(__file__).parents[2] / "docs/how-to/back-up-and-restore.md").read_text()
SCHEDULES = {
    "systemd": re.findall(r"^ExecStart=(.*)$", PAGE, re.MULTILINE)[0].replace("%%", "%"),
    "cron": re.findall(r"^15 3 [* ]+ (.*)$", PAGE, re.MULTILINE)[0].replace("\\%", "%"),
}


@pytest.mark.parametrize("line", SCHEDULES.values(), ids=SCHEDULES)
def test_a_schedule_writes_a_backup(line: str, tmp_path: Path) -> None:
    """As the page has it, but for its paths."""
    state = tmp_path / "state"
    open_state(state, Settings()).close()
    (tmp_path / "passphrase").write_text("four words and a number 7\n")
    (tmp_path / "backup").mkdir()
    ours = {
        '"/backup/': f'"{tmp_path}/backup/',
        "/opt/bellhop/bin": str(Path(sys.executable).parent),
        "/var/lib/bellhop": str(state),
        "/etc/bellhop": str(tmp_path),
    }
    for path, here in ours.items():
        line = line.replace(path, here)
    environment = {"PATH": "/usr/bin:/bin", "BELLHOP_STATE": str(state), "HOME": str(tmp_path)}
    subprocess.run(["/bin/sh", "-c", line], env=environment, stdin=subprocess.DEVNULL, check=True)

    (file,) = (tmp_path / "backup").iterdir()
    assert re.fullmatch(r"bellhop-\d{4}-\d\d-\d\d(-\d{4})?\.archive", file.name)
    assert file.stat().st_mode & 0o777 == 0o600


def test_each_line_of_a_recovery_is_typed_or_listed_with_its_reason() -> None:
    """tests/terraform/test_deployed.py types all others, and each entry of the list has a line."""
    assert {untyped(line) for line in lines()} - {""} == NOT_TYPED.keys()
    languages = re.findall(r"^```(\w+)", PAGE[PAGE.index(HEADING) :], re.MULTILINE)
    assert set(languages) <= {"bash", "hcl", "shell"}
