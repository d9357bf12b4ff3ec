"""What a shell completes beside commands and options: names, kinds, contexts and files.

Nothing is made, and nothing is said: where there is no state, there is nothing to complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

import click

from bellhop.errors import BellhopError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bellhop.cli.kinds import KindName
    from bellhop.installation.installation import Installation

_MOST = 200
"""Names that a shell is given: beyond that one types on."""

ORPHANS = "orphans"
"""What `bellhop delete` takes in place of a kind."""

_TRIGGER = "trigger"
_CLUSTER = "cluster"


def complete_file(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Let the shell complete files by itself."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def complete_context(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Complete the names of contexts."""
    from bellhop.cli.contexts import load

    try:
        return _starting(incomplete, load(os.environ).known)
    except BellhopError:
        return []


def complete_kind(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of kinds, also behind a comma."""
    from bellhop.cli.kinds import NAMES

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{each}" for each in _starting(last.lower(), (k.plural for k in NAMES))]


def complete_deleted(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of kinds, and `orphans`, which are of any kind."""
    return [*complete_kind(ctx, parameter, incomplete), *_starting(incomplete, [ORPHANS])]


def complete_cluster(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of clusters."""
    return _from_state(ctx, incomplete, _clusters)


def complete_name(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of the objects of the kind that was typed before."""
    from bellhop.cli.kinds import kind_named

    try:
        kind = kind_named(str(ctx.params.get("kind") or ""))
    except BellhopError:
        return []
    return _from_state(ctx, incomplete, lambda here: _names(here, kind))


def complete_profile(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of profiles."""
    return _from_state(ctx, incomplete, _profiles)


def complete_paused(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete users' own profiles, `trigger` NAME and `cluster` NAMESPACE/NAME."""
    words = list(ctx.params.get("words") or ())
    named = {_TRIGGER: _triggers, _CLUSTER: _clusters}
    if not words:
        return [*_starting(incomplete, named), *_from_state(ctx, incomplete, _own_profiles)]
    if len(words) == 1 and words[0] in named:
        return _from_state(ctx, incomplete, named[words[0]])
    return []


def complete_sender(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of the senders of the cluster that was typed before."""
    key = str(ctx.params.get("key") or "")
    return _from_state(ctx, incomplete, lambda here: _senders(here, key))


def complete_source(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of the sources of which something is held."""
    return _from_state(ctx, incomplete, _held)


def complete_explained(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Complete CLUSTER KIND NAMESPACE/NAME, and `trigger` NAME."""
    words = list(ctx.params.get("words") or ())
    if not words:
        return [*_starting(incomplete, [_TRIGGER]), *_from_state(ctx, incomplete, _clusters)]
    if words[0] == _TRIGGER:
        return _from_state(ctx, incomplete, _triggers) if len(words) == 1 else []
    if len(words) == 1:
        return _from_state(ctx, incomplete, lambda here: _kinds(here, words[0]))
    return _from_state(ctx, incomplete, lambda here: _objects(here, *words[:2]))


def _from_state(
    ctx: click.Context, incomplete: str, names: Callable[[Installation], Iterable[str]]
) -> list[str]:
    try:
        with _opened(ctx) as here:
            return list(islice(_starting(incomplete, names(here)), _MOST))
    except (BellhopError, OSError):
        return []


@contextmanager
def _opened(ctx: click.Context) -> Iterator[Installation]:
    from bellhop.cli.session import open_chosen

    opened = open_chosen(ctx)
    try:
        yield opened.installation
    finally:
        opened.close()


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(each for each in set(names) if each.startswith(incomplete))


def _clusters(here: Installation) -> Iterator[str]:
    return (each.key for each in here.records.clusters.all())


def _triggers(here: Installation) -> Iterator[str]:
    for kind in ("EventTrigger", "EventBasedAddOn"):
        yield from (each.removeprefix("/") for each in here.records.manifests.names(kind))


def _own_profiles(here: Installation) -> Iterator[str]:
    for kind in ("ClusterProfile", "Profile"):
        yield from (each.removeprefix("/") for each in here.records.manifests.names(kind))
    yield from (f"RoleRequest{each}" for each in here.records.manifests.names("RoleRequest"))


def _held(here: Installation) -> Iterator[str]:
    return (each.source for each in here.records.holds.all())


def _profiles(here: Installation) -> Iterator[str]:
    from bellhop.diagnosis.names import Titled

    titled = Titled(here)
    for cluster in here.records.clusters.all():
        outcomes = here.records.outcomes.of(cluster.key)
        yield from (titled.shown(outcome.profile) for outcome in outcomes)


def _names(here: Installation, kind: KindName) -> Iterator[str]:
    if kind.singular == "cluster":
        yield from _clusters(here)
    elif kind.stored:
        for stored in kind.stored:
            yield from (each.removeprefix("/") for each in here.records.manifests.names(stored))
    else:
        from bellhop.cli.views.view import Query

        rows = kind.view.rows(here, Query())
        yield from (f"{row['namespace']}/{row['name']}" for row in rows)
    if kind.singular == "clusterprofile":
        yield from (name for name in _profiles(here) if "/" not in name)


def _senders(here: Installation, cluster: str) -> Iterator[str]:
    from bellhop.diagnosis.object_names import cluster_named

    return (each.name for each in here.records.senders.of(cluster_named(here, cluster)))


def _kinds(here: Installation, cluster: str) -> Iterator[str]:
    from bellhop.diagnosis.object_names import cluster_named

    gate = here.records.gates.get(cluster_named(here, cluster))
    yield from (watched.gvk.kind.lower() for watched in (gate.value.kinds if gate else ()))


def _objects(here: Installation, cluster: str, kind: str) -> Iterator[str]:
    from bellhop.diagnosis.object_names import cluster_named, kinds_named
    from bellhop.diagnosis.object_view import known_names

    key = cluster_named(here, cluster)
    for gvk in kinds_named(here, key, kind):
        yield from known_names(here, key, gvk)
