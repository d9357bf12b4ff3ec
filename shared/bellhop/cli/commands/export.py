"""`bellhop export`: an installation as one file, for another place."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click

from bellhop.cli.contexts import EMBEDDED
from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.cli.passphrases import passphrase_option, read_passphrase
from bellhop.cli.resting import at_rest
from bellhop.cli.session import chosen, installation
from bellhop.errors import InvalidError


@click.command(
    "export",
    cls=Command,
    examples=("bellhop export bellhop.archive", "bellhop export bellhop.archive --leave"),
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--leave", is_flag=True, help="Have this installation do nothing from now on, for a move."
)
@passphrase_option
@state_option
def command(file: Path, *, leave: bool, passphrase_file: Path | None) -> None:
    """Write clusters with their credentials, declarations and what is applied into one file.

    All of it is sealed with a passphrase. `bellhop restore` fills a new installation from it.
    """
    from bellhop.cli.progress import Progress
    from bellhop.fleet.archive import check
    from bellhop.fleet.moving import export

    # On one machine nobody works now; in a cloud functions look for the mark now and then.
    embedded = chosen().kind == EMBEDDED
    with at_rest("cannot export"), _whole(file) as opened:
        here = installation()
        passphrase = read_passphrase(passphrase_file, twice=True)
        check(passphrase)
        with Progress() as progress:

            def pause(seconds: float) -> None:
                if not embedded:
                    progress.wait(f"waiting {seconds:.0f} s until all functions have seen the mark")
                    time.sleep(seconds)

            moved = export(
                here,
                opened,
                passphrase,
                leave=leave,
                pause=pause,
                tell=lambda number: progress.count(number, "records are exported"),
            )
    for name in moved.lost:
        say(f"warning: left out the record '{name}': its payload is lost", err=True)
    say(
        f"exported {moved.clusters} clusters, {moved.records} records and {moved.secrets} secrets"
        f" to {file}"
    )


@contextmanager
def _whole(path: Path) -> Iterator[IO[str]]:
    """Open a new file for its user alone, which is there once it is whole.

    Raises:
        InvalidError: it is there already, or cannot be written.
    """
    begun = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists():
            raise InvalidError(f"cannot write '{path}': there is such a file; name another one")
        with os.fdopen(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        begun.replace(path)
    except OSError as error:
        raise InvalidError(f"cannot write '{path}': {error.strerror}") from error
    finally:
        begun.unlink(missing_ok=True)
