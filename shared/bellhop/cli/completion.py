"""The values that a shell completes: names, kinds, contexts and files.

Completion creates nothing and reports no error; without a state there are no names.
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
    from bellhop.installation import Installation

_MOST = 200
"""The most names that a shell gets."""

ORPHANS = "orphans"
"""A word that `bellhop delete` takes in place of a kind."""

_TRIGGER = "trigger"
_PROMOTION = "promotion"
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
    from bellhop.cli.contexts import load

    try:
        return _filter_prefix(incomplete, load(os.environ).known)
    except BellhopError:
        return []


def complete_kind(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of kinds, also behind a comma."""
    from bellhop.cli.kinds import NAMES

    before, comma, last = incomplete.rpartition(",")
    return [
        f"{before}{comma}{each}" for each in _filter_prefix(last.lower(), (k.plural for k in NAMES))
    ]


def complete_deleted(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of kinds, and `orphans`, which have any kind."""
    return [*complete_kind(ctx, parameter, incomplete), *_filter_prefix(incomplete, [ORPHANS])]


def complete_cluster(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return _complete_from_state(ctx, incomplete, _list_clusters)


def complete_name(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of objects of the kind before them."""
    from bellhop.cli.kinds import find_kind

    try:
        kind = find_kind(str(ctx.params.get("kind") or ""))
    except BellhopError:
        return []
    return _complete_from_state(ctx, incomplete, lambda here: _list_names(here, kind))


def complete_profile(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return _complete_from_state(ctx, incomplete, _list_profiles)


def complete_paused(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete users' own profiles, and `trigger`, `promotion` or `cluster` and its name."""
    words = list(ctx.params.get("words") or ())
    named = {_TRIGGER: _list_triggers, _PROMOTION: _list_promotions, _CLUSTER: _list_clusters}
    if not words:
        return [
            *_filter_prefix(incomplete, named),
            *_complete_from_state(ctx, incomplete, _list_own_profiles),
        ]
    if len(words) == 1 and words[0] in named:
        return _complete_from_state(ctx, incomplete, named[words[0]])
    return []


def complete_promotion(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Complete `promotion` NAME."""
    words = _list_words(ctx)
    if not words:
        return _filter_prefix(incomplete, [_PROMOTION])
    return _complete_from_state(ctx, incomplete, _list_promotions) if len(words) == 1 else []


def complete_revised(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a profile, and `promotion` NAME."""
    words = _list_words(ctx)
    if words[:1] == [_PROMOTION]:
        return _complete_from_state(ctx, incomplete, _list_promotions) if len(words) == 1 else []
    own = _filter_prefix(incomplete, [_PROMOTION])
    return [] if words else [*own, *complete_profile(ctx, parameter, incomplete)]


def complete_stage(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the stages of the promotion that the command names."""
    words = _list_words(ctx)
    name = words[-1].rpartition("/")[2] if words else ""
    return _complete_from_state(ctx, incomplete, lambda here: _list_stages(here, name))


def complete_sender(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of senders of the cluster before them."""
    key = str(ctx.params.get("key") or "")
    return _complete_from_state(ctx, incomplete, lambda here: _list_senders(here, key))


def complete_source(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of sources with held deletions."""
    return _complete_from_state(ctx, incomplete, _list_held_sources)


def complete_explained(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Complete CLUSTER KIND NAMESPACE/NAME, and `trigger` NAME."""
    words = list(ctx.params.get("words") or ())
    if not words:
        return [
            *_filter_prefix(incomplete, [_TRIGGER]),
            *_complete_from_state(ctx, incomplete, _list_clusters),
        ]
    if words[0] == _TRIGGER:
        return _complete_from_state(ctx, incomplete, _list_triggers) if len(words) == 1 else []
    if len(words) == 1:
        return _complete_from_state(ctx, incomplete, lambda here: _list_kinds(here, words[0]))
    return _complete_from_state(ctx, incomplete, lambda here: _list_objects(here, *words[:2]))


def _list_words(ctx: click.Context) -> list[str]:
    """Return the words of an argument KIND NAME as they are typed so far.

    click leaves them unread before an option without a value.
    """
    return list(ctx.params.get("name") or ctx.params.get("profile") or ctx.args)


def _complete_from_state(
    ctx: click.Context, incomplete: str, names: Callable[[Installation], Iterable[str]]
) -> list[str]:
    try:
        with _open_state(ctx) as here:
            return list(islice(_filter_prefix(incomplete, names(here)), _MOST))
    except (BellhopError, OSError):
        return []


@contextmanager
def _open_state(ctx: click.Context) -> Iterator[Installation]:
    from bellhop.cli.session import open_context

    opened = open_context(ctx)
    try:
        yield opened.installation
    finally:
        opened.close()


def _filter_prefix(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(each for each in set(names) if each.startswith(incomplete))


def _list_clusters(here: Installation) -> Iterator[str]:
    return (each.key for each in here.records.clusters.all())


def _list_triggers(here: Installation) -> Iterator[str]:
    for kind in ("EventTrigger", "EventBasedAddOn"):
        yield from (each.removeprefix("/") for each in here.records.manifests.names(kind))


def _list_promotions(here: Installation) -> Iterator[str]:
    return (each.removeprefix("/") for each in here.records.manifests.names("ClusterPromotion"))


def _list_stages(here: Installation, promotion: str) -> Iterator[str]:
    kept = here.catalogs.known().promotions.get(promotion)
    return (each.name for each in (kept.stages if kept else ()))


def _list_own_profiles(here: Installation) -> Iterator[str]:
    for kind in ("ClusterProfile", "Profile"):
        yield from (each.removeprefix("/") for each in here.records.manifests.names(kind))
    yield from (f"RoleRequest{each}" for each in here.records.manifests.names("RoleRequest"))


def _list_held_sources(here: Installation) -> Iterator[str]:
    return (each.source for each in here.records.holds.all())


def _list_profiles(here: Installation) -> Iterator[str]:
    from bellhop.diagnosis.names import ProfileNames

    titled = ProfileNames(here)
    for cluster in here.records.clusters.all():
        outcomes = here.records.outcomes.of(cluster.key)
        yield from (titled.shown(outcome.profile) for outcome in outcomes)


def _list_names(here: Installation, kind: KindName) -> Iterator[str]:
    if kind.singular == "cluster":
        yield from _list_clusters(here)
    elif kind.stored:
        for stored in kind.stored:
            yield from (each.removeprefix("/") for each in here.records.manifests.names(stored))
    else:
        from bellhop.cli.views.view import Query

        rows = kind.view.rows(here, Query())
        yield from (f"{row['namespace']}/{row['name']}" for row in rows)
    if kind.singular == "clusterprofile":
        yield from (name for name in _list_profiles(here) if "/" not in name)


def _list_senders(here: Installation, cluster: str) -> Iterator[str]:
    from bellhop.diagnosis.names import resolve_cluster

    return (each.name for each in here.records.senders.of(resolve_cluster(here, cluster)))


def _list_kinds(here: Installation, cluster: str) -> Iterator[str]:
    from bellhop.diagnosis.names import resolve_cluster

    gate = here.records.gates.get(resolve_cluster(here, cluster))
    yield from (watched.gvk.kind.lower() for watched in (gate.value.kinds if gate else ()))


def _list_objects(here: Installation, cluster: str, kind: str) -> Iterator[str]:
    from bellhop.diagnosis.names import resolve_cluster, resolve_kinds
    from bellhop.diagnosis.object_view import list_known_names

    key = resolve_cluster(here, cluster)
    for gvk in resolve_kinds(here, key, kind):
        yield from list_known_names(here, key, gvk)
