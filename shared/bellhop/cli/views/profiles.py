"""ClusterProfiles, Profiles and RoleRequests: users' own, and those that triggers generated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from bellhop.api.kinds import key_of
from bellhop.cli.output import Column, Row, format_age, format_count
from bellhop.cli.printer import Description
from bellhop.cli.views.view import Query, View, labels_of, name_of
from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import profile_kind
from bellhop.core.sveltos_annotations import PROFILE_PAUSED
from bellhop.diagnosis import names, profile_manifests, profile_status
from bellhop.diagnosis.profile_status import ProfileStatus
from bellhop.diagnosis.releases import describe_chart, describe_origin
from bellhop.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.state.content import NO_OBJECT, Content, empty
from bellhop.state.deployment import DeploymentStatus, Ended
from bellhop.state.profile import Profile

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


Item = tuple[ProfileStatus | None, Mapping[str, Any]]
"""A profile's status and manifest; no status before its first rendering."""


def _select(kind: str, here: Installation, query: Query) -> Iterator[Item]:
    for status, manifest in _profiles(kind, here):
        key = key_of(manifest)
        if query.matches(key.namespace, key.name, labels_of(manifest)):
            yield status, manifest


def _profiles(kind: str, here: Installation) -> Iterator[Item]:
    """Yield users' profiles with their own manifests, and generated ones with a made one."""
    own = {key_of(each).rule: each for each in here.records.manifests.of(kind)}
    pending = dict(own)
    for status in profile_status.read_statuses(here, None if kind == "ClusterProfile" else ""):
        profile = status.profile
        if profile_kind(profile.name) != kind:
            continue
        written = None if profile.trigger else own.get(profile.name)
        if not profile.trigger:
            pending.pop(profile.name, None)
        yield status, written or _write(here, profile)
    yield from ((None, manifest) for manifest in pending.values())


def _write(here: Installation, profile: Profile) -> Manifest:
    """Return the manifest of a profile that nobody applied: a trigger's, or that of a stage."""
    from bellhop.api.stage_profile import StageProfile

    made = profile_manifests.manifest(profile, _source(here, profile))
    declared = here.catalogs.known().profiles.get(profile.name)
    if isinstance(declared, StageProfile):
        # Its labels and annotations name promotion and stage.
        made["metadata"] = declared.written["metadata"]
    return made


def _manifest(_here: Installation, item: Item) -> Manifest:
    status, manifest = item
    return {**manifest, "status": _status(status)} if status else dict(manifest)


def _row(_here: Installation, item: Item) -> Row:
    status, manifest = item
    profile = status.profile if status else None
    state = status.state if status else "Provisioning"
    provisioned = f"{status.provisioned}/{len(status.profile.destinations)}" if status else "0/0"
    return {
        "namespace": key_of(manifest).namespace,
        "name": name_of(manifest),
        "account": _account(manifest),
        "trigger": profile.trigger if profile else "",
        "from": profile.cluster if profile else "",
        "provisioned": provisioned,
        "state": "Paused" if _paused(manifest) else state,
        "object": names.object_name(profile.object) if profile else "",
        "tier": profile.tier if profile else (manifest.get("spec") or {}).get("tier", 100),
        "message": _message(status) if status else "",
    }


def _describe(here: Installation, item: Item, description: Description) -> None:
    status, manifest = item
    description.begin(manifest["kind"], key_of(manifest).place)
    description.field("Account", _account(manifest))
    if _paused(manifest):
        description.field(
            "Paused", f"by {PROFILE_PAUSED}: nothing is applied, put back or withdrawn"
        )
    if status is None:
        description.field("State", f"not taken to any cluster yet; {here.worker.name} does it")
    else:
        _describe_status(here, status, description)


