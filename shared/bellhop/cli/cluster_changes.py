"""KEY=VALUE and KEY- of one cluster or of selected ones: `bellhop label` and `bellhop annotate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from msgspec import Struct

from bellhop.cli.clusters import cluster_argument, known
from bellhop.cli.selection import Selection, select_clusters, selection_options

if TYPE_CHECKING:
    from bellhop.installation.installation import Installation

F = TypeVar("F", bound=Callable[..., Any])


class ChangedClusters(Struct, frozen=True):
    """The changes that a command line has, and the clusters that they are for."""

    name: str
    selection: Selection
    changes: Sequence[str]

    def keys(self, here: Installation) -> list[str]:
        """Return the keys of the clusters.

        Raises:
            InvalidError: the selector cannot be read, or several clusters have the name.
            MissingError: there is no such cluster.
        """
        if self.selection:
            return select_clusters(here, self.selection)
        return [known(here, self.name)]


def changed_clusters(command: F) -> F:
    """Add a cluster, -l or --all, and changes; the parameter `changed` has all of them."""

    @wraps(command)
    def call(
        *, key: str | None, changes: Sequence[str], selection: Selection, **others: Any
    ) -> Any:
        # With -l or --all no cluster is named: the first word is a change, too.
        words = [*([key] if key else []), *changes]
        name = "" if selection or not words else words.pop(0)
        if not words:
            raise click.UsageError(
                "name a cluster, -l or --all, and a change, as KEY=VALUE or KEY-"
            )
        return command(changed=ChangedClusters(name, selection, words), **others)

    changes = click.argument("changes", nargs=-1, metavar="KEY=VALUE|KEY-...")
    return cluster_argument(required=False)(changes(selection_options(cast("F", call))))


def overwrite_option(command: F) -> F:
    """Let a command replace the values of keys that are there."""
    return click.option(
        "--overwrite", is_flag=True, help="Replace other values that the keys have."
    )(command)
