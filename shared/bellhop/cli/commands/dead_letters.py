"""`bellhop dead-letters`: list, replay or drop messages that failed permanently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from bellhop.cli import output
from bellhop.cli.command import Group
from bellhop.cli.output import Column, Row, say
from bellhop.cli.printer import Printer, printer_options
from bellhop.cli.session import open_installation
from bellhop.diagnosis.calls import list_dead_letters
from bellhop.errors import InvalidError, MissingError

if TYPE_CHECKING:
    from bellhop.installation import Installation
    from bellhop.ports.queue import DeadLetters

COLUMNS = (
    Column("ID", "id"),
    Column("DIED", "died", shown=output.format_time),
    Column("ATTEMPTS", "attempts"),
    Column("GROUP", "group"),
    Column("REASON", "reason"),
    Column("MESSAGE", "message", wide=True, shown=output.format_json_line),
)


@click.group(
    "dead-letters",
    cls=Group,
    examples=("bellhop dead-letters list", "bellhop dead-letters replay deploy/12"),
)
def command() -> None:
    """List, replay or drop messages that failed permanently.

    They are kept until they are replayed or dropped, and named INBOX/ID, as in deploy/12.
    """


@command.command("list", examples=("bellhop dead-letters list -o wide",))
@printer_options(headers=False)
def list_letters(*, printer: Printer) -> None:
    """List the dead-lettered messages, with the reason."""
    printer.present(COLUMNS, _rows(open_installation()), nothing="No dead letters found.")


@command.command(
    "replay",
    usage=(
        "INBOX/ID...",
        "--all",
    ),
    examples=("bellhop dead-letters replay deploy/12", "bellhop dead-letters replay --all"),
)
@click.argument("ids", nargs=-1, metavar="[INBOX/ID]...")
@click.option("--all", "everything", is_flag=True, help="Replay every message.")
def replay(ids: tuple[str, ...], *, everything: bool) -> None:
    """Put messages back into their queue, with a new count of attempts."""
    if bool(ids) == everything:
        raise click.UsageError("name what to replay: either INBOX/ID, or --all")
    here = open_installation()
    for each in [row["id"] for row in _rows(here)] if everything else ids:
        letters, number = _letters(here, each)
        letters.replay(number)
        say(f"dead-letter/{each} replayed")


@command.command("drop", examples=("bellhop dead-letters drop deploy/12",))
@click.argument("ids", nargs=-1, required=True, metavar="INBOX/ID...")
def drop(ids: tuple[str, ...]) -> None:
    """Delete messages permanently; the next resync corrects what it can."""
    here = open_installation()
    for each in ids:
        letters, number = _letters(here, each)
        letters.drop(number)
        say(f"dead-letter/{each} dropped")


def _rows(here: Installation) -> Iterator[Row]:
    for inbox, letters in list_dead_letters(here).items():
        for letter in letters:
            yield {
                "id": f"{inbox}/{letter.id}",
                "died": letter.died_at,
                "attempts": letter.attempts,
                "group": letter.message.group,
                "reason": letter.reason,
                "message": dict(letter.message.body),
            }


def _letters(here: Installation, text: str) -> tuple[DeadLetters, str]:
    inbox, slash, number = text.partition("/")
    if not slash or not number:
        raise InvalidError(f"cannot find dead letter '{text}': write INBOX/ID, as the list has it")
    if inbox not in here.dead:
        known = ", ".join(here.dead)
        raise MissingError(f"cannot find dead letter '{text}': the inboxes are {known}")
    return here.dead[inbox], number
