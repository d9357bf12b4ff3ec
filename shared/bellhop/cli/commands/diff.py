"""`bellhop diff`: what applying profiles would change right now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from bellhop.cli import output
from bellhop.cli.asking import profile_named
from bellhop.cli.clusters import cluster_option, known
from bellhop.cli.completing import complete_profile
from bellhop.cli.examples import Command
from bellhop.cli.options import TABLE, output_option, state_option
from bellhop.cli.output import say
from bellhop.cli.session import installation

if TYPE_CHECKING:
    from bellhop.fleet.previewing import Previewed, Unknown


@click.command(
    "diff",
    cls=Command,
    examples=("bellhop diff web", "bellhop diff web --cluster prod/eu-1 -o json"),
)
@click.argument(
    "profiles", nargs=-1, required=True, metavar="PROFILE…", shell_complete=complete_profile
)
@cluster_option
@output_option
@state_option
def command(profiles: tuple[str, ...], namespace: str, cluster: str, form: str) -> None:
    """Show what applying profiles would change now, object by object.

    Each cluster is asked by its own dry run, and nothing is written. What a Secret holds is hidden.
    Objects that are held as they are wanted are not asked about. A profile is a name, or
    ClusterProfile/NAME; a Profile is NAMESPACE/NAME, or Profile/NAMESPACE/NAME.
    """
    from bellhop.cli import previews
    from bellhop.cli.progress import Progress
    from bellhop.fleet.previewing import now
    from bellhop.fleet.titled import Titled, meant

    here = installation()
    key, titled = known(here, cluster, namespace), Titled(here)
    unknown: list[Unknown] = []

    def asked() -> Iterator[Previewed | Unknown]:
        with Progress() as progress:
            for name in dict.fromkeys(map(profile_named, profiles)):
                for each in now(here, meant(here, name), key, progress.ask):
                    progress.clear()
                    yield each

    found = _changes(asked(), unknown)
    if form == TABLE:
        told = False
        for line in previews.texts(found, titled):
            told = True
            say(line)
        if not told and not unknown:
            say("Nothing would change.", err=True)
    else:
        output.present(
            previews.COLUMNS, previews.rows(found, titled), form, nothing="Nothing would change."
        )
    for each in unknown:
        say(f"warning: '{titled.shown(each.profile)}' in '{each.cluster}': {each.error}", err=True)
    if unknown:
        raise unknown[0].error


def _changes(asked: Iterable[Previewed | Unknown], unknown: list[Unknown]) -> Iterator[Previewed]:
    """Yield what would change, and put aside the clusters of which nobody can say it."""
    from bellhop.fleet import previewing

    for each in asked:
        if isinstance(each, previewing.Unknown):
            unknown.append(each)
        else:
            yield each
