"""`bellhop history`: the revisions of a profile that `bellhop rollback` can bring back."""

from __future__ import annotations

from collections.abc import Iterator

import click

from bellhop.cli.asking import profile_named
from bellhop.cli.completing import complete_profile
from bellhop.cli.examples import Command
from bellhop.cli.options import output_option, state_option
from bellhop.cli.output import Column, Row, present, stamp
from bellhop.cli.session import installation

COLUMNS = (
    Column("REVISION", "revision"),
    Column("RENDERED", "rendered", shown=lambda value: stamp(value) or "-"),
    Column("REPLACED", "replaced", shown=lambda value: stamp(value) or "-"),
    Column("STATE", "state", shown=lambda value: value or "-"),
    Column("CHANGED", "changed", shown=lambda value: value or "-"),
)


@click.command(
    "history", cls=Command, examples=("bellhop history kyverno", "bellhop history kyverno -o json")
)
@click.argument("profile", shell_complete=complete_profile)
@output_option
@state_option
def command(profile: str, form: str) -> None:
    """List what a profile held before, and holds: since when, until when, and what was changed.

    A revision is what was rendered under one state of what is declared; what events change of it
    makes no other one. The last few are kept, as many as the setting `revisions` says.
    """
    from bellhop.fleet.rollback import history
    from bellhop.fleet.titled import meant

    here = installation()

    def rows() -> Iterator[Row]:
        for each in history(here, meant(here, profile_named(profile))):
            in_force = "rolled back" if each.pinned else "in force"
            yield {
                "revision": each.number,
                "rendered": each.made_at,
                "replaced": each.until,
                "state": "" if each.until else in_force,
                "changed": each.why,
            }

    present(COLUMNS, rows(), form, nothing="No revisions found.")
