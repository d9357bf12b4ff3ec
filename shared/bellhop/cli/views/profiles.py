"""ClusterProfiles, Profiles and RoleRequests: users' own, and those that triggers generated."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from bellhop.api.kinds import key_of
from bellhop.cli.describe import Story
from bellhop.cli.output import Column, Row, age, count
from bellhop.cli.views.view import Query, View, labels_of, name_of
from bellhop.core.generated_names import profile_kind
from bellhop.core.gvk import ObjectKey
from bellhop.core.sveltos_annotations import PROFILE_PAUSED
from bellhop.diagnosis import overview, profile_manifests
from bellhop.diagnosis.overview import ProfileStatus
from bellhop.diagnosis.releases import charted, origin
from bellhop.installation.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.state.record import NO_OBJECT, Content, DeploymentStatus, Ended, Profile, empty

COLUMNS = (
    Column("NAME", "name"),
    Column("TRIGGER", "trigger", shown=lambda value: value or "<own>"),
    Column("FROM", "from", wide=True, shown=lambda value: value or "-"),
    Column("PROVISIONED", "provisioned"),
    Column("STATE", "state"),
    Column("OBJECT", "object", wide=True, shown=lambda value: value or "-"),
    Column("TIER", "tier", wide=True),
    Column("MESSAGE", "message", wide=True),
)


NAMESPACED = (Column("NAMESPACE", "namespace"), COLUMNS[0], *COLUMNS[3:5], *COLUMNS[6:])
"""Of Profiles, which no trigger generates."""

REQUESTS = (COLUMNS[0], Column("ACCOUNT", "account"), *COLUMNS[3:5], COLUMNS[7])
"""Of RoleRequests, which have no tiers."""


def manifests(kind: str, here: Installation, query: Query) -> Iterator[Manifest]:
    """Yield users' profiles as they were written, generated ones as they are, with status."""
    for status, manifest in _found(here, kind, query):
        yield {**manifest, "status": _status(status)} if status else manifest


def rows(kind: str, here: Installation, query: Query) -> Iterator[Row]:
    """Yield one row for each profile."""
    for status, manifest in _found(here, kind, query):
        named = {
            "namespace": key_of(manifest).namespace,
            "name": name_of(manifest),
            "account": _account(manifest),
        }
        if status is None:
            yield {
                **named,
                "trigger": "",
                "from": "",
                "provisioned": "0/0",
                "state": "Paused" if _paused(manifest) else "Provisioning",
                "object": "",
                "tier": (manifest.get("spec") or {}).get("tier", 100),
                "message": "",
            }
            continue
        profile = status.profile
        yield {
            **named,
            "trigger": profile.trigger,
            "from": profile.cluster,
            "provisioned": f"{status.provisioned}/{len(profile.destinations)}",
            "state": "Paused" if _paused(manifest) else status.state,
            "object": overview.object_name(profile.object),
            "tier": profile.tier,
            "message": _message(status),
        }


def describe(kind: str, here: Installation, query: Query, story: Story) -> int:
    """Tell of each profile what it holds, where it goes and how that went."""
    told = 0
    for status, manifest in _found(here, kind, query):
        told += 1
        story.begin(kind, key_of(manifest).place)
        story.fact("Account", _account(manifest))
        if _paused(manifest):
            story.fact("Paused", f"by {PROFILE_PAUSED}: nothing is applied, put back or withdrawn")
        if status is None:
            story.fact("State", f"not taken to any cluster yet; {here.worker.name} does it")
            continue
        _tell(here, status, story)
    return told


def _tell(here: Installation, status: ProfileStatus, story: Story) -> None:
    profile = status.profile
    now = here.records.clock.now()
    story.fact("State", status.state)
    if profile.pinned:
        story.fact("Rolled back", f"to revision {profile.number}, {_until_undone(profile)}")
    story.fact("Trigger", profile.trigger)
    story.fact("From", profile.cluster)
    story.fact("Object", overview.object_name(profile.object))
    story.fact("Tier", str(profile.tier))
    story.fact("Depends on", ", ".join(profile.rollout.after))
    story.fact("Roll-out", overview.rolled_out(here, status))
    story.fact("Error", profile.error)
    story.grid("Contents", (_content(content) for content in profile.contents))
    known = {outcome.cluster: outcome for outcome in status.outcomes}
    story.grid(
        "Destinations",
        (
            (
                cluster,
                ended.feature,
                f"{ended.phase} ({ended.reason})" if ended.reason else ended.phase,
                (age(known[cluster].shown_at, now) if cluster in known else ""),
                ended.message + overview.next_try(ended),
            )
            for cluster in (*profile.destinations, *profile.leaving)
            for ended in _ended(known.get(cluster))
        ),
        nothing="no cluster is selected",
    )
    story.grid(
        "Inventory",
        (
            (
                cluster,
                overview.object_name(key),
                age(held.applied_at, now) if held.digest else "being applied",
                f"adopted from {held.adopted}" if held.adopted else origin(held),
            )
            for cluster in (*profile.destinations, *profile.leaving)
            if (kept := here.records.inventories.get(cluster, profile.name))
            for key, held in kept.value.held.items()
        ),
    )


