"""A boxed call: what it is given, what it may take, and what is left of it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bellhop.adapters.programs import box
from bellhop.adapters.programs.box import CancelledError, Limits, OvertimeError, cut_off, run
from bellhop.errors import TooLargeError
from tests.waiting import eventually

SHELL = Path("/bin/sh")


def sh(script: str, *arguments: str, **how: object) -> box.Ended:
    return run(SHELL, ["-c", script, "sh", *arguments], **how)  # type: ignore[arg-type]


def ends(number: int) -> bool:
    """Wait until a process that was killed has ended."""
    try:
        process = os.pidfd_open(number)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 30)[0])
    finally:
        os.close(process)


def children() -> set[str]:
    """Return the processes that this one has started, and those that it has not waited for."""
    found = Path("/proc/self/task").glob("*/children")
    return {number for each in found for number in each.read_text().split()}


def test_it_has_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    ended = sh("env; pwd; ls -A", environment={"MORE": "1"})
    written = ended.output.decode()

    assert ended.code == 0
    assert "hunter2" not in written
    assert "MORE=1" in written
    home = next(line for line in written.splitlines() if line.startswith("HOME="))[5:]
    assert home in written.splitlines()
    assert not Path(home).exists()


def test_files_lie_in_memory_and_are_deleted_afterwards() -> None:
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208
    ended = sh('cat "$1" "$2"; ls -l "$1"', "{a}", "{b}", files={"a": b"one\n", "b": b"two\n"})

    assert ended.output.startswith(b"one\ntwo\n")
    assert b"memfd:a" in ended.output
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_both_streams_and_the_code_come_back() -> None:
    ended = sh("echo out; echo err >&2; exit 3")
    assert (ended.code, ended.output, ended.errors) == (3, b"out\n", "err\n")


def test_it_reads_no_terminal() -> None:
    assert sh("read line; echo $?").output == b"1\n"


def test_who_takes_too_long_is_asked_to_end() -> None:
    """It may write down that it was interrupted."""
    with pytest.raises(OvertimeError, match="longer than 1 s"):
        sh("trap 'exit 0' TERM; while :; do sleep 0.05; done", limits=Limits(seconds=1))


def test_who_does_not_end_is_killed_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(box, "GRACE_SECONDS", 0.2)
    place = tmp_path / "pids"
    script = f"trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $! > {place}; wait"
    with pytest.raises(OvertimeError):
        sh(script, limits=Limits(seconds=0.5))

    child = int(place.read_text())
    assert ends(child)


def test_who_leaves_a_child_behind_takes_it_along(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    sh(f"sleep 60 >/dev/null 2>&1 & echo $! > {place}")

    child = int(place.read_text())
    assert ends(child)


@pytest.mark.skipif(not cut_off(), reason="the kernel lets nobody take the network away")
def test_offline_it_has_no_network() -> None:
    """A namespace of its own has loopback only, and that is down."""
    assert len(sh("cat /proc/net/dev", offline=True).output.splitlines()) == 3
    assert sh("ulimit -v", offline=True).output == b"2097152\n"


@pytest.mark.parametrize("script", [None, "exit 1"])
def test_where_the_network_cannot_be_taken_away_it_runs_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None
) -> None:
    """There is no `unshare`, or the kernel refuses what it asks for."""
    if script:
        (tmp_path / "unshare").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cut_off.__wrapped__() == ()


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_who_writes_without_end_is_ended(stream: str) -> None:
    with pytest.raises(TooLargeError, match="more than 1 MiB"):
        sh(
            f"while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaa {stream}; done",
            limits=Limits(output=1 << 20),
        )


def test_memory_is_bounded() -> None:
    """Dash is at the end of its memory, and says so."""
    grow = 'a=aaaaaaaaaaaaaaaa; while :; do a="$a$a"; done'
    ended = sh(grow, limits=Limits(memory=64 << 20, seconds=30))
    assert ended.code != 0


def test_a_program_that_loops_is_ended_and_one_that_waits_is_not() -> None:
    """Processor time is bounded, however long the machine takes to grant it."""
    with pytest.raises(TooLargeError, match="more than 1 s of processor time"):
        sh("while :; do :; done", limits=Limits(processor=1))
    assert sh("sleep 2", limits=Limits(processor=1)).code == 0


def test_several_run_at_once() -> None:
    ended: list[box.Ended] = []
    threads = [
        threading.Thread(
            target=lambda n=n: ended.append(sh('cat "$1"', "{a}", files={"a": b"%d" % n}))
        )
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(each.output for each in ended) == [b"%d" % n for n in range(8)]


def test_what_a_killed_process_started_ends_with_it(tmp_path: Path) -> None:
    """A watcher ends the program, and its children, and deletes its home with what lies there."""
    place = tmp_path / "pids"
    program = f"trap '' TERM; sleep 300 & echo $! $$ > {place}.new; mv {place}.new {place}; wait"
    code = (
        "from pathlib import Path\n"
        "from bellhop.adapters.programs.box import run\n"
        "from bellhop.adapters.programs.box import private_home\n"
        "with private_home({'folder/secret': b'hunter2'}) as home:\n"
        f"    run(Path('/bin/sh'), ['-c', {program!r}], home=home)"
    )
    environment = {"PYTHONPATH": ":".join(sys.path), "TMPDIR": str(tmp_path)}
    worker = subprocess.Popen([sys.executable, "-c", code], env=environment)
    eventually("the program runs", place.exists)
    assert list(tmp_path.rglob("secret"))
    worker.kill()
    worker.wait()

    assert all(map(ends, map(int, place.read_text().split())))
    eventually("its home is deleted", lambda: not list(tmp_path.rglob("secret")))


def test_a_slow_deletion_of_the_home_does_not_delay_the_end(tmp_path: Path) -> None:
    """The watcher kills a program that ignores SIGTERM while the home is still being deleted."""
    waits = tmp_path / "rm"
    waits.write_text("#!/bin/sh\nexec sleep 60\n")
    waits.chmod(0o755)
    program = subprocess.Popen(
        ["/bin/sh", "-c", "trap '' TERM; echo; while :; do sleep 1; done"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert program.stdout
    assert program.stdout.readline()
    path = f"{tmp_path}:{os.environ['PATH']}"
    watcher = subprocess.Popen(
        ["/bin/sh", "-c", box._WATCH, "sh", str(program.pid), str(tmp_path / "home")],
        stdin=subprocess.DEVNULL,
        env={"PATH": path},
        start_new_session=True,
    )

    assert ends(program.pid)
    os.killpg(watcher.pid, signal.SIGKILL)
    watcher.wait()
    program.wait()
    program.stdout.close()


def test_a_process_that_is_killed_while_it_ends_a_program_leaves_none(tmp_path: Path) -> None:
    """A program may take ten seconds to end once it is asked to; it is watched until then."""
    place, asked = tmp_path / "pid", tmp_path / "asked"
    program = f"trap '>{asked}' TERM; echo $$ >{place}; while :; do sleep 1; done"
    code = (
        "from pathlib import Path\n"
        "from bellhop.adapters.programs.box import Limits, run\n"
        f"run(Path('/bin/sh'), ['-c', {program!r}], limits=Limits(seconds=1))"
    )
    environment = {"PYTHONPATH": ":".join(sys.path), "TMPDIR": str(tmp_path)}
    worker = subprocess.Popen([sys.executable, "-c", code], env=environment)
    eventually("the program is asked to end", asked.exists)
    worker.kill()
    worker.wait()

    assert ends(int(place.read_text()))


def test_a_program_leaves_nothing_that_watches_it() -> None:
    """The watcher ends with the call, and is waited for."""
    before = children()
    sh("true")
    assert children() <= before


def test_a_call_that_is_cancelled_ends_early() -> None:
    """It is asked to end, as at the end of its time, and is asked about only while it is silent."""
    asked: list[bool] = []

    def cancelled() -> bool:
        asked.append(True)
        return len(asked) > 1

    with pytest.raises(CancelledError, match="no longer wanted"):
        sh("echo begun; sleep 600", limits=Limits(seconds=500, cancelled=cancelled))
    assert len(asked) == 2
