"""`bellhop restore`: a new installation, filled from a backup."""

from __future__ import annotations

from pathlib import Path

import click

from bellhop.cli.contexts import AWS, GCP
from bellhop.cli.examples import Command
from bellhop.cli.files import explained
from bellhop.cli.maintenance import at_rest
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.cli.passphrases import passphrase_option, read_passphrase
from bellhop.cli.session import chosen, installation


@click.command(
    "restore",
    cls=Command,
    examples=(
        "bellhop restore bellhop.archive",
        "bellhop restore bellhop.archive --passphrase-file secret.txt",
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--without-leave",
    is_flag=True,
    help="Accept a backup that was made without --leave, for an installation that is lost, or for a"
    " test of the backup without `bellhop serve`.",
)
@passphrase_option
@state_option
def command(file: Path, *, without_leave: bool, passphrase_file: Path | None) -> None:
    """Fill a new installation from a backup, or reactivate the one that was left with it.

    All work that may have been in progress is requested again. If the command is interrupted, run
    it again with the same file. A backup that was made without --leave is refused without
    --without-leave: two active installations would undo each other's work.
    """
    from bellhop.cli.progress import Progress
    from bellhop.operations.backup import restore

    with explained(f"'{file}'"):
        # What is no text is no archive, or one that is damaged.
        archive = file.open(encoding="ascii", errors="replace")
    with archive:
        passphrase = read_passphrase(passphrase_file)
        with at_rest("cannot restore into", create=True):
            here = installation(create=True)
            with Progress() as progress:
                moved = restore(
                    here,
                    archive,
                    passphrase,
                    without_leave=without_leave,
                    tell=lambda number: progress.count(number, "records are restored"),
                )
    if moved.returned:
        say("this installation is active again, as it was when it was left")
        return
    for key, managed in moved.managed.items():
        of = _of_eks if managed.startswith("arn:") else _of_gke
        say(f"warning: {of(key, managed)}", err=True)
    for key, why in moved.refused.items():
        say(
            f"warning: nothing here reaches cluster '{key}': {why}, and register it again", err=True
        )
    say(f"restored {moved.clusters} clusters, {moved.records} records and {moved.secrets} secrets")


def _of_gke(key: str, name: str) -> str:
    """Say why nobody here reaches a GKE cluster as it came, and what to do."""
    if chosen().kind != GCP:
        return (
            f"nothing here reaches cluster '{key}', which is of GKE: only an installation on Google"
            " Cloud has accounts that it lets in; register it again, by a kubeconfig with a token"
        )
    return (
        f"nothing here reaches cluster '{key}' yet, which is of GKE and lets in the accounts of the"
        " installation it comes from; let these in as"
        f" `bellhop register cluster-gke {key} --gke {name}` prints it"
    )


def _of_eks(key: str, arn: str) -> str:
    """Say why nobody here reaches an EKS cluster as it came, and what to do."""
    region, account, name = arn.replace("cluster/", "").split(":")[3:6]
    context = chosen()
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