def _describe_status(here: Installation, status: ProfileStatus, description: Description) -> None:
    profile = status.profile
    now = here.records.clock.now()
    description.field("State", status.state)
    if profile.pinned:
        description.field("Rolled back", f"to revision {profile.number}, {_until_undone(profile)}")
    description.field("Trigger", profile.trigger)
    description.field("From", profile.cluster)
    description.field("Object", names.object_name(profile.object))
    description.field("Tier", str(profile.tier))
    description.field("Depends on", ", ".join(profile.rollout.after))
    description.field("Roll-out", profile_status.describe_rollout(here, status))
    description.field("Error", profile.error)
    description.table("Contents", (_content(content) for content in profile.contents))
    known = {outcome.cluster: outcome for outcome in status.outcomes}
    description.table(
        "Destinations",
        (
            (
                cluster,
                ended.feature,
                f"{ended.phase} ({ended.reason})" if ended.reason else ended.phase,
                (format_age(known[cluster].shown_at, now) if cluster in known else ""),
                ended.message + profile_status.describe_next_try(ended),
            )
            for cluster in (*profile.destinations, *profile.leaving)
            for ended in _features(known.get(cluster))
        ),
        nothing="no cluster is selected",
    )
    description.table(
        "Inventory",
        (
            (
                cluster,
                names.object_name(key),
                format_age(held.applied_at, now) if held.digest else "being applied",
                f"adopted from {held.adopted}" if held.adopted else describe_origin(held),
            )
            for cluster in (*profile.destinations, *profile.leaving)
            if (kept := here.records.inventories.get(cluster, profile.name))
            for key, held in kept.value.held.items()
        ),
    )


def _until_undone(profile: Profile) -> str:
    return f"whatever is declared, until `bellhop rollback {profile.name} --end`"


def _paused(manifest: Mapping[str, Any]) -> bool:
    return PROFILE_PAUSED in (manifest["metadata"].get("annotations") or {})


def _account(manifest: Mapping[str, Any]) -> str:
    """Return the account of a RoleRequest; other kinds have no such field."""
    spec = manifest.get("spec") or {}
    named = (spec.get(f"serviceAccount{part}") for part in ("Namespace", "Name"))
    return "/".join(filter(None, named))


def _features(outcome: DeploymentStatus | None) -> tuple[Ended, ...]:
    return profile_status.list_features(outcome) if outcome else (Ended("-", "Provisioning"),)


def _content(content: Content) -> tuple[str, str, str]:
    if content.chart:
        return content.ref, *describe_chart(content.chart)
    if content.kustomization:
        path = content.kustomization.path
        return content.ref, f"{content.entry} {path}".rstrip(), "built for each cluster"
    if content.template:
        return content.ref, content.entry, "rendered for each cluster"
    named = [names.object_name(ObjectKey.of(dict(each))) for each in content.manifests]
    return content.ref, content.entry, ", ".join(named) or "no object yet"


def _source(here: Installation, profile: Profile) -> str:
    """Return the name of the source in force in the cluster of a profile's event."""
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
                **_failure(each),
                **({"nextTryTime": each.retry_at} if each.retry_at else {}),
                "features": [_feature(ended) for ended in profile_status.list_features(each)],
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
        **_failure(ended),
        **({"nextTryTime": ended.retry_at} if ended.retry_at else {}),
    }


def _failure(of: DeploymentStatus | Ended) -> dict[str, str]:
    """Return the message of a deployment, by its name: that of a complete one is no failure."""
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
    messages = [f"{each.cluster}: {each.message}" for each in known if each.message]
    more = f" (and {format_count(len(messages) - 1, 'other')})" if len(messages) > 1 else ""
    return messages[0] + more if messages else ""


def _removal(status: ProfileStatus) -> str:
    messages = {each.cluster: each.message for each in status.outcomes}
    first, *others = sorted(status.profile.leaving, key=lambda each: not messages.get(each))
    why = f": {messages[first]}" if messages.get(first) else ""
    more = f" (and from {format_count(len(others), 'other cluster')})" if others else ""
    return f"it is still to be removed from '{first}'{why}{more}"


def _view(kind: str, columns: tuple[Column, ...]) -> View[Item]:
    return View(columns, partial(_select, kind), _row, _manifest, _describe)


VIEWS = {
    "clusterprofile": _view("ClusterProfile", COLUMNS),
    "profile": _view("Profile", NAMESPACED),
    "rolerequest": _view("RoleRequest", REQUESTS),
}
