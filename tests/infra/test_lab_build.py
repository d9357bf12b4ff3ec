from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

from bellhop.errors import PermanentError
from infra.lab.binaries import APISERVER, cache_folder
from infra.lab.build import build, missing
from infra.lab.progress import Progress
from infra.lab.workshop import Workshop
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]

# A build of its own process: it says when it is in the middle, and ends on a signal.
BUILDER = """
import os, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from infra.lab.build import build
from infra.lab.progress import Progress
from test_lab_build import programs

def build_programs(names, shop):
    made = programs(names, shop.folder)
    Path({home!r}, "begun").touch()
    shop.run(["/bin/sh", "-c", "sleep 300 & echo $! > {home}/child; until [ -e {home}/go ]; "
              "do sleep 0.05; done"])
    return made

print(build(Progress(sys.stdout), {environ!r}, build_programs).apiserver)
"""


def programs(
    names: AbstractSet[str], folder: Path, script: str = "echo Kubernetes v1.20.2"
) -> dict[str, Path]:
    made = {}
    for name in names:
        made[name] = folder / name
        made[name].write_text(f"#!/bin/sh\n{script}\n")
        made[name].chmod(0o755)
    return made


def simple_builder(names: AbstractSet[str], shop: Workshop) -> Mapping[str, Path]:
    return programs(names, shop.folder)


def a_progress() -> Progress:
    return Progress(io.StringIO())


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": ""}


@pytest.fixture
def builder(tmp_path: Path, environ: dict[str, str]) -> list[str]:
    tests = str(Path(__file__).parent)
    script = BUILDER.format(tests=tests, home=str(tmp_path), environ=environ)
    return [sys.executable, "-c", script]


def begin(builder: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        builder,
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
    )


def await_file(path: Path) -> None:
    eventually(f"{path} is there", lambda: path.exists() and path.stat())


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text("ascii")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_makes_what_is_missing_and_keeps_it(environ: dict[str, str]) -> None:
    """The cache holds the programs afterwards and nothing half made."""
    found = build(a_progress(), environ, simple_builder)

    cache = cache_folder(environ)
    assert cache / APISERVER == found.apiserver
    assert contents(cache) == ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"]
    assert contents(cache.parent) == ["1.20.2", "lock"]


def test_makes_only_what_no_other_place_has(environ: dict[str, str], tmp_path: Path) -> None:
    """A program on PATH is not made again."""
    own = tmp_path / "own"
    own.mkdir()
    programs({"etcd", "kubectl"}, own)
    environ["PATH"] = str(own)

    assert {"kube-apiserver", "kube-controller-manager"} == missing(environ)
    assert own / "etcd" == build(a_progress(), environ, simple_builder).etcd


def test_makes_no_controller_manager_where_none_is_asked_for(environ: dict[str, str]) -> None:
    """The demo runs without; who asks for one later has it made, and nothing else."""
    found = build(a_progress(), environ, simple_builder, controllers=False)

    assert found.controller_manager is None
    assert missing(environ) == {"kube-controller-manager"}
    assert build(a_progress(), environ, simple_builder).controller_manager


def test_does_not_keep_programs_that_do_not_run(environ: dict[str, str]) -> None:
    """What fails its own version question never reaches the cache."""

    def broken(names: AbstractSet[str], shop: Workshop) -> Mapping[str, Path]:
        return programs(names, shop.folder, "exit 1")

    with pytest.raises(PermanentError, match="does not run"):
        build(a_progress(), environ, broken)

    assert contents(cache_folder(environ).parent) == ["lock"]


def test_quotes_the_last_words_of_a_failed_step(environ: dict[str, str]) -> None:
    """The reason is in the message, since the log goes with its folder."""

    def failing(_: AbstractSet[str], shop: Workshop) -> Mapping[str, Path]:
        shop.progress.stage("baking")
        shop.run(["/bin/sh", "-c", "echo the oven is cold; exit 7"])
        return {}

    with pytest.raises(PermanentError) as caught:
        build(a_progress(), environ, failing)

    assert "'sh' ended with 7 while baking" in str(caught.value)
    assert "the oven is cold" in str(caught.value)
    assert "KUBEBUILDER_ASSETS" in str(caught.value)
    assert contents(cache_folder(environ).parent) == ["lock"]


def test_two_at_once_make_it_once(
    builder: list[str], tmp_path: Path, environ: dict[str, str]
) -> None:
    """The second waits, says for whom, and takes the files that the first has made."""
    with begin(builder) as first:
        await_file(tmp_path / "begun")
        with begin(builder) as second:
            assert second.stdout is not None
            waiting = second.stdout.readline()
            (tmp_path / "go").touch()
            first_said, _ = first.communicate(timeout=30)
            second_said, _ = second.communicate(timeout=30)

    apiserver = str(cache_folder(environ) / APISERVER)
    assert f"another build is running (process {first.pid}), waiting" in waiting
    assert apiserver == second_said.strip()
    assert "making" in first_said
    assert first_said.strip().endswith(apiserver)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="kill -9"),
        pytest.param(signal.SIGINT, id="Ctrl-C"),
    ],
)
def test_a_killed_build_leaves_no_process_and_no_trace(
    builder: list[str], tmp_path: Path, environ: dict[str, str], number: signal.Signals
) -> None:
    """Its steps end with it, and the next run removes its folder and begins again."""
    with begin(builder) as killed:
        await_file(tmp_path / "child")
        time.sleep(0.1)
        child = int((tmp_path / "child").read_text())
        assert is_alive(child)
        killed.send_signal(number)
        killed.communicate(timeout=30)
    eventually("its step has ended", lambda: not is_alive(child))

    assert not cache_folder(environ).exists()

    build(a_progress(), environ, simple_builder)

    assert contents(cache_folder(environ).parent) == ["1.20.2", "lock"]
