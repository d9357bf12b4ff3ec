"""Programs that a lab starts, halts and ends."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from infra.lab.processes import Nursery
from tests.waiting import eventually

SPINS = """
import sys, threading, time
def spin():
    while True:
        for name in sys.argv[1:]:
            with open(name, "w") as file:
                file.write(str(time.monotonic_ns()))
for _ in range(4):
    threading.Thread(target=spin).start()
"""


def test_nothing_of_a_frozen_program_runs(tmp_path: Path) -> None:
    """Neither do its threads go on for a moment, nor does it stay so once it is thawed."""
    output = tmp_path / "output"

    def changes() -> bool:
        before = output.stat().st_mtime_ns
        time.sleep(0.1)
        return output.stat().st_mtime_ns != before

    with Nursery() as nursery:
        program = nursery.start([sys.executable, "-c", SPINS, output], tmp_path / "log")
        eventually(program.last_words, output.exists)
        for _ in range(5):
            program.freeze()
            assert not changes()
            program.thaw()
            assert changes()
