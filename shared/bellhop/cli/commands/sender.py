"""`bellhop sender`: the external senders of CloudEvents for a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellhop.cli import output, session
from bellhop.cli.command import Group
from bellhop.cli.completion import complete_file, complete_sender
from bellhop.cli.options import JSON, YAML, output_option
from bellhop.cli.output import format_time, say
from bellhop.cli.printer import Printer, printer_options
from bellhop.cli.selection import cluster_argument, find_cluster
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.installation import Installation
    from bellhop.registration.senders import Deliver, SenderStatus

COLUMNS = (
    output.Column("CLUSTER", "cluster"),
    output.Column("NAME", "name"),
    output.Column("PROOF", "proof"),
    output.Column("SINCE", "since", shown=format_time),
    output.Column("FORMER UNTIL", "formerUntil", wide=True, shown=format_time),
    output.Column("REFUSED", "refused"),
    output.Column("ADDRESS", "address", wide=True),
)

_file_option = click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the secret into a new file that only its owner may read, and do not print it.",
    shell_complete=complete_file,
)


@click.group(
    "sender",
    cls=Group,
    examples=("bellhop sender add prod/eu-1 ci", "bellhop sender list"),
)
def command() -> None:
    """Manage the external senders of a cluster: a CI system, an object store or a registry.

    Each sender has a name, an address and a secret, with which it sends CloudEvents for one cluster
    and does nothing else.
    """


@command.command(
    "add",
    examples=("bellhop sender add prod/eu-1 ci", "bellhop sender add prod/eu-1 store --hmac"),
)
@cluster_argument(required=True)
@click.argument("name")
@click.option(
    "--hmac",
    "signs",
    is_flag=True,
    help="The sender signs its requests by Standard Webhooks, with a key; otherwise it"
    " sends a token.",
)
@_file_option
@output_option
def add(key: str, name: str, path: Path | None, form: str, *, signs: bool) -> None:
    """Add a sender to a cluster, and print its address and its secret.

    The secret is shown only once.
    """
    from bellhop.registration import senders

    here = session.open_installation()
    with _receive_secret(path) as (hand, shown):
        seen = senders.add(here, find_cluster(here, key), name, signs=signs, hand=hand)
        if form in {JSON, YAML}:
            output.print_objects([_make_details(here, seen, shown, path)], form, one=True)
            return
        say(f"Sender '{name}' may send CloudEvents for cluster '{seen.sender.cluster}'.")
        _report(seen, shown, path)


@command.command(
    "rotate",
    examples=(
        "bellhop sender rotate prod/eu-1 ci",
        "bellhop sender rotate prod/eu-1 ci --at-once",
    ),
)
@cluster_argument(required=True)
@click.argument("name", shell_complete=complete_sender)
@click.option(
    "--at-once",
    is_flag=True,
    help="End the former secret now, for example because it leaked.",
)
@_file_option
@output_option
def rotate(key: str, name: str, path: Path | None, form: str, *, at_once: bool) -> None:
    """Give a sender a new secret; the former one is valid for another day."""
    from bellhop.registration import senders

    here = session.open_installation()
    overlap = timedelta(0) if at_once else senders.OVERLAP
    with _receive_secret(path) as (hand, shown):
        seen = senders.rotate(here, find_cluster(here, key), name, overlap=overlap, hand=hand)
        if form in {JSON, YAML}:
            output.print_objects([_make_details(here, seen, shown, path)], form, one=True)
            return
        say(f"Sender '{name}' of cluster '{seen.sender.cluster}' has a new secret.")
        _report(seen, shown, path)
        until = seen.sender.former_until
        say(f"  former       {f'counts until {format_time(until)}' if until else 'counts no more'}")


@command.command("remove", examples=("bellhop sender remove prod/eu-1 ci",))
@cluster_argument(required=True)
@click.argument("name", shell_complete=complete_sender)
def remove(key: str, name: str) -> None:
    """Remove a sender: its next request is refused."""
    from bellhop.registration import senders

    here = session.open_installation()
    key = find_cluster(here, key)
    senders.remove(here, key, name)
    say(f"Sender '{name}' of cluster '{key}' removed.")


@command.command("list", examples=("bellhop sender list", "bellhop sender list prod/eu-1 -o json"))
@cluster_argument(required=False)
@printer_options()
def list_senders(*, key: str | None, printer: Printer) -> None:
    """List the senders of a cluster, or of all, without their secrets."""
    from bellhop.registration import senders

    here = session.open_installation()
    rows = (
        {**_make_row(here, each), "refused": each.refused.count if each.refused else 0}
        for each in senders.list_senders(here, find_cluster(here, key))
    )
    printer.present(COLUMNS, rows, nothing="No senders found.")


@contextmanager
def _receive_secret(path: Path | None) -> Iterator[tuple[Deliver, list[str]]]:
    """Receive a secret: write it into a new file, or keep it for printing after it is valid.

    Ctrl-C waits until then, and a failure removes the file.
    """
    from bellhop.registration.record_update import undisturbed

    shown: list[str] = []
    made: list[Path] = []

    def hand(secret: str) -> None:
        shown.append(secret)
        if path is not None:
            _write_secret(path, secret, made)

    with undisturbed():
        try:
            yield hand, shown
        except BaseException:
            for each in made:
                each.unlink(missing_ok=True)
            raise


def _write_secret(path: Path, secret: str, made: list[Path]) -> None:
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        made.append(path)
        with os.fdopen(file, "w") as opened:
            opened.write(f"{secret}\n")
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        raise InvalidError(
            f"cannot write the secret into '{path}': {error.strerror}; name a file that is not"
            " there yet, in a folder that is"
        ) from error


def _report(seen: SenderStatus, shown: list[str], path: Path | None) -> None:
    say(f"  address      {seen.address}")
    label = "key" if seen.sender.signs else "token"
    say(f"  {label:<12} {shown[0] if path is None else f'in {path}'}")


def _make_row(here: Installation, seen: SenderStatus) -> dict[str, Any]:
    sender = seen.sender
    return {
        "cluster": sender.cluster,
        "name": sender.name,
        "proof": _name_proof(seen),
        "since": sender.changed_at or sender.made_at,
        "formerUntil": sender.former_until,
        "address": seen.address,
        "authority": here.inbound.ca,
    }


def _make_details(
    here: Installation, seen: SenderStatus, shown: list[str], path: Path | None
) -> dict[str, Any]:
    """Return a sender with its secret, or with the file that has it."""
    where = {"secret": shown[0]} if path is None else {"file": str(path)}
    return {**_make_row(here, seen), **where}


def _name_proof(seen: SenderStatus) -> str:
    return "hmac" if seen.sender.signs else "token"
