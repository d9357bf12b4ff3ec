"""`bellhop rotate`: whoever sends for a cluster gets a new token, and the old one ends."""

from __future__ import annotations

from pathlib import Path

import click

from bellhop.cli import session
from bellhop.cli.clusters import known, named_cluster
from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.output import say, stamp


@click.command(
    "rotate",
    cls=Command,
    usage=("NAMESPACE/NAME [OPTIONS]",),
    examples=("bellhop rotate prod/eu-1",),
)
@named_cluster
@click.option(
    "--audit",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Folder for the files of an API server that sends its audit log; it has to restart.",
)
@state_option
def command(key: str | None, audit: Path | None) -> None:
    """Give the sender of a cluster a new token, without interruption.

    The new token is valid before the sender has it, and the old one for five minutes after that;
    for a day if the API server sends its audit log, since it has to restart. If the cluster has a
    forwarder, the certificate and the path that the webhook calls are renewed, too. Neither token
    is shown. Regular rotation is not needed: rotate a token that may have leaked.
    """
    if key is None:
        raise click.UsageError("name one cluster, as NAMESPACE/NAME or with --namespace, --cluster")
    from bellhop.registration.renewal import rotate

    here = session.installation()
    cluster = rotate(here, known(here, key), audit)
    say(f"Cluster '{cluster.key}' has a new token.")
    say(f"  former       counts until {stamp(cluster.former_until)}")
