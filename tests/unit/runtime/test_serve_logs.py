"""Standard output of `bellhop serve`: one JSON line per record, of Bellhop and of libraries."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

# Libraries log as soon as the process is ready, and then a signal ends it.
PROGRAM = """
import logging, os, signal, sys

def when_ready(record):
    if record.getMessage() == "Bellhop serves":
        logging.getLogger("botocore.auth").debug("hunter2")
        logging.getLogger("urllib3.connectionpool").debug("hunter2")
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
        logging.getLogger("urllib3.connectionpool").warning("Failed to parse headers of %s", "x")
        os.kill(os.getpid(), signal.SIGTERM)
    return True

logging.getLogger("bellhop").addFilter(when_ready)
from bellhop.cli.main import run
run()
"""


def test_logs_are_json_and_one_line_for_people_says_when_it_is_ready(tmp_path: Path) -> None:
    """Warnings of libraries have severity and logger; records below a warning are not written."""
    state = str(tmp_path / "state")
    served = subprocess.run(
        [sys.executable, "-c", PROGRAM, "serve", "--listen", "127.0.0.1:0", "--state", state],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in served.stdout.splitlines()]
    records = [(each["severity"], each.get("logger"), each["message"]) for each in lines]

    (serves,) = [each for each in lines if each["message"] == "Bellhop serves"]
    assert served.stderr == f"Bellhop is ready at {serves['url']}; its state is in '{state}'.\n"
    assert records[-4:] == [
        ("WARNING", "uvicorn.error", "Invalid HTTP request received."),
        ("WARNING", "urllib3.connectionpool", "Failed to parse headers of x"),
        ("INFO", None, "Bellhop serves"),
        ("INFO", None, "Bellhop stops"),
    ]
