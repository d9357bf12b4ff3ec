"""`bellhop version`: the versions of this program, the server and the forwarders."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from bellhop import __version__
from bellhop.cli.command import Command
from bellhop.cli.options import JSON, TABLE, YAML
from bellhop.cli.output import format_count, print_objects, say
from bellhop.cli.session import choose_context, open_read_only
from bellhop.errors import BellhopError

if TYPE_CHECKING:
    from bellhop.installation import Installation


@click.command(
    "version",
    cls=Command,
    examples=("bellhop version", "bellhop version -o json", "bellhop version --client"),
)
@click.option("--client", is_flag=True, help="Ask no installation.")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice([TABLE, JSON, YAML]),
    default=TABLE,
    help="Form of the output.",
)
def command(form: str, *, client: bool) -> None:
    """Print the versions of this program, of the server, and of the forwarders.

    The server is `bellhop serve` or the functions. Both versions are those of the last heartbeat.
    An installation that cannot be read is reported, and does not change the exit code.
    """
    read = {} if client else _read_installation()
    if form != TABLE:
        print_objects([{**read_own_versions(), **read}], form, one=True)
        return
    say(f"bellhop {__version__}")
    if read:
        say(f"server {read['server'] or 'unknown: it has not run yet'}")
    for version, clusters in read.get("forwarders", {}).items():
        say(f"forwarder {version} in {format_count(clusters, 'cluster')}")


def _read_installation() -> Mapping[str, Any]:
    """Return the versions in the records of the chosen installation; none if there is none."""
    from bellhop.cli.providers.provider import load_provider

    try:
        context = choose_context()
        if not load_provider(context).exists(context):
            return {}
        return read_stored_versions(open_read_only())
    except BellhopError as error:
        say(f"warning: cannot read the installation's versions: {error}", err=True)
        return {}


def read_own_versions() -> dict[str, str]:
    return {"bellhop": __version__, "python": platform.python_version()}


def read_stored_versions(here: Installation) -> dict[str, Any]:
    heartbeat = here.records.pulses.get()
    heartbeats = map(here.records.hearings.get, here.catalogs.known().clusters)
    versions = Counter(each.version for each in heartbeats if each and each.version)
    return {
        "server": heartbeat.version if heartbeat else "",
        "forwarders": dict(sorted(versions.items())),
    }
