"""`bellhop history`: the revisions of a profile that `bellhop rollback` can bring back."""

from __future__ import annotations

from collections.abc import Iterator

import click

from bellhop.cli.examples import Command
from bellhop.cli.options import output_option, state_option
from bellhop.cli.output import Column, Row, present, stamp
from bellhop.cli.queries import profile_argument, profile_or_trigger
from bellhop.cli.session import installation

COLUMNS = (
    Column("REVISION", "revision"),
    Column("RENDERED", "rendered", shown=lambda value: stamp(value) or "-"),
    Column("REPLACED", "replaced", shown=lambda value: stamp(value) or "-"),
    Column("STATE", "state", shown=lambda value: value or "-"),
    Column("CHANGED", "changed", shown=lambda value: value or "-"),
)


@click.command(
    "history",
    cls=Command,
    examples=("bellhop history kyverno", "bellhop history kyverno -o json"),
)
@profile_argument
@output_option
@state_option
def command(profile: str, form: str) -> None:
    """List the stored revisions of a profile in the order of time; the current one is the last.

    Each has its number, when it was rendered and replaced, and which manifests differ from those of
    the one before. A revision is the result of one state of the manifests: the profile or trigger,
    its source, and the ConfigMaps and Secrets that it names. Changes by events create no new
    revision. The setting BELLHOP_REVISIONS is the number of former revisions that are kept. PROFILE
    is the NAME of a ClusterProfile, the NAMESPACE/NAME of a Profile, or KIND NAME, as in
    `rolerequest NAME`. The name of a trigger means all profiles that it generated.
    """
    from bellhop.diagnosis.names import Titled, made_by, meant
    from bellhop.operations.rollback import history

    here = installation()
    name, trigger = profile_or_trigger(here, profile)
    titled = Titled(here)

    def rows() -> Iterator[Row]:
        for ours in made_by(here, trigger) if trigger else [meant(here, name)]:
            named = {"profile": titled.shown(ours)} if trigger else {}
            yield from ({**named, **row} for row in rows_of(ours))

    def rows_of(ours: str) -> Iterator[Row]:
        for each in history(here, ours):
            in_force = "rolled back" if each.pinned else "in force"
            yield {
                "revision": each.number,
                "rendered": each.made_at,
                "replaced": each.until,
                "state": "" if each.until else in_force,
                "changed": each.why,
            }

    columns = (Column("PROFILE", "profile"), *COLUMNS) if trigger else COLUMNS
    present(columns, rows(), form, nothing="No revisions found.")
