"""The clusters and objects that a command line names: NAMESPACE/NAME, -l SELECTOR or --all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import click
from msgspec import Struct

from bellhop.cli.completion import complete_cluster
from bellhop.cli.kinds import singular_name, split_kind
from bellhop.errors import BellhopError, MissingError

if TYPE_CHECKING:
    from bellhop.cli.output import Row
    from bellhop.installation import Installation

F = TypeVar("F", bound=Callable[..., Any])


def cluster_option(command: F) -> F:
    """Add --namespace and --cluster; the latter may be NAMESPACE/NAME."""
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
    metavar = "NAMESPACE/NAME" if required else "[NAMESPACE/NAME]"
    return click.argument(
        "key", required=required, default=None, metavar=metavar, shell_complete=complete_cluster
    )


def named_cluster(command: F) -> F:
    """Add an optional cluster: NAME, `cluster NAME` or --cluster; `key` is its name."""

    @wraps(command)
    def call(*, words: Sequence[str], namespace: str, cluster: str, **others: Any) -> Any:
        names = read_cluster_names(words)
        if len(names) > 1:
            raise click.UsageError("name one cluster, as NAMESPACE/NAME")
        key = None
        if names or namespace or cluster:
            place = read_cluster_name(names[0] if names else None, namespace, cluster)
            key = "/".join(filter(None, place))
        return command(key=key, **others)

    argument = click.argument(
        "words", nargs=-1, metavar="[NAMESPACE/NAME]", shell_complete=complete_cluster
    )
    return argument(cluster_option(cast("F", call)))


def read_cluster_names(words: Sequence[str]) -> Sequence[str]:
    """Return names of clusters without their kind, which may come first or be part of one."""
    names = words[1:] if words and singular_name(words[0]) == "cluster" else words
    return [_strip_kind(each) for each in names]


def _strip_kind(word: str) -> str:
    """Read `cluster/NAMESPACE/NAME`; in `clusters/NAME` the first word is a namespace."""
    name = split_kind(word, ["cluster"])[1]
    return name if "/" in name else word


def read_cluster_name(key: str | None, namespace: str, name: str) -> tuple[str, str]:
    """Read a cluster from the argument or from options, as namespace and name."""
    if bool(key) == bool(name):
        raise click.UsageError("name one cluster, as NAMESPACE/NAME or with --namespace, --cluster")
    place, slash, rest = _strip_kind(key or name).partition("/")
    if slash and namespace not in ("", place):
        raise click.UsageError(f"'{key or name}' and --namespace {namespace} name two namespaces")
    return (place, rest) if slash else (namespace, place)


def find_cluster(here: Installation, text: str | None, namespace: str = "") -> str:
    """Return the key of a registered cluster; empty if none is named."""
    from bellhop.diagnosis.names import require_clusters, resolve_cluster

    if text:
        return resolve_cluster(here, _strip_kind(text), namespace)
    if namespace:
        require_clusters(here, namespace)
    return ""


SELECTABLE = {
    "cluster": "clusters",
    "clusterprofile": "clusterprofiles",
    "profile": "profiles",
    "rolerequest": "rolerequests",
    "eventtrigger": "triggers",
}
"""The kinds that -l and --all select, as users call them."""

FindKeys: TypeAlias = Callable[["Installation"], list[str]]
"""Find the keys of the clusters that a command line names; none if it names no cluster."""

T = TypeVar("T")


class Selection(Struct, frozen=True):
    """The objects that -l and --all select; with neither, objects are named."""

    selector: str = ""
    every: bool = False

    def __bool__(self) -> bool:
        return bool(self.selector) or self.every


def selection_options(command: F) -> F:
    """Add -l and --all, which a command gets as its parameter `selection`."""

    @wraps(command)
    def call(*, selector: str | None, every: bool, **others: Any) -> Any:
        if selector is not None and every:
            raise click.UsageError("say -l or --all, not both")
        # A variable of a script that is not set must not select everything.
        if selector is not None and not selector.strip():
            raise click.UsageError("name labels after -l, or use --all")
        return command(selection=Selection(selector or "", every), **others)

    named = click.option(
        "-l",
        "--selector",
        metavar="SELECTOR",
        help="All objects with these labels, as in env=prod,tier in (a,b),!edge.",
    )
    everything = click.option("--all", "every", is_flag=True, help="All objects of the kind.")
    return named(everything(cast("F", call)))


def named_clusters(command: F) -> F:
    """Add clusters: NAME, `cluster NAME`, --cluster, -l or --all.

    The parameter `find_keys` returns their keys in an installation; none if no cluster is named.
    """

    @wraps(command)
    def call(
        *, words: Sequence[str], namespace: str, cluster: str, selection: Selection, **others: Any
    ) -> Any:
        names = read_cluster_names(words)
        if len(names) > 1:
            raise click.UsageError("name one cluster, as NAMESPACE/NAME, or use -l or --all")
        if selection and (names or cluster):
            raise click.UsageError("name a cluster, or use -l or --all, not both")
        name = ""
        if names or cluster or (namespace and not selection):
            place = read_cluster_name(names[0] if names else None, namespace, cluster)
            name = "/".join(filter(None, place))

        def find_keys(here: Installation) -> list[str]:
            if selection:
                return select_clusters(here, selection, namespace)
            return [find_cluster(here, name)] if name else []

        return command(find_keys=find_keys, **others)

    argument = click.argument(
        "words", nargs=-1, metavar="[NAMESPACE/NAME]", shell_complete=complete_cluster
    )
    return argument(cluster_option(selection_options(cast("F", call))))


def select_clusters(here: Installation, selection: Selection, namespace: str = "") -> list[str]:
    rows = select_objects(here, "cluster", selection, namespace)
    return [f"{row['namespace']}/{row['name']}" for row in rows]


def select_objects(
    here: Installation, kind: str, selection: Selection, namespace: str = ""
) -> Sequence[Row]:
    from bellhop.cli.queries import read_query

    what = read_query(kind, "", namespace, selection.selector)
    rows = list(what.kind.view.rows(here, what.query))
    if not rows:
        place = f" in namespace '{namespace}'" if namespace else ""
        labels = f" with the labels '{selection.selector}'" if selection.selector else ""
        raise MissingError(f"there is no {what.kind.singular}{place}{labels}")
    return rows


def select_applied(
    here: Installation, kind: str, selection: Selection, namespace: str = ""
) -> Sequence[Row]:
    """Return the rows of the selected objects that users applied, without generated profiles."""
    from bellhop.operations.promotions import is_stage_profile

    rows = select_objects(here, kind, selection, namespace)
    applied = [row for row in rows if not row.get("trigger")]
    if singular_name(kind) == "clusterprofile":
        applied = [row for row in applied if not is_stage_profile(here, row["name"])]
    if not applied:
        raise MissingError(
            f"triggers or promotions made all {len(rows)} that are selected; name one of these"
        )
    return applied


def read_selected_kind(words: Sequence[str], possible: Mapping[str, str]) -> str:
    """Return the singular of the kind that a word beside -l or --all names.

    `possible` maps each kind that the command takes to its name for users.
    """
    kind = singular_name(words[0]) if len(words) == 1 else ""
    if kind not in possible:
        raise click.UsageError(
            f"name a kind beside -l or --all: {', '.join(dict.fromkeys(possible.values()))}"
        )
    return kind


def for_each(items: Iterable[T], act: Callable[[T], None]) -> None:
    """Act on each item, also after failures.

    Raises:
        BellhopError: the last failure; earlier ones are reported as they happen.
    """
    from bellhop.cli.output import say

    failed: BellhopError | None = None
    for each in items:
        try:
            act(each)
        except BellhopError as error:
            if failed:
                say(f"error: {failed}", err=True)
            failed = error
    if failed:
        raise failed
