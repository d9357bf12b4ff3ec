"""The lab's Lambda: what becomes of answers, failures, time, versions and several at once."""

from __future__ import annotations

import threading
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bellhop.errors import MissingError, ThrottledError
from tests.lab.lambdas import Function, Lambdas
from tests.waiting import eventually

HANDLER = """
import os, subprocess, sys, threading, time

print("began")
beats = 0

def beat():
    global beats
    while True:
        time.sleep(0.01)
        beats += 1

def handle(event, context):
    match event.get("do"):
        case "raise": raise ValueError("what was given is wrong")
        case "exit": os._exit(3)
        case "kill": os.kill(os.getpid(), 9)
        case "sleep": time.sleep(event["seconds"])
        case "print": print(event["text"])
        case "beat": threading.Thread(target=beat, daemon=True).start()
        case "child":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
            print("child", child.pid)
            time.sleep(60)
    left = context.get_remaining_time_in_millis()
    return {"pid": os.getpid(), "left": left, "beats": beats, "given": os.environ.get("GIVEN"),
            "id": context.aws_request_id, "name": context.function_name, "version": VERSION}
"""

Make = Callable[..., Function]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a function of the handler above, or of another text."""

    def made(text: str = HANDLER, version: int = 1, **declared: Any) -> Function:
        package = tmp_path / f"{time.monotonic_ns()}.zip"
        with zipfile.ZipFile(package, "w") as opened:
            opened.writestr("probe.py", f"{text}\nVERSION = {version}\n")
        return Function(package, "probe.handle", **declared)

    return made


@pytest.mark.clocked
def test_a_frozen_process_answers_the_next_event(lambdas: Lambdas, make: Make) -> None:
    """The first begins a process; the second thaws it, and no thread of it ran in between."""
    lambdas.replace("f", make(environment={"GIVEN": "yes"}))
    first = lambdas.invoke("f", {"do": "beat"})
    time.sleep(0.5)
    second = lambdas.invoke("f", {})

    assert (first.error, second.error) == ("", "")
    assert first.began > 0 == second.began
    assert first.answer["pid"] == second.answer["pid"]
    assert first.answer["id"] != second.answer["id"]
    assert (first.answer["given"], first.answer["name"]) == ("yes", "f")
    assert second.answer["beats"] < 25
    assert lambdas.logs("f") == "began\n"


def test_an_outcome_has_the_logs_of_its_event(lambdas: Lambdas, make: Make) -> None:
    """The first has what was written at import as well; all are kept together."""
    lambdas.replace("f", make())

    assert lambdas.invoke("f", {"do": "print", "text": "one"}).logs == "began\none\n"
    assert lambdas.invoke("f", {"do": "print", "text": "two"}).logs == "two\n"
    assert lambdas.logs("f") == "began\none\ntwo\n"


def test_an_exception_is_returned_and_the_process_lives(lambdas: Lambdas, make: Make) -> None:
    """As Lambda has it: its type and message, and a traceback in the log."""
    lambdas.replace("f", make())
    before = lambdas.invoke("f", {})
    failed = lambdas.invoke("f", {"do": "raise"})

    assert failed.error == "ValueError"
    assert failed.answer["errorMessage"] == "what was given is wrong"
    assert "Traceback" in failed.logs
    assert lambdas.invoke("f", {}).answer["pid"] == before.answer["pid"]


@pytest.mark.parametrize(("do", "ended"), [("exit", "exit status 3"), ("kill", "signal: 9")])
def test_a_crash_is_returned_and_the_next_event_has_a_process(
    lambdas: Lambdas, make: Make, do: str, ended: str
) -> None:
    """Nobody waits for the time-out of a process that has died."""
    lambdas.replace("f", make())
    failed = lambdas.invoke("f", {"do": do})

    assert failed.error == "Runtime.ExitError"
    assert ended in failed.answer["errorMessage"]
    assert failed.took < 10
    assert lambdas.invoke("f", {}).error == ""


@pytest.mark.clocked
def test_who_is_late_is_killed_with_its_children(lambdas: Lambdas, make: Make) -> None:
    """The time-out is the declared one, and the context has it."""
    lambdas.replace("f", make(seconds=1))
    first = lambdas.invoke("f", {})
    late = lambdas.invoke("f", {"do": "child"})

    assert 0 < first.answer["left"] <= 1000
    assert late.error == "Sandbox.Timedout"
    assert late.answer["errorMessage"].endswith("Task timed out after 1.00 seconds")
    assert 1 <= late.took < 5
    for pid in (first.answer["pid"], int(late.logs.split()[-1])):
        assert _ended(pid)
    assert lambdas.invoke("f", {}).error == ""


def test_one_event_may_have_less_time_than_others(lambdas: Lambdas, make: Make) -> None:
    """The context has it, and the next event has the function's own time-out again."""
    lambdas.replace("f", make())
    hurried = lambdas.invoke("f", {}, seconds=2)
    late = lambdas.invoke("f", {"do": "sleep", "seconds": 5}, seconds=0.5)

    assert 0 < hurried.answer["left"] <= 2000
    assert late.answer["errorMessage"].endswith("Task timed out after 0.50 seconds")
    assert lambdas.invoke("f", {}).answer["left"] > 2000


