"""Become another program that ends when its parent process ends.

A control plane left behind by a killed test run or demo would hold memory and ports for ever.
The kernel can be asked to end a process with its parent, but only by the process itself, and
running Python between fork and exec is unsafe beside threads: hence this small program, run as
`python -I -S launcher.py PARENT-PID one|tree PROGRAM ARGUMENT...` in a session of its own.
A program that has children (`tree`) cannot pass such an end on to them: there the launcher
stays and ends the whole group. It imports nothing of ours.
"""

import ctypes
import os
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1  # From <linux/prctl.h>; it survives exec.


def _end_with(parent: int, number: signal.Signals) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:  # It died before the kernel knew of the wish.
        sys.exit(0)


def _launch(parent: int, extent: str, argv: list[str]) -> None:
    try:
        if extent == "tree":
            signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
            _end_with(parent, signal.SIGTERM)
            sys.exit(subprocess.call(argv))  # noqa: S603 - running that program is the point
        _end_with(parent, signal.SIGKILL)
        os.execv(argv[0], argv)  # noqa: S606 - becoming that program is the point
    except OSError as error:
        sys.exit(f"{argv[0]}: {error.strerror}")


if __name__ == "__main__":
    _launch(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
