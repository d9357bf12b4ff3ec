"""The scheduler of parallel runs: no other test runs beside one that measures time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CONFTEST = """
import pytest
from tests import sharing

def pytest_collection_modifyitems(config, items):
    for item in items:
        if "clocked" in item.name:
            item.add_marker("clocked")
    items.sort(key=lambda item: "clocked" in item.name)
    sharing.list_clocked(config, items)

def pytest_configure_node(node):
    sharing.pass_file(node)

def pytest_xdist_make_scheduler(config, log):
    return sharing.Sharing(config, log)
"""

FILE = """
import os, time, pytest

@pytest.mark.parametrize("number", range({many}))
def test_{name}(number):
    with open(os.environ["RECORD"], "a") as record:
        record.write(f"begin {name}\\n")
        record.flush()
        time.sleep(0.01)
        record.write(f"end {name}\\n")
"""


@pytest.mark.parametrize("workers", [1, 3])
def test_clocked_tests_run_last_and_one_at_a_time(tmp_path: Path, workers: int) -> None:
    """Each file has one, and the workers have unequal shares of the other tests."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for number, many in enumerate((1, 9, 2, 30)):
        plain = FILE.format(many=many, name=f"plain{number}")
        clocked = FILE.format(many=2, name=f"clocked{number}")
        (tmp_path / f"test_{number}.py").write_text(plain + clocked)
    record = tmp_path / "record"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--dist", "loadfile"),
            *("--no-loadscope-reorder", "-p", "no:cacheprovider", "-c", os.devnull),
            *("--rootdir", str(tmp_path), str(tmp_path)),
        ],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "RECORD": str(record)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    lines = record.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if "clocked" in line)
    assert len(lines) == 2 * (42 + 8)
    assert all("plain" in line for line in lines[:first])
    for begin, end in zip(lines[first::2], lines[first + 1 :: 2], strict=True):
        assert begin.startswith("begin clocked")
        assert end == begin.replace("begin", "end")
