"""A process that is asked to stop does so, whenever it is asked."""

from __future__ import annotations

import subprocess
import sys

# The main thread's wait is not interrupted here, as where a signal comes just before it begins.
SIGNALLED = """
import signal, threading, time
from bellhop.runtime.embedded.lifecycle import stop_on_signals, wait_for

def tell():
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

stop = stop_on_signals()
threading.Thread(target=tell).start()
wait_for(stop)
"""


def test_a_signal_that_interrupts_no_wait_is_received() -> None:
    """Nobody needs to send a second one."""
    done = subprocess.run([sys.executable, "-c", SIGNALLED], timeout=30, check=False)

    assert done.returncode == 0
