"""`bellhop import`: a new installation, filled from what another one exported."""

from __future__ import annotations

from pathlib import Path

import click

from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.cli.passphrases import passphrase_option, read_passphrase
from bellhop.cli.resting import at_rest
from bellhop.cli.session import installation
from bellhop.errors import InvalidError


@click.command(
    "import",
    cls=Command,
    examples=(
        "bellhop import bellhop.archive",
        "bellhop import bellhop.archive --passphrase-file secret.txt",
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--copy", is_flag=True, help="Take an archive made without --leave: the other one is gone."
)
@passphrase_option
@state_option
def command(file: Path, *, copy: bool, passphrase_file: Path | None) -> None:
    """Fill a new installation from an archive, or have the one that was left go on.

    Interrupted, it is begun again from the same archive.
    """
    from bellhop.fleet.moving import fill

    passphrase = read_passphrase(passphrase_file)
    try:
        opened = file.open()
    except OSError as error:
        raise InvalidError(f"cannot read '{file}': {error.strerror}") from error
    with opened, at_rest(create=True):
        moved = fill(installation(create=True), opened, passphrase, copy=copy)
    if moved.returned:
        say("this installation goes on as it was when it was left")
        return
    say(f"imported {moved.clusters} clusters, {moved.records} records and {moved.secrets} secrets")
