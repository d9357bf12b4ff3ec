"""`bellhop support-bundle`: what somebody else needs to find a fault, as one file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from bellhop.cli import session
from bellhop.cli.completion import complete_file
from bellhop.cli.duration import read_duration
from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.errors import ConflictError


@click.command(
    "support-bundle",
    cls=Command,
    usage=("[FILE] [OPTIONS]",),
    examples=("bellhop support-bundle", "bellhop support-bundle fault.tar.gz --since 2h"),
)
@click.argument(
    "file", required=False, type=click.Path(path_type=Path), shell_complete=complete_file
)
@click.option(
    "--since",
    metavar="DURATION",
    default="24h",
    show_default=True,
    help="How far back events go, as in 90m or 24h; 10,000 lines at most.",
)
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
@state_option
def command(file: Path | None, since: str, *, overwrite: bool) -> None:
    """Write a tar.gz with the state of an installation, for a bug report or a colleague.

    It has the versions, the settings, the output of `bellhop status` and `bellhop doctor`, the
    lists that `bellhop get` prints of every kind, and recent events. Only you can read the file. It
    has no manifests, no contents of ConfigMaps, Secrets and reports, no values of charts and no
    credentials. It has the names of clusters and objects, their labels, addresses and error
    messages, which may quote an object that a script or a template reads: read it before you pass
    it on. Clusters are called, as `bellhop doctor` does. Nothing else is written.
    """
    from bellhop.adapters.local.files import write_whole
    from bellhop.cli.support import bundle

    ago = read_duration(since)
    folder = f"bellhop-support-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    file = file or Path(f"{folder}.tar.gz")
    if file.exists() and not overwrite:
        raise ConflictError(f"cannot write '{file}': it exists; name another file, or --overwrite")
    here = session.looking()
    write_whole(file, bundle(here, folder, ago, answers=session.answers(here.inbound)))
    say(f"written to {file}")
