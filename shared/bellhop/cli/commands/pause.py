"""`bellhop pause`: leave a profile, what a trigger brought, or a cluster as it is for a while."""

from __future__ import annotations

import click

from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.pause import mark, what_argument
from bellhop.cli.selection import Selection, selection_options


@click.command(
    "pause",
    cls=Command,
    usage=(
        "PROFILE",
        "trigger NAME",
        "cluster NAMESPACE/NAME",
        "KIND -l SELECTOR | --all",
    ),
    examples=(
        "bellhop pause kyverno",
        "bellhop pause team/web",
        "bellhop pause trigger welcome",
        "bellhop pause cluster prod/eu-1",
        "bellhop pause clusters -l env=production",
    ),
)
@what_argument
@selection_options
@state_option
def command(words: tuple[str, ...], selection: Selection) -> None:
    """Leave a profile, the add-ons of a trigger, or a cluster unchanged, until `bellhop resume`.

    With -l or --all these are all such objects of a KIND: clusters, clusterprofiles, profiles,
    rolerequests or triggers; profiles that a trigger generated are left out.

    While a profile is paused, nothing of it is applied, restored or withdrawn; while a trigger is
    paused, its events are ignored. While a cluster is paused, nothing is applied, restored or
    withdrawn in it, and its events are ignored. The pause is an annotation: applying a file without
    it ends the pause.
    """
    mark(words, selection, "paused", "true")
