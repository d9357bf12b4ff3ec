"""`python -m infra.lab build`: have a control plane's binaries, whatever it takes."""

from __future__ import annotations

import argparse
import signal
import sys
from types import FrameType

from bellhop.errors import BellhopError
from infra.lab.build import build
from infra.lab.progress import Progress


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m infra.lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="find kube-apiserver and etcd, or make them once")
    building.add_argument(
        "--without-controllers", action="store_true", help="make no controller manager"
    )
    controllers = not parser.parse_args(arguments).without_controllers
    signal.signal(signal.SIGTERM, _end)
    try:
        binaries = build(Progress(sys.stderr), controllers=controllers)
    except BellhopError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped; nothing is left behind.\n")
        return 130
    for path in (
        binaries.apiserver,
        binaries.controller_manager,
        binaries.etcd,
        binaries.kubectl,
    ):
        if path:
            sys.stdout.write(f"{path}\n")
    return 0


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's own signature
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
