"""`python -m infra.lab build | management`: have a control plane's binaries, or run two servers."""

from __future__ import annotations

import argparse
import signal
import sys
from types import FrameType

from bellhop.errors import BellhopError
from infra.lab.build import build
from infra.lab.management import run_management
from infra.lab.progress import Progress


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m infra.lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="find kube-apiserver and etcd, or make them once")
    building.add_argument(
        "--without-controllers", action="store_true", help="make no controller manager"
    )
    commands.add_parser(
        "management", help="run Bellhop between two servers, as suites of Sveltos expect them"
    )
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    try:
        if asked.command == "management":
            _run_management()
        else:
            _build(controllers=not asked.without_controllers)
    except (BellhopError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped; nothing is left behind.\n")
        return 130
    return 0


def _build(*, controllers: bool) -> None:
    binaries = build(Progress(sys.stderr), controllers=controllers)
    for path in (
        binaries.apiserver,
        binaries.controller_manager,
        binaries.etcd,
        binaries.kubectl,
    ):
        if path:
            sys.stdout.write(f"{path}\n")


def _run_management() -> None:
    progress = Progress(sys.stderr, subject="management")
    progress.stage("starting two API servers and Bellhop")
    with run_management() as pair:
        progress.say("ready; Ctrl-C ends it")
        for path in (pair.hub, pair.workload):
            sys.stdout.write(f"{path}\n")
        sys.stdout.flush()
        signal.pause()


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's own signature
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
