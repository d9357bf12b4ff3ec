"""One call of a program with untrusted input: bounded in time, memory and output.

Its processor time is bounded as well: a program that waits uses none, and one that loops all.

It has a home of its own that is deleted afterwards, nothing of our environment, and files that lie
in memory. When its time is over it is asked to end (SIGTERM), so that Helm records a failure, and
is killed if it does not. So is all that it started. Offline it has no network, where the kernel
lets us take it away.

A watcher does the same, and deletes the home, when this process is killed in the meantime: the
kernel closes a pipe to it then. It sends SIGTERM at once and SIGKILL after two seconds, however
long the deletion of the home takes. So a release never has two Helms, that of a dead worker and
that of the next one.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path

from msgspec import Struct

from bellhop.errors import StaleError, TemporaryError, TooLargeError

_PREFIX = "bellhop-call-"


@contextmanager
def private_home(files: Mapping[str, bytes] | None = None) -> Iterator[Path]:
    """Make a folder with files by their paths; remove it afterwards with all that lies in it.

    It is locked as long as its process lives. A process that is killed leaves its folders behind
    without a lock, and the next one that makes a folder removes them.

    Raises:
        OSError: no folder can be made.
    """
    remove_abandoned_homes()
    home, lock = _lock()
    try:
        for path, content in (files or {}).items():
            file = home / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)
        os.close(lock)


@cache
def remove_abandoned_homes() -> None:
    """Remove the folders of processes that were killed; do it once in each process."""
    for home in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Another process, or another user, has those that cannot be locked.
        with suppress(OSError):
            lock = _open(home)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(home)
            finally:
                os.close(lock)


def _lock() -> tuple[Path, int]:
    """Make a folder and lock it; another one if it was removed as abandoned before its lock."""
    while True:
        home = Path(tempfile.mkdtemp(prefix=_PREFIX))
        with suppress(FileNotFoundError):
            lock = _open(home)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if home.exists():
                return home, lock
            os.close(lock)


def _open(home: Path) -> int:
    return os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


GRACE_SECONDS = 10.0
"""How long a program may take to end once it was asked to."""

_PIECE = 1 << 16
_LOOK_SECONDS = 2.0


def never() -> bool:
    """Return False: the call is not cancelled."""
    return False


_START = """
read -r _ || exit
ulimit -v "$1"
ulimit -t "$2"
shift 2
exec "$@" </dev/null
"""
"""Runs a program once a line comes, which a killed process never sends."""

_WATCH = """
read -r _
kill -TERM "-$1"
rm -rf "$2" &
sleep 2
kill -KILL "-$1"
rm -rf "$2"
"""
"""Ends a process group, and deletes its home, when its input ends.

A program that ignores SIGTERM is killed after two seconds. Its home is deleted twice, as it may
write there until then.
"""


class Limits(Struct, frozen=True):
    """Limits of a call. Memory is address space: of Go, a third of it is never touched.

    The `processor` is the time in seconds that each of its processes may use of one. A call that
    is `cancelled` ends early; that is asked about each two seconds while it is silent.
    """

    seconds: float = 330.0
    processor: int = 60
    memory: int = 2 << 30
    output: int = 32 << 20
    cancelled: Callable[[], bool] = never


USUAL = Limits()


class Ended(Struct, frozen=True):
    """How a call ended, and what it `wrote` into the files that it was given empty."""

    code: int
    output: bytes
    errors: str
    wrote: Mapping[str, bytes] = {}


class OvertimeError(TemporaryError):
    """A program took longer than it may."""


class CancelledError(StaleError):
    """A call was cancelled while its program ran."""


def run(
    program: Path,
    arguments: Sequence[str],
    *,
    files: Mapping[str, bytes] | None = None,
    environment: Mapping[str, str] | None = None,
    limits: Limits = USUAL,
    offline: bool = False,
    home: Path | None = None,
) -> Ended:
    """Run a program and wait until it ends.

    An argument, or a variable, `{NAME}` stands for the path of the file of that name, and `{home}`
    for that of its home, a `private_home` that may hold files. `offline` takes the network away
    where `cut_off` finds a way.

    Raises:
        OvertimeError: it took longer than it may, and was ended.
        CancelledError: it was cancelled, and was ended.
        TooLargeError: it wrote more, or used the processor for longer, than it may, and was ended.
        OSError: it cannot be run.
    """
    with (
        nullcontext(home) if home else private_home() as place,
        _in_memory(files or {}) as held,
    ):
        paths = {f"{{{name}}}": f"/proc/self/fd/{number}" for name, number in held.items()}
        paths["{home}"] = str(place)
        more = {
            name: paths.get(each, each.replace("{home}", str(place)))
            for name, each in (environment or {}).items()
        }
        apart = cut_off() if offline else ()
        command = [*apart, str(program), *(paths.get(each, each) for each in arguments)]
        process = subprocess.Popen(  # noqa: S603 - the program is one of ours to choose
            ["/bin/sh", "-c", _START, "sh", *_write_files(limits), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"HOME": str(place), "TMPDIR": str(place), **more},
            cwd=place,
            pass_fds=tuple(held.values()),
            start_new_session=True,
        )
        with _watch(process, place):
            output, errors = _read(process, limits)
            used = _processor_time(process)
            process.wait()
        if process.returncode == -signal.SIGKILL and used > limits.processor - 1:
            raise TooLargeError(f"it took more than {limits.processor} s of processor time")
        wrote = {
            name: os.pread(held[name], limits.output, 0)
            for name, content in (files or {}).items()
            if not content
        }
    return Ended(process.returncode, output, errors.decode(errors="replace"), wrote)


@cache
def cut_off() -> tuple[str, ...]:
    """Return what runs a command without a network; nothing where the kernel does not allow it."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    command = (unshare, "--map-root-user", "--net")
    tried = subprocess.run([*command, "/bin/sh", "-c", ":"], capture_output=True, check=False)  # noqa: S603
    return () if tried.returncode else command


