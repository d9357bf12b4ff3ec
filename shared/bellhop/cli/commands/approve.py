"""`bellhop approve`, `reject` and `promote`: decisions about releases of promotions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bellhop.cli import session
from bellhop.cli.command import Command
from bellhop.cli.completion import complete_promotion, complete_stage
from bellhop.cli.output import say
from bellhop.cli.queries import PROMOTION, join_kind
from bellhop.cli.session import find_caller

if TYPE_CHECKING:
    from bellhop.operations.promotions import Decision

F = TypeVar("F", bound=Callable[..., Any])

_USAGE = "promotion NAME"


def _read_name(
    ctx: click.Context, _parameter: click.Parameter, words: Sequence[str]
) -> str | Sequence[str]:
    if ctx.resilient_parsing:
        # A shell completes them.
        return words
    found = join_kind(words, (PROMOTION,))
    if len(found) != 1 or not found[0].startswith(f"{PROMOTION}/"):
        raise click.UsageError("name one promotion, as `promotion NAME`")
    return found[0].partition("/")[2]


def promotion_options(*, stage: str) -> Callable[[F], F]:
    """Add the argument `promotion NAME` and the options of a decision; `stage` is a help text."""

    def decorate(command: F) -> F:
        for option in (
            click.option("--reason", metavar="TEXT", default="", help="Noted in the history."),
            click.option(
                "--release",
                metavar="NUMBER",
                type=click.IntRange(min=1),
                help="Number of the release, as `bellhop history` lists it.",
            ),
            click.option(
                "--stage", metavar="STAGE", default="", help=stage, shell_complete=complete_stage
            ),
            click.argument(
                "name",
                nargs=-1,
                required=True,
                metavar=_USAGE,
                callback=_read_name,
                shell_complete=complete_promotion,
            ),
        ):
            command = option(command)
        return command

    return decorate


def _decide(
    decide: Callable[..., Decision],
    sentences: tuple[str, str],
    name: str,
    **options: Any,
) -> None:
    """Take a decision as the caller, and print the sentence of a new one, or of one that was."""
    here = session.open_installation()
    found = decide(here, name, by=find_caller(here), **options)
    sentence = sentences[0] if found.is_new else sentences[1]
    say(sentence.format(release=found.release, name=name, stage=found.stage))
    session.warn_if_paused(here, name)
    session.warn_unless_served(here)


_WAITING = "Stage of the promotion; by default the one that waits for an approval."


@click.command(
    "approve",
    cls=Command,
    usage=(f"{_USAGE} [--stage STAGE] [--release NUMBER] [--reason TEXT]",),
    examples=("bellhop approve promotion agent --stage staging --reason CHG-4711",),
)
@promotion_options(stage=_WAITING)
def command(name: str, stage: str, release: int | None, reason: str) -> None:
    """Approve the release at a stage of a promotion.

    The next stage gets it once the delay is over and the checks pass: an approval may come before
    that, and skips neither. It counts for this release only; the history names who gave it.
    """
    from bellhop.operations.promotions import approve

    sentences = (
        "Approved release {release} of promotion '{name}' at stage '{stage}'.",
        "Release {release} of promotion '{name}' is approved already at stage '{stage}'.",
    )
    _decide(approve, sentences, name, stage=stage, release=release or 0, reason=reason)


@click.command(
    "reject",
    cls=Command,
    usage=(f"{_USAGE} [--stage STAGE] [--release NUMBER] [--reason TEXT]",),
    examples=("bellhop reject promotion agent --stage staging",),
)
@promotion_options(stage=_WAITING)
def reject(name: str, stage: str, release: int | None, reason: str) -> None:
    """Have the release at a stage of a promotion go no further; the next release may.

    It stays in the clusters of that stage. `bellhop approve` takes the decision back.
    """
    from bellhop.operations import promotions

    sentences = (
        "Rejected release {release} of promotion '{name}' at stage '{stage}'.",
        "Release {release} of promotion '{name}' is rejected already at stage '{stage}'.",
    )
    _decide(promotions.reject, sentences, name, stage=stage, release=release or 0, reason=reason)


@click.command(
    "promote",
    cls=Command,
    usage=(f"{_USAGE} --stage STAGE [--release NUMBER] --force",),
    examples=("bellhop promote promotion agent --stage production --release 7 --force",),
)
@promotion_options(stage="Stage that gets the release.")
@click.option("--force", is_flag=True, help="Skip the stages before it, and their conditions.")
def promote(name: str, stage: str, release: int | None, reason: str, *, force: bool) -> None:
    """Give a stage of a promotion a release at once, by default the newest one.

    No stage before it is waited for, and none of their delays, checks, approvals and windows. The
    release leaves the stage on the usual conditions. The history says that it was forced, and names
    the user.
    """
    from bellhop.operations import promotions

    if not stage:
        raise click.UsageError("name the stage that gets the release, by --stage")
    if not force:
        raise click.UsageError(
            "releases are promoted by themselves, or after `bellhop approve`; --force skips the"
            " conditions"
        )
    sentences = (
        "Stage '{stage}' of promotion '{name}' gets release {release}.",
        "Stage '{stage}' of promotion '{name}' has release {release} already.",
    )
    _decide(promotions.force, sentences, name, stage=stage, release=release or 0, reason=reason)
