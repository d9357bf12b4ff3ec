"""`python -m infra.demo [--keep]`: the main job, between two real clusters, in a minute."""

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
from infra.demo.scenes import Scenes
from infra.demo.stand import Stand
from infra.lab.binaries import find
from infra.lab.control_plane import ControlPlane
from infra.lab.processes import Nursery


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m infra.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave it running until Ctrl-C")
    keep = parser.parse_args(arguments).keep
    signal.signal(signal.SIGTERM, _end)
    console = Console(highlight=False)
    try:
        _run(console, keep=keep)
    except KeyboardInterrupt:
        console.print("\nStopped; nothing is left behind.")
        return 130
    except (BellhopError, RuntimeError) as error:
        console.print(f"[red]The demo failed:[/red] {error}", markup=True)
        return 1
    return 0


def _run(console: Console, *, keep: bool) -> None:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bellhop-demo-")))
        nursery = stack.enter_context(Nursery())
        with console.status("Starting two Kubernetes API servers …"):
            lab = stack.enter_context(ControlPlane(find(), folder / "lab"))
            source, destination = lab.start_clusters("source", "destination")
        scenes = Scenes(console, Stand(folder, nursery), source, destination)
        scenes.play()
        if keep:
            scenes.invite()
            signal.pause()
        else:
            scenes.suggest()
        scenes.close()


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's own signature
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
