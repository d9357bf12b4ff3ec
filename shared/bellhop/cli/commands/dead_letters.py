"""`bellhop dead-letters`: messages that were given up, kept until somebody decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from bellhop.cli import output
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import output_option, state_option
from bellhop.cli.output import Column, Row, say
from bellhop.cli.session import installation
from bellhop.diagnosis.queues import dead_letters
from bellhop.errors import InvalidError, MissingError

if TYPE_CHECKING:
    from bellhop.installation.installation import Installation
    from bellhop.ports.queue import DeadLetters

COLUMNS = (
    Column("ID", "id"),
    Column("DIED", "died", shown=output.stamp),
    Column("ATTEMPTS", "attempts"),
    Column("GROUP", "group"),
    Column("REASON", "reason"),
    Column("MESSAGE", "message", wide=True, shown=output.line),
)


@click.group(
    "dead-letters",
    cls=Group,
    examples=("bellhop dead-letters list", "bellhop dead-letters replay deploy/12"),
)
@state_option
def command() -> None:
    """List, replay or drop messages that failed permanently.

    They are kept until they are replayed or dropped, and named INBOX/ID, as in deploy/12.
    """


@command.command("list", cls=Command, examples=("bellhop dead-letters list -o wide",))
@output_option
@state_option
def list_letters(form: str) -> None:
    """List the dead-lettered messages, with the reason."""
    output.present(COLUMNS, _rows(installation()), form, nothing="No dead letters found.")


@command.command(
    "replay",
    cls=Command,
    usage=(
        "INBOX/ID...",
        "--all",
    ),
    examples=("bellhop dead-letters replay deploy/12", "bellhop dead-letters replay --all"),
)
@click.argument("ids", nargs=-1, metavar="[INBOX/ID]...")
@click.option("--all", "everything", is_flag=True, help="Replay every message.")
@state_option
def replay(ids: tuple[str, ...], *, everything: bool) -> None:
    """Put messages back into their queue, with a new count of attempts."""
    if bool(ids) == everything:
        raise click.UsageError("name what to replay: either INBOX/ID, or --all")
    here = installation()
    for each in [row["id"] for row in _rows(here)] if everything else ids:
        letters, number = _letters(here, each)
        letters.replay(number)
        say(f"dead-letter/{each} replayed")


@command.command("drop", cls=Command, examples=("bellhop dead-letters drop deploy/12",))
@click.argument("ids", nargs=-1, required=True, metavar="INBOX/ID...")
@state_option
def drop(ids: tuple[str, ...]) -> None:
    """Delete messages permanently; the next resync corrects what it can."""
    here = installation()
    for each in ids:
        letters, number = _letters(here, each)
        letters.drop(number)
        say(f"dead-letter/{each} dropped")


def _rows(here: Installation) -> Iterator[Row]:
    for inbox, letters in dead_letters(here).items():
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
