"""`python -m infra.demo [--keep | --record FILE]`: the main job, between two real clusters."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from rich.console import Console

from bellhop.errors import BellhopError
from infra.demo.recording import picture, terminal
from infra.demo.scenes import Scenes
from infra.demo.stand import Stand
from infra.lab.binaries import find
from infra.lab.control_plane import ControlPlane
from infra.lab.processes import Nursery


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m infra.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave it running until Ctrl-C")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="play the first scene, and save it as an SVG"
    )
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    console = terminal() if asked.record else Console(highlight=False)
    try:
        _run(console, keep=asked.keep, first=bool(asked.record))
        if asked.record:
            asked.record.write_text(picture(console))
    except KeyboardInterrupt:
        console.print("\nStopped; nothing is left behind.")
        return 130
    except (BellhopError, RuntimeError) as error:
        console.print(f"[red]The demo failed:[/red] {error}", markup=True)
        return 1
    return 0


def _run(console: Console, *, keep: bool, first: bool) -> None:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bellhop-demo-")))
        nursery = stack.enter_context(Nursery())
        with console.status("Starting two Kubernetes API servers …"):
            lab = stack.enter_context(ControlPlane(find(), folder / "lab"))
            source, destination = lab.start_clusters("source", "destination")
        scenes = Scenes(console, Stand(folder, nursery), source, destination)
        if first:
            scenes.play_first()
        else:
            scenes.play()
        if keep:
            scenes.invite()
            signal.pause()
        elif not first:
            scenes.suggest()
        scenes.close()


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's own signature
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
