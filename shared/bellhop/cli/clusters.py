"""One way to name a cluster everywhere: NAMESPACE/NAME, or --namespace and --cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from bellhop.cli.completion import complete_cluster
from bellhop.cli.kinds import singular, split_kind

if TYPE_CHECKING:
    from bellhop.installation.installation import Installation

F = TypeVar("F", bound=Callable[..., Any])


def cluster_option(command: F) -> F:
    """Add --namespace and --cluster, of which the latter may be NAMESPACE/NAME."""
    command = click.option(
        "--cluster",
        default="",
        metavar="[NAMESPACE/]NAME",
        help="Only this cluster.",
        shell_complete=complete_cluster,
    )(command)
    return click.option(
        "--namespace", metavar="NAMESPACE", default="", help="Namespace of the cluster."
    )(command)


def cluster_argument(*, required: bool) -> Callable[[F], F]:
    """Add the argument KEY, a cluster."""
    metavar = "NAMESPACE/NAME" if required else "[NAMESPACE/NAME]"
    return click.argument(
        "key", required=required, default=None, metavar=metavar, shell_complete=complete_cluster
    )


def named_cluster(command: F) -> F:
    """Add a cluster that may be left out: NAME, `cluster NAME` or --cluster; `key` is its name."""

    @wraps(command)
    def call(*, words: Sequence[str], namespace: str, cluster: str, **others: Any) -> Any:
        names = cluster_names(words)
        if len(names) > 1:
            raise click.UsageError("name one cluster, as NAMESPACE/NAME")
        key = None
        if names or namespace or cluster:
            place = one_cluster(names[0] if names else None, namespace, cluster)
            key = "/".join(filter(None, place))
        return command(key=key, **others)

    argument = click.argument(
        "words", nargs=-1, metavar="[NAMESPACE/NAME]", shell_complete=complete_cluster
    )
    return argument(cluster_option(cast("F", call)))


def cluster_names(words: Sequence[str]) -> Sequence[str]:
    """Return the names of clusters without their kind, which may come first or be part of one."""
    names = words[1:] if words and singular(words[0]) == "cluster" else words
    return [_without_kind(each) for each in names]


def _without_kind(word: str) -> str:
    """Read `cluster/NAMESPACE/NAME`; in `clusters/NAME` the first word is a namespace."""
    name = split_kind(word, ["cluster"])[1]
    return name if "/" in name else word


def one_cluster(key: str | None, namespace: str, name: str) -> tuple[str, str]:
    """Read a cluster that is named by argument or by options, as namespace and name.

    Raises:
        UsageError: it is named in neither way, or in both.
    """
    if bool(key) == bool(name):
        raise click.UsageError("name one cluster, as NAMESPACE/NAME or with --namespace, --cluster")
    place, slash, rest = _without_kind(key or name).partition("/")
    if slash and namespace not in ("", place):
        raise click.UsageError(f"'{key or name}' and --namespace {namespace} name two namespaces")
    return (place, rest) if slash else (namespace, place)


def known(here: Installation, text: str | None, namespace: str = "") -> str:
    """Return the key of a registered cluster, or nothing where none is named.

    Raises:
        MissingError: there is none of that name, or none in the namespace.
        InvalidError: several have it.
    """
    from bellhop.diagnosis.object_names import cluster_named, require_clusters

    if text:
        return cluster_named(here, _without_kind(text), namespace)
    if namespace:
        require_clusters(here, namespace)
    return ""
