"""Several objects of a kind at once: `-l SELECTOR` or `--all` in place of a name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import click
from msgspec import Struct

from bellhop.cli.clusters import cluster_names, cluster_option, known, one_cluster
from bellhop.cli.completion import complete_cluster
from bellhop.cli.kinds import singular
from bellhop.errors import BellhopError, MissingError

if TYPE_CHECKING:
    from bellhop.cli.output import Row
    from bellhop.installation.installation import Installation

FindKeys: TypeAlias = Callable[["Installation"], list[str]]
"""Find the keys of the clusters that a command line names; none if it names no cluster."""

F = TypeVar("F", bound=Callable[..., Any])
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

    The parameter `find_keys` returns the keys of those that an installation has; none if no cluster
    is named.
    """

    @wraps(command)
    def call(
        *, words: Sequence[str], namespace: str, cluster: str, selection: Selection, **others: Any
    ) -> Any:
        names = cluster_names(words)
        if len(names) > 1:
            raise click.UsageError("name one cluster, as NAMESPACE/NAME, or use -l or --all")
        if selection and (names or cluster):
            raise click.UsageError("name a cluster, or use -l or --all, not both")
        name = ""
        if names or cluster or (namespace and not selection):
            place = one_cluster(names[0] if names else None, namespace, cluster)
            name = "/".join(filter(None, place))

        def find_keys(here: Installation) -> list[str]:
            if selection:
                return select_clusters(here, selection, namespace)
            return [known(here, name)] if name else []

        return command(find_keys=find_keys, **others)

    argument = click.argument(
        "words", nargs=-1, metavar="[NAMESPACE/NAME]", shell_complete=complete_cluster
    )
    return argument(cluster_option(selection_options(cast("F", call))))


def select_clusters(here: Installation, selection: Selection, namespace: str = "") -> list[str]:
    """Return the keys of the selected clusters.

    Raises:
        InvalidError: the selector cannot be read.
        MissingError: there is no such cluster.
    """
    rows = select_objects(here, "cluster", selection, namespace)
    return [f"{row['namespace']}/{row['name']}" for row in rows]


def select_objects(
    here: Installation, kind: str, selection: Selection, namespace: str = ""
) -> Sequence[Row]:
    """Return the rows of the selected objects of a kind.

    Raises:
        InvalidError: there is no such kind, or the selector cannot be read.
        MissingError: there is no such object.
    """
    from bellhop.cli.queries import asked

    what = asked(kind, "", namespace, selection.selector)
    rows = list(what.kind.view.rows(here, what.query))
    if not rows:
        place = f" in namespace '{namespace}'" if namespace else ""
        labels = f" with the labels '{selection.selector}'" if selection.selector else ""
        raise MissingError(f"there is no {what.kind.singular}{place}{labels}")
    return rows


def select_applied(
    here: Installation, kind: str, selection: Selection, namespace: str = ""
) -> Sequence[Row]:
    """Return the rows of the selected objects that users applied, without generated profiles.

    Raises:
        InvalidError: there is no such kind, or the selector cannot be read.
        MissingError: there is no such object.
    """
    rows = select_objects(here, kind, selection, namespace)
    applied = [row for row in rows if not row.get("trigger")]
    if not applied:
        raise MissingError(f"triggers generated all {len(rows)} that are selected; name a trigger")
    return applied


def selected_kind(words: Sequence[str], possible: Mapping[str, str]) -> str:
    """Return the kind that a word beside -l or --all names, in the singular.

    `possible` maps each kind that the command takes to what its users call it.

    Raises:
        UsageError: it is no such kind, or more than a kind.
    """
    kind = singular(words[0]) if len(words) == 1 else ""
    if kind not in possible:
        raise click.UsageError(
            f"name a kind beside -l or --all: {', '.join(dict.fromkeys(possible.values()))}"
        )
    return kind


def for_each(items: Iterable[T], act: Callable[[T], None]) -> None:
    """Act on each item; a failure keeps none of the others from it.

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
