"""`bellhop backup`: an installation as one sealed file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

import click

from bellhop.cli.contexts import EMBEDDED
from bellhop.cli.examples import Command
from bellhop.cli.maintenance import at_rest
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.cli.passphrases import passphrase_option, read_passphrase
from bellhop.cli.session import chosen, keep_open
from bellhop.errors import InvalidError


@click.command(
    "backup",
    cls=Command,
    examples=(
        "bellhop backup bellhop.archive",
        "bellhop backup bellhop.archive --passphrase-file secret.txt",
        "bellhop backup bellhop.archive --leave",
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--leave",
    is_flag=True,
    help="Make this installation inactive from now on, to move it; `bellhop serve` must be"
    " stopped.",
)
@passphrase_option
@state_option
def command(file: Path, *, leave: bool, passphrase_file: Path | None) -> None:
    """Write an installation into a new file.

    It has the clusters with their credentials, the manifests and the deployed state. It is sealed
    with a passphrase of at least twelve characters, and only its user can read it. `bellhop
    restore` fills a new installation from it. An existing file is never overwritten, and a backup
    that fails leaves no file. `bellhop serve` may run meanwhile, except with --leave.
    """
    from bellhop.cli.progress import Progress
    from bellhop.operations.archive import check
    from bellhop.operations.backup import backup

    # On one machine nobody works after a move; a cloud's functions read the mark now and then.
    embedded = chosen().kind == EMBEDDED
    with at_rest("cannot leave") if leave else nullcontext(), _new_file(file) as opened:
        here = keep_open()
        passphrase = read_passphrase(passphrase_file, twice=True)
        check(passphrase)
        with Progress() as progress:

            def pause(seconds: float) -> None:
                if not embedded:
                    progress.wait(f"waiting {seconds:.0f} s until all functions have seen the mark")
                    time.sleep(seconds)

            saved = backup(
                here.installation,
                opened,
                passphrase,
                leave=leave,
                pause=pause,
                snapshot=here.snapshot,
                tell=lambda number: progress.count(number, "records are saved"),
            )
    if embedded:
        from bellhop.runtime.embedded.state import BACKUP

        with suppress(OSError):  # The backup is complete; only its age would not be seen.
            (chosen().state / BACKUP).touch()
    for name in saved.lost:
        say(f"warning: left out the record '{name}': its payload is lost", err=True)
    say(
        f"saved {saved.clusters} clusters, {saved.records} records and {saved.secrets} secrets"
        f" to {file}"
    )


@contextmanager
def _new_file(path: Path) -> Iterator[IO[str]]:
    """Open a new file for its user only, which has its name once it is complete.

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
