"""The demo is left by Ctrl-C at any moment, and leaves nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from infra.demo.recording import COMMAND, picture, terminal
from infra.demo.scenes import next_step
from infra.lab.binaries import Binaries
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]

_PATIENCE = 60
"""Seconds: the lab's programs have ten to end, and then Bellhop's own."""


def descendants(tag: str) -> list[str]:
    """Return the command lines of processes that carry a tag in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            environment = (entry / "environ").read_bytes()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if tag.encode() in environment:
            found.append(command)
    return found


def test_suggests_to_keep_it_only_where_it_is_not_kept() -> None:
    """A user who runs it with KEEP=1 gets no such advice."""
    assert "make demo KEEP=1 to play with these clusters" in next_step(kept=False)
    assert "KEEP=1" not in next_step(kept=True)
    assert "docs/tutorial/first-fleet.md to play with these clusters" in next_step(kept=True)
    for kept in (True, False):
        assert "docs/tutorial/two-clusters.md to run it on your own" in next_step(kept=kept)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("", id="while the clusters boot"),
        pytest.param("Two clusters", id="while Bellhop runs"),
        pytest.param("It is all still running", id="when it was kept"),
    ],
)
def test_ctrl_c_leaves_no_process_and_no_file(
    tmp_path: Path, control_plane_binaries: Binaries, said: str
) -> None:
    """Whatever was started ends, and the temporary folder is empty again.

    It takes long: the demo boots its clusters, and plays all its stories where it is kept.
    """
    del control_plane_binaries
    output = tmp_path / "output"
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"}
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "infra.demo", "--keep"],
            cwd=ROOT,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        eventually(
            output.read_text,
            lambda: (
                process.poll() is not None
                or (said in output.read_text() and list(temporary.iterdir()))
            ),
            patience=300,
        )
        assert process.poll() is None, output.read_text()
        process.send_signal(signal.SIGINT)
        status = process.wait(_PATIENCE)
    finally:
        process.kill()
        process.wait()

    # Interrupted while it makes a class, Python ends by the signal itself: shells say 130 to both.
    assert status in {130, -signal.SIGINT}, output.read_text()
    assert list(temporary.iterdir()) == []
    assert descendants(f"TMPDIR={temporary}") == []
    assert "Traceback" not in output.read_text()


def test_the_picture_shows_what_was_printed_and_loads_nothing() -> None:
    """GitHub shows no picture that asks a server for a font."""
    console = terminal()
    console.print("[bold]Two clusters[/bold]")
    made = picture(console)

    assert "Two&#160;clusters" in made
    assert COMMAND.replace(" ", "&#160;") in made or COMMAND in made
    assert "url(" not in re.sub(r"url\(#", "", made)


def test_the_picture_in_the_readme_is_of_this_demo() -> None:
    """Its first scene, to the end."""
    shown = (ROOT / "docs/images/demo.svg").read_text().replace("&#160;", " ")

    for text in (
        "Two clusters, registered through the CLI",
        "Cross-cluster service discovery, as EventTrigger",
        "its twin and its Endpoints are in destination",
        "both are gone from destination",
    ):
        assert text in shown
    assert "docs/images/demo.svg" in (ROOT / "README.md").read_text()
