"""A process of its own for a rule that may cost too much: `python -m bellhop.celbox.cell`.

 who asks                          the cell
 ────────                          ────────
 starts it ──────────────────────► compiles the rule
 rule and object, by its input ──► limits its memory and its time for good
                                   evaluates
           ◄── one answer ──────── ends
           ◄── dies by a signal ── it met a limit: SIGPROF is time, all else is memory

It is given the object by a pipe, no environment but where code lies, and no file but its three.
The parent process may die: the cell's own clock runs on, so that it does not outlive its limit by
more than the time it was given.
"""

from __future__ import annotations

import json
import marshal
import os
import resource
import signal
import subprocess
import sys
import time

from bellhop.celbox import runtime
from bellhop.celbox.errors import CelError, CelLimitError, CelRuntimeError
from bellhop.celbox.limits import Limits, add_time

_PATIENCE = 20.0
"""Seconds on the wall that a cell has beyond ten times its limit, on a machine that is busy."""

_PER_BYTE = 64
"""Bytes that a byte of the object may come to, read and converted."""

_START = 0.1
"""Processor time that it takes to have a cell, more or less."""

_TOO_MUCH = 3


def ask(text: str, name: str, written: bytes, limits: Limits) -> bool:
    """Evaluate a rule on an object, written by marshal, in a cell.

    Raises:
        CelRuntimeError: the rule fails.
        CelLimitError: the rule goes beyond a limit.
        RuntimeError: no cell can be had.
    """
    given = marshal.dumps((text, limits.seconds, limits.memory, written))
    cell = subprocess.Popen(  # noqa: S603 - our own interpreter, and our own module.
        [sys.executable, "-S", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    )
    try:
        answer, _ = cell.communicate(given, timeout=_PATIENCE + 10 * limits.seconds)
    except subprocess.TimeoutExpired:
        raise _stopped("time", name, limits) from None
    finally:
        cell.kill()
        cell.communicate()
        if cell.returncode != 0:
            add_time(_START + limits.seconds)
    if cell.returncode == -signal.SIGPROF:
        raise _stopped("time", name, limits)
    if cell.returncode < 0 or cell.returncode == _TOO_MUCH:
        raise _stopped("memory", name, limits)
    if not answer:
        raise RuntimeError(f"no process can be had for a CEL rule (exit code {cell.returncode})")
    kind, value, took = json.loads(answer)
    add_time(took)
    if kind == "iterations":
        raise CelLimitError(value, kind="iterations", name=name)
    if kind == "failed":
        raise CelRuntimeError(value, name=name)
    return bool(value)


def _environment() -> dict[str, str]:
    """Say where its modules lie, and on Lambda the interpreter's own library."""
    libraries = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **libraries}


def _stopped(kind: str, name: str, limits: Limits) -> CelLimitError:
    if kind == "time":
        wording = f"took more than {limits.seconds:g} s of processor time"
        return CelLimitError(wording, kind="time", name=name)
    wording = f"needed more than {limits.memory} bytes of memory"
    return CelLimitError(wording, kind="memory", name=name)


def main() -> None:
    text, seconds, memory, written = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - written by `ask`.
    made = runtime.compiled(text, "rule")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = _mapped() + memory + _PER_BYTE * len(written)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        obj = marshal.loads(written)  # noqa: S302 - written by who asks.
        activation = runtime.activation(obj, written)
        answer: tuple[str, object] = ("done", runtime.verdict(made, activation, "rule"))
    except CelLimitError as error:
        answer = (error.kind, error.wording)
    except CelError as error:
        answer = ("failed", error.wording)
    except MemoryError:
        sys.exit(_TOO_MUCH)
    sys.stdout.write(json.dumps((*answer, time.process_time())))


def _mapped() -> int:
    """Return how many bytes of addresses the process has."""
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - no pathlib for one number.
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