def test_a_kill_in_the_middle_is_returned(lambdas: Lambdas, make: Make) -> None:
    """What is idle lives; a function that nobody declared is not there to be killed."""
    lambdas.replace("f", make())
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(lambdas.invoke, "f", {"do": "sleep", "seconds": 30})
        while not under_way.done():
            lambdas.kill("f")
            time.sleep(0.02)
    idle = lambdas.invoke("f", {}).answer["pid"]
    for name in ("f", "nobody"):
        lambdas.kill(name)

    assert under_way.result().error == "Runtime.ExitError"
    assert "signal: 9" in under_way.result().answer["errorMessage"]
    assert lambdas.invoke("f", {}).answer["pid"] == idle


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import missing_module", "Runtime.ImportModuleError"),
        ("raise RuntimeError('at import')", "RuntimeError"),
        ("def other(): pass", "Runtime.HandlerNotFound"),
        ("import os; os._exit(4)", "Runtime.ExitError"),
    ],
)
def test_a_handler_that_cannot_be_imported_fails_each_event(
    lambdas: Lambdas, make: Make, text: str, error: str
) -> None:
    """A process that never asks for an event answers none, and another one is tried."""
    lambdas.replace("f", make(text))

    assert [lambdas.invoke("f", {}).error for _ in range(2)] == [error, error]


@pytest.mark.clocked
def test_several_at_once_have_a_process_each(lambdas: Lambdas, make: Make) -> None:
    """Up to the declared limit; who comes then is throttled, and finds one when it is over."""
    lambdas.replace("f", make(concurrency=2))
    nap = {"do": "sleep", "seconds": 1.5}
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(lambdas.invoke, "f", nap) for _ in range(2)]
        time.sleep(0.5)
        with pytest.raises(ThrottledError, match="cannot invoke 'f': 2 invocations"):
            lambdas.invoke("f", {})
        pids = {each.result().answer["pid"] for each in both}

    assert len(pids) == 2
    assert lambdas.invoke("f", {}).answer["pid"] in pids


def test_new_code_answers_what_comes_after_it(lambdas: Lambdas, make: Make) -> None:
    """What is under way ends as what it began as; its process is not used again."""
    lambdas.replace("f", make())
    idle = lambdas.invoke("f", {}).answer["pid"]
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(lambdas.invoke, "f", {"do": "sleep", "seconds": 1})
        time.sleep(0.3)
        lambdas.replace("f", make(version=2))
        new = lambdas.invoke("f", {})
        old = under_way.result()

    assert (old.answer["version"], new.answer["version"]) == (1, 2)
    assert old.answer["pid"] == idle
    assert _ended(idle)


def test_layers_are_found_after_the_package(lambdas: Lambdas, make: Make, tmp_path: Path) -> None:
    """A folder or a zip, each with a folder `python`."""
    (tmp_path / "layer" / "python").mkdir(parents=True)
    (tmp_path / "layer" / "python" / "extra.py").write_text("VALUE = 'of a folder'")
    with zipfile.ZipFile(tmp_path / "layer.zip", "w") as opened:
        opened.writestr("python/extra.py", "VALUE = 'of a zip'")
    text = "from extra import VALUE\ndef handle(event, context): return VALUE"
    for layer in (tmp_path / "layer", tmp_path / "layer.zip"):
        lambdas.replace(layer.name, make(text, layers=[layer]))

    assert lambdas.invoke("layer", {}).answer == "of a folder"
    assert lambdas.invoke("layer.zip", {}).answer == "of a zip"


def test_programs_of_layers_are_run_where_their_zip_says_so(
    lambdas: Lambdas, make: Make, tmp_path: Path
) -> None:
    """A variable that names a place below /opt names it where the layer is."""
    with zipfile.ZipFile(tmp_path / "layer.zip", "w") as opened:
        program = zipfile.ZipInfo("bin/greet")
        program.external_attr = 0o100755 << 16
        opened.writestr(program, "#!/bin/sh\necho hello")
    text = """
import os, subprocess

def handle(event, context):
    return subprocess.check_output([os.environ["GREET"]], text=True)
"""
    layers = [tmp_path / "layer.zip"]
    lambdas.replace("f", make(text, layers=layers, environment={"GREET": "/opt/bin/greet"}))

    assert lambdas.invoke("f", {}).answer == "hello\n"


def test_an_unknown_function_is_missing(lambdas: Lambdas) -> None:
    """It is the invoker's error."""
    with pytest.raises(MissingError, match="cannot invoke 'nobody'"):
        lambdas.invoke("nobody", {})


@pytest.mark.clocked
def test_nothing_is_left_behind(lambdas: Lambdas, make: Make) -> None:
    """Frozen processes end with their owner, and so do the threads that served them."""
    threads = set(threading.enumerate())
    lambdas.replace("f", make())
    pid = lambdas.invoke("f", {}).answer["pid"]
    began = time.monotonic()
    lambdas.close()

    assert time.monotonic() - began < 5
    assert _ended(pid)
    eventually("its threads end", lambda: threads.issuperset(threading.enumerate()))


def _ended(pid: int) -> bool:
    """Say whether a process has ended, even if nobody took notice of it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"
