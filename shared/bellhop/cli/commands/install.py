"""`bellhop install`: install in a cluster what it needs to hold the configuration."""

from __future__ import annotations

import click

from bellhop.cli import output
from bellhop.cli.command import Group
from bellhop.cli.options import TABLE
from bellhop.cli.selection import cluster_argument, find_cluster
from bellhop.cli.session import open_installation

_EXAMPLES = (
    "bellhop install crds mgmt/mgmt",
    "bellhop install crds --print > crds.yaml",
    "bellhop install crds --print-role | kubectl apply -f -",
)
_COLUMNS = (
    output.Column("NAME", "name"),
    output.Column("RESULT", "result"),
    output.Column("NOTE", "note", prose=True),
)


@click.group("install", cls=Group, examples=_EXAMPLES)
def command() -> None:
    """Install custom resource definitions in a cluster."""


@command.command(
    "crds",
    usage=("NAMESPACE/NAME", "--print [--kubernetes VERSION]", "--print-role"),
    examples=_EXAMPLES,
)
@cluster_argument(required=False)
@click.option(
    "--print", "printed", is_flag=True, help="Print the definitions as YAML, and install nothing."
)
@click.option(
    "--print-role",
    "role",
    is_flag=True,
    help="Print the ClusterRole, and the Role of a namespace, that Bellhop's account needs in the"
    " cluster for the configuration.",
)
@click.option(
    "--kubernetes",
    "version",
    metavar="VERSION",
    help="The oldest Kubernetes that the printed definitions are for; before 1.25 they have no"
    " validation rules.",
)
def crds(key: str | None, version: str | None, *, printed: bool, role: bool) -> None:
    """Install the definitions of all kinds that users write and Bellhop writes.

    They have the names, versions and fields of Sveltos. A definition that Sveltos or somebody else
    installed is used as it is, and never changed; so is one of a newer Bellhop.
    """
    if sum((printed, role, bool(key))) != 1 or (version and not printed):
        raise click.UsageError("name a cluster, as NAMESPACE/NAME, or give --print")
    if role:
        _print_roles()
        return
    if printed:
        _print_definitions(version or "")
        return
    from bellhop.configuration.installer import install_definitions

    here = open_installation()
    kube = here.access.open(find_cluster(here, key))
    rows = (each._asdict() for each in install_definitions(kube))
    output.print_table(_COLUMNS, rows, TABLE, nothing="")


def _print_definitions(version: str) -> None:
    from bellhop.configuration.definitions import make_definitions
    from bellhop.configuration.installer import has_rules
    from bellhop.documents.document import dump

    found = make_definitions(rules=has_rules(version))
    output.print_text("---\n".join(map(dump, found)))


def _print_roles() -> None:
    from bellhop.configuration.rights import make_roles
    from bellhop.documents.document import dump

    output.print_text("---\n".join(map(dump, make_roles())))
