"""Critical sections that Ctrl-C does not interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

from bellhop.registration.record_update import undisturbed


def test_ctrl_c_waits_for_what_must_be_whole() -> None:
    """The token in the cluster and the record here change together, or not at all."""
    code = (
        "import os, signal\n"
        "from bellhop.registration.record_update import undisturbed\n"
        "try:\n"
        "    with undisturbed():\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        print('done')\n"
        "except KeyboardInterrupt:\n"
        "    print('then interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )

    assert done.stdout.split("\n")[:2] == ["done", "then interrupted"]


def test_threads_have_no_ctrl_c_to_wait_for() -> None:
    """Signals belong to the main thread; in other threads the block just runs."""
    ran = []

    def work() -> None:
        with undisturbed():
            ran.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert ran == [True]
