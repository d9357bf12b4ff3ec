"""`bellhop version`: the releases of this program, of what serves, and of the forwarders."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from bellhop import __version__
from bellhop.cli.examples import Command
from bellhop.cli.options import JSON, TABLE, YAML, state_option
from bellhop.cli.output import count, objects, say
from bellhop.cli.session import chosen, looking
from bellhop.errors import BellhopError

if TYPE_CHECKING:
    from bellhop.installation.installation import Installation


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
@state_option
def command(form: str, *, client: bool) -> None:
    """Print the versions of this program, of the server, and of the forwarders.

    The server is `bellhop serve` or the functions. Both versions are those of the last heartbeat.
    An installation that cannot be read is reported, and does not change the exit code.
    """
    read = {} if client else _installation()
    if form != TABLE:
        objects([{**own(), **read}], form, one=True)
        return
    say(f"bellhop {__version__}")
    if read:
        say(f"server {read['server'] or 'unknown: it has not run yet'}")
    for version, clusters in read.get("forwarders", {}).items():
        say(f"forwarder {version} in {count(clusters, 'cluster')}")


def _installation() -> Mapping[str, Any]:
    """Return the versions that the records of the chosen installation have; none without one."""
    from bellhop.cli.providers import place_of

    try:
        context = chosen()
        if not place_of(context).there(context):
            return {}
        return stored(looking())
    except BellhopError as error:
        say(f"warning: cannot read the installation's versions: {error}", err=True)
        return {}


def own() -> dict[str, str]:
    """Return the versions of this program and of its Python."""
    return {"bellhop": __version__, "python": platform.python_version()}


def stored(here: Installation) -> dict[str, Any]:
    """Return the versions that the records of an installation have."""
    pulse = here.records.pulses.get()
    heartbeats = map(here.records.hearings.get, here.catalogs.known().clusters)
    versions = Counter(each.version for each in heartbeats if each and each.version)
    return {"server": pulse.version if pulse else "", "forwarders": dict(sorted(versions.items()))}