def _until_undone(profile: Profile) -> str:
    return f"whatever is declared, until `bellhop rollback {profile.name} --end`"


def _paused(manifest: Manifest) -> bool:
    return PROFILE_PAUSED in (manifest["metadata"].get("annotations") or {})


def _account(manifest: Manifest) -> str:
    """Name the account that a RoleRequest gives rights to; no other has such a field."""
    spec = manifest.get("spec") or {}
    named = (spec.get(f"serviceAccount{part}") for part in ("Namespace", "Name"))
    return "/".join(filter(None, named))


def _ended(outcome: DeploymentStatus | None) -> tuple[Ended, ...]:
    return overview.by_feature(outcome) if outcome else (Ended("-", "Provisioning"),)


def _content(content: Content) -> tuple[str, str, str]:
    if content.chart:
        return content.ref, *charted(content.chart)
    if content.kustomization:
        path = content.kustomization.path
        return content.ref, f"{content.entry} {path}".rstrip(), "built for each cluster"
    if content.template:
        return content.ref, content.entry, "rendered for each cluster"
    named = [overview.object_name(ObjectKey.of(dict(each))) for each in content.manifests]
    return content.ref, content.entry, ", ".join(named) or "no object yet"


def _found(
    here: Installation, kind: str, query: Query
) -> Iterator[tuple[ProfileStatus | None, dict[str, Any]]]:
    """Yield every profile asked for, with its manifest; own ones nobody has resolved yet too."""
    own = {key_of(each).rule: each for each in here.records.manifests.of(kind)}
    pending = dict(own)
    for status in overview.statuses(here, None if kind == "ClusterProfile" else ""):
        profile = status.profile
        if profile_kind(profile.name) != kind:
            continue
        if not profile.trigger:
            pending.pop(profile.name, None)
        written = None if profile.trigger else own.get(profile.name)
        shown = written or profile_manifests.manifest(profile, _source(here, profile))
        if _takes(query, shown):
            yield status, shown
    yield from ((None, declared) for declared in pending.values() if _takes(query, declared))


def _takes(query: Query, manifest: Manifest) -> bool:
    key = key_of(manifest)
    return query.takes(key.namespace, key.name, labels_of(manifest))


def _source(here: Installation, profile: Profile) -> str:
    """Name the source whose events a trigger takes where a profile comes from."""
    catalog = here.catalogs.current()
    trigger = catalog.triggers.get(profile.trigger)
    source = catalog.source_of(trigger, profile.cluster) if trigger else None
    return source.name if source else ""


def _status(status: ProfileStatus) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "matchingClusters": [
            profile_manifests.cluster_ref(each) for each in status.profile.matched
        ],
        "state": status.state,
        "clusters": [
            {
                "cluster": each.cluster,
                "phase": each.phase,
                "lastAppliedTime": each.at,
                "since": each.begun_at,
                **_said(each),
                **({"nextTryTime": each.retry_at} if each.retry_at else {}),
                "features": [_feature(ended) for ended in overview.by_feature(each)],
            }
            for each in status.outcomes
        ],
    }
    if status.profile.pinned:
        shown["rolledBackTo"] = status.profile.number
    if status.profile.error:
        shown["failureMessage"] = status.profile.error
    return shown


def _feature(ended: Ended) -> dict[str, Any]:
    return {
        "featureID": ended.feature,
        "phase": ended.phase,
        **({"reason": ended.reason} if ended.reason else {}),
        **_said(ended),
        **({"nextTryTime": ended.retry_at} if ended.retry_at else {}),
    }


def _said(of: DeploymentStatus | Ended) -> dict[str, str]:
    """Return what is said of a cluster; where all is there that is no failure."""
    name = "message" if of.phase == "Provisioned" else "failureMessage"
    return {name: of.message} if of.message else {}


def _message(status: ProfileStatus) -> str:
    if status.profile.error:
        return status.profile.error
    if status.profile.pinned:
        return f"rolled back to revision {status.profile.number}, {_until_undone(status.profile)}"
    if status.removing:
        return _removal(status)
    if empty(status.profile.contents):
        return NO_OBJECT
    known = sorted(status.outcomes, key=lambda each: each.phase == "Provisioned")
    told = [f"{each.cluster}: {each.message}" for each in known if each.message]
    more = f" (and {count(len(told) - 1, 'other')})" if len(told) > 1 else ""
    return told[0] + more if told else ""


def _removal(status: ProfileStatus) -> str:
    """Say from which cluster a profile is still to be removed, and what keeps it there."""
    said = {each.cluster: each.message for each in status.outcomes}
    first, *others = sorted(status.profile.leaving, key=lambda each: not said.get(each))
    why = f": {said[first]}" if said.get(first) else ""
    more = f" (and from {count(len(others), 'other cluster')})" if others else ""
    return f"it is still to be removed from '{first}'{why}{more}"


def _view(kind: str, columns: tuple[Column, ...]) -> View:
    return View(columns, partial(rows, kind), partial(manifests, kind), partial(describe, kind))


VIEWS = {
    "clusterprofile": _view("ClusterProfile", COLUMNS),
    "profile": _view("Profile", NAMESPACED),
    "rolerequest": _view("RoleRequest", REQUESTS),
}
