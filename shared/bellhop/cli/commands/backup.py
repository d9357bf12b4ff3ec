"""`bellhop backup` and `bellhop restore`: an installation as one sealed file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

import click

from bellhop.cli.command import Command
from bellhop.cli.contexts import AWS, EMBEDDED, GCP
from bellhop.cli.options import archive_options, read_passphrase, wrap_file_errors
from bellhop.cli.output import say
from bellhop.cli.session import choose_context, open_for_command, open_installation
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
@click.option(
    "--leave",
    is_flag=True,
    help="Make this installation inactive from now on, to move it; `bellhop serve` must be"
    " stopped.",
)
@archive_options
def command(file: Path, *, leave: bool, passphrase_file: Path | None) -> None:
    """Write an installation into a new file.

    It has the clusters with their credentials, the manifests and the deployed state. It is sealed
    with a passphrase of at least twelve characters, and only its user can read it. `bellhop
    restore` fills a new installation from it. An existing file is never overwritten, and a backup
    that fails leaves no file. `bellhop serve` may run meanwhile, except with --leave.
    """
    from bellhop.cli.printer import Progress
    from bellhop.operations.archive import check
    from bellhop.operations.backup import backup

    # On one machine nobody works after a move; a cloud's functions read the mark now and then.
    embedded = choose_context().kind == EMBEDDED
    with hold_installation("cannot leave") if leave else nullcontext(), _new_file(file) as opened:
        here = open_for_command()
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
                report_progress=lambda number: progress.count(number, "records are saved"),
            )
    if embedded:
        from bellhop.runtime.embedded.state import BACKUP

        with suppress(OSError):  # The backup is complete; only its age would not be seen.
            (choose_context().state / BACKUP).touch()
    for name in saved.lost:
        say(f"warning: left out the record '{name}': its payload is lost", err=True)
    say(
        f"saved {saved.clusters} clusters, {saved.records} records and {saved.secrets} secrets"
        f" to {file}"
    )


@contextmanager
def _new_file(path: Path) -> Iterator[IO[str]]:
    """Open a new file for its owner only, which gets its name once it is complete."""
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


@click.command(
    "restore",
    cls=Command,
    examples=(
        "bellhop restore bellhop.archive",
        "bellhop restore bellhop.archive --passphrase-file secret.txt",
    ),
)
@click.option(
    "--without-leave",
    is_flag=True,
    help="Accept a backup that was made without --leave, for an installation that is lost, or for a"
    " test of the backup without `bellhop serve`.",
)
@archive_options
def restore(file: Path, *, without_leave: bool, passphrase_file: Path | None) -> None:
    """Fill a new installation from a backup, or reactivate the one that was left with it.

    All work that may have been in progress is requested again. If the command is interrupted, run
    it again with the same file. A backup that was made without --leave is refused without
    --without-leave: two active installations would undo each other's work.
    """
    from bellhop.cli.printer import Progress
    from bellhop.operations.backup import restore

    with wrap_file_errors(f"'{file}'"):
        # What is no text is no archive, or one that is damaged.
        archive = file.open(encoding="ascii", errors="replace")
    with archive:
        passphrase = read_passphrase(passphrase_file)
        with hold_installation("cannot restore into", create=True):
            here = open_installation(create=True)
            with Progress() as progress:
                moved = restore(
                    here,
                    archive,
                    passphrase,
                    without_leave=without_leave,
                    report_progress=lambda number: progress.count(number, "records are restored"),
                )
    if moved.returned:
        say("this installation is active again, as it was when it was left")
        return
    for key, managed in moved.managed.items():
        of = _explain_eks if managed.startswith("arn:") else _explain_gke
        say(f"warning: {of(key, managed)}", err=True)
    for key, why in moved.refused.items():
        say(
            f"warning: nothing here reaches cluster '{key}': {why}, and register it again", err=True
        )
    say(f"restored {moved.clusters} clusters, {moved.records} records and {moved.secrets} secrets")


def _explain_gke(key: str, name: str) -> str:
    """Explain why the installation cannot reach a GKE cluster of the backup, and what to do."""
    if choose_context().kind != GCP:
        return (
            f"nothing here reaches cluster '{key}', which is of GKE: only an installation on Google"
            " Cloud has accounts that it lets in; register it again, by a kubeconfig with a token"
        )
    return (
        f"nothing here reaches cluster '{key}' yet, which is of GKE and lets in the accounts of the"
        " installation it comes from; let these in as"
        f" `bellhop register cluster-gke {key} --gke {name}` prints it"
    )


def _explain_eks(key: str, arn: str) -> str:
    """Explain why the installation cannot reach an EKS cluster of the backup, and what to do."""
    region, account, name = arn.replace("cluster/", "").split(":")[3:6]
    context = choose_context()
    if context.kind != AWS:
        return (
            f"nothing here reaches cluster '{key}', which is of EKS: only an installation on AWS"
            " has roles that it lets in; register it again, by a kubeconfig with a token"
        )
    roles = context.place.get("roles", {}).values()
    if roles and account not in {role.split(":")[4] for role in roles}:
        return (
            f"nothing here reaches cluster '{key}', which is of EKS in account {account}: roles"
            " reach the clusters of their own; register it again, with --assume-role, or by a"
            " kubeconfig with a token"
        )
    return (
        f"nothing here reaches cluster '{key}' yet, which is of EKS and lets in the roles of the"
        " installation it comes from; have it in the module's eks_clusters, and let these in as"
        f" `bellhop register cluster-eks {key} --eks {name} --region {region}` prints it"
    )


@contextmanager
def hold_installation(refusal: str, *, create: bool = False) -> Iterator[None]:
    """Hold the lock of an embedded installation, as `bellhop serve` does; a cloud has none.

    `refusal` begins the sentence of the error if another process has the lock.
    """
    context = choose_context()
    if context.kind != EMBEDDED:
        yield
        return
    from bellhop.runtime.embedded.state import make_folder, only_one, require_state

    if create:
        make_folder(context.state)
    else:
        require_state(context.state)
    with only_one(context.state, refusal):
        yield