@contextmanager
def _in_memory(files: Mapping[str, bytes]) -> Iterator[dict[str, int]]:
    """Hold files in memory while a program runs, by the numbers of their descriptors."""
    held: dict[str, int] = {}
    try:
        for name, content in files.items():
            held[name] = os.memfd_create(name)
            with os.fdopen(os.dup(held[name]), "wb") as file:
                file.write(content)
        yield held
    finally:
        for number in held.values():
            os.close(number)


@contextmanager
def _watch(process: subprocess.Popen[bytes], home: Path) -> Iterator[None]:
    """Let a program start, and end it; a watcher does that if this process is killed."""
    watcher: subprocess.Popen[bytes] | None = None
    try:
        watcher = subprocess.Popen(  # noqa: S603 - a script of ours
            ["/bin/sh", "-c", _WATCH, "sh", str(process.pid), str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
            start_new_session=True,
        )
        assert process.stdin
        with suppress(BrokenPipeError):
            process.stdin.write(b"\n")
            process.stdin.close()
        yield
    finally:
        # Until the program has ended, which may take seconds, it is watched.
        _end(process)
        if watcher:
            watcher.kill()
            watcher.wait()
            assert watcher.stdin
            watcher.stdin.close()


def _write_files(limits: Limits) -> tuple[str, str]:
    """Return the arguments of the script that starts a program."""
    return str(limits.memory // 1024), str(limits.processor)


def _processor_time(process: subprocess.Popen[bytes]) -> float:
    """Wait until a program has ended; return the seconds that it used of processors."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    # After the name, which may hold anything, the twelfth and thirteenth fields are these times.
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _read(process: subprocess.Popen[bytes], limits: Limits) -> tuple[bytes, bytes]:
    """Read what a program writes until it closes both streams."""
    deadline = time.monotonic() + limits.seconds
    read = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream in read:
            assert stream
            selector.register(stream, selectors.EVENT_READ, stream)
        while selector.get_map():
            ready = selector.select(min(max(deadline - time.monotonic(), 0), _LOOK_SECONDS))
            if not ready and time.monotonic() >= deadline:
                raise OvertimeError(f"it took longer than {limits.seconds:.0f} s")
            if not ready and limits.cancelled():
                raise CancelledError("it is no longer wanted")
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE)
                read[key.data] += piece
                if not piece:
                    selector.unregister(key.fileobj)
                elif sum(map(len, read.values())) > limits.output:
                    raise TooLargeError(f"it wrote more than {limits.output >> 20} MiB")
    return bytes(read[process.stdout]), bytes(read[process.stderr])


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program that runs on, and all that it started."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    # Its children are in its group, though it has ended.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            with suppress(BrokenPipeError):
                stream.close()
