"""EventTriggers and EventBasedAddOns: the clusters where they are in force, and their profiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from bellhop.api.kinds import EventTrigger
from bellhop.cli.output import Column, Row, format_count
from bellhop.cli.printer import Description
from bellhop.cli.views.view import Query, View, name_of, select_applied
from bellhop.core.allow import read_allow
from bellhop.core.identity import GENERATED_NAMESPACE
from bellhop.diagnosis import catalog_hints, names, profile_status
from bellhop.diagnosis.profile_manifests import cluster_ref
from bellhop.diagnosis.profile_status import ProfileStatus
from bellhop.diagnosis.releases import describe_chart
from bellhop.diagnosis.source_status import read_report
from bellhop.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.rendering.cloud_event_actions import CREATE
from bellhop.state.deployment import DeploymentStatus

COLUMNS = (
    Column("NAME", "name"),
    Column("EVENTSOURCE", "source"),
    Column("CLUSTERS", "clusters"),
    Column("PROVISIONED", "provisioned"),
    Column("FAILING", "failing"),
    Column("ONE FOR EVENT", "oneForEvent", wide=True, shown=lambda value: str(value).lower()),
    Column("PAUSED", "paused", wide=True, shown=lambda value: str(value).lower()),
    Column("KIND", "kind", wide=True),
    Column("SOURCE CLUSTERS", "sourceClusters", wide=True),
    Column("DESTINATION CLUSTERS", "destinationClusters", wide=True),
)
_FAILING = ("Failed", "FailedNonRetriable")


class Statuses:
    """The deployment statuses of all profiles, read once, by the first trigger that needs them."""

    def __init__(self, here: Installation) -> None:
        self._here = here

    @cached_property
    def _all(self) -> Mapping[profile_status.ProfileKey, Sequence[DeploymentStatus]]:
        return profile_status.read_outcomes(self._here)

    def read(self, trigger: EventTrigger) -> list[ProfileStatus]:
        return list(profile_status.read_statuses(self._here, trigger.name, self._all))


Item = tuple[EventTrigger, Statuses, Mapping[str, Any]]


def _select(here: Installation, query: Query) -> Iterator[Item]:
    catalog, statuses = here.catalogs.current(), Statuses(here)
    for manifest in select_applied(here, query, "EventTrigger", "EventBasedAddOn"):
        yield catalog.triggers[name_of(manifest)], statuses, manifest


def _manifest(here: Installation, item: Item) -> Manifest:
    trigger, found, manifest = item
    statuses = found.read(trigger)
    status = {
        "matchingClusters": [cluster_ref(cluster) for cluster, _ in _in_force(here, trigger)],
        "paused": trigger.paused,
        **_counts(statuses),
        "clusterProfiles": [{"name": each.profile.shown, "state": each.state} for each in statuses],
    }
    return {**manifest, "status": status}


def _counts(statuses: Sequence[ProfileStatus]) -> dict[str, int]:
    return {
        "profiles": len(statuses),
        "provisioned": sum(each.state == "Provisioned" for each in statuses),
        "failing": sum(each.state in _FAILING for each in statuses),
    }


def _row(here: Installation, item: Item) -> Row:
    trigger, statuses, _ = item
    counts = _counts(statuses.read(trigger))
    return {
        "name": trigger.name,
        "source": trigger.event_source_name,
        "oneForEvent": trigger.one_for_event,
        "clusters": len(_in_force(here, trigger)),
        "provisioned": f"{counts['provisioned']}/{counts['profiles']}",
        "failing": counts["failing"],
        "kind": trigger.kind,
        "sourceClusters": _sources(trigger) or "<none>",
        "destinationClusters": _destination(trigger),
        "paused": trigger.paused,
    }


def _describe(here: Installation, item: Item, description: Description) -> None:
    trigger, statuses, _ = item
    description.begin(trigger.kind, trigger.name)
    if trigger.paused:
        description.field("Paused", f"by {trigger.pauses}: no event makes or withdraws anything")
    description.field("One for event", str(trigger.one_for_event).lower())
    description.field("Source clusters", _sources(trigger) or "none: the selector is empty")
    description.field("Destinations", _destination(trigger))
    description.field("Tier", str(trigger.spec.tier))
    description.field(
        "May deploy",
        "; ".join(map(str, read_allow(trigger.allow).entries)) if trigger.allow else "everything",
    )
    if trigger.cloud_event_action != CREATE:
        description.field("CloudEvents", trigger.cloud_event_action)
    description.field(
        "When unmatched", "leaves add-ons" if trigger.spec.leaves_policies else "withdraws"
    )
    description.field(
        "EventSource", f"{trigger.event_source_name} ({_source_state(here, trigger)})"
    )
    description.table("In force in", _in_force(here, trigger), nothing="no cluster")
    description.table("Policy refs", _refs(here, trigger))
    description.table("Helm charts", (describe_chart(each.chart) for each in trigger.charts))
    description.table("Generates", _generates(trigger))
    description.table("Templates read", _reads(trigger))
    hints = catalog_hints.list_trigger_hints(here.catalogs.current(), trigger, here.catalogs.holder)
    description.section("Hints", hints)
    description.section("Profiles", map(_profile, statuses.read(trigger)))


def _sources(trigger: EventTrigger) -> str:
    selectors = [str(trigger.source_selector)] if not trigger.source_selector.empty else []
    return ", and ".join([*selectors, *(f"ClusterSet {place}" for place in trigger.cluster_sets)])


def _source_state(here: Installation, trigger: EventTrigger) -> str:
    if "{{" in trigger.event_source_name:
        return "a template, rendered for each cluster"
    known = trigger.event_source_name in here.catalogs.current().sources
    return "found" if known else "there is no EventSource of that name"


def _in_force(here: Installation, trigger: EventTrigger) -> list[tuple[str, str]]:
    catalog = here.catalogs.current()
    found = []
    for cluster in catalog.clusters:
        source = catalog.source_of(trigger, cluster)
        if source is not None:
            matching = read_report(here, cluster, source.name).matching
            found.append((cluster, format_count(len(matching), "match", "matches")))
    return found


def _refs(here: Installation, trigger: EventTrigger) -> Iterator[Sequence[str]]:
    for ref in trigger.policy_refs:
        place = f"{ref.namespace or '<namespace of the cluster>'}/{ref.name}"
        if ref.files:
            state = "read when it is deployed"
        elif "{{" in place or not ref.namespace:
            state = "named for each event"
        elif ref.namespace == GENERATED_NAMESPACE and here.records.titles.get(ref.kind, ref.name):
            state = "generated"
        elif not here.records.manifests.has(ref.kind, ref.namespace, ref.name):
            state = "optional, not there" if ref.optional else "not there: apply it"
        else:
            state = "found"
        yield ref.kind, place, state


def _generates(trigger: EventTrigger) -> Iterator[Sequence[str]]:
    for each in trigger.generators:
        ref = each.ref
        origin = f"{ref.namespace or '<namespace of the cluster>'}/{ref.name}"
        often = ", for each object" if each.for_each else ""
        yield ref.kind, f"{GENERATED_NAMESPACE}/{each.name_format}", f"of {origin}{often}"


def _reads(trigger: EventTrigger) -> Iterator[Sequence[str]]:
    for each in trigger.readings:
        place = f"{each.namespace or '<namespace of the cluster>'}/{each.name}"
        place = each.name if each.address else place
        yield each.identifier, each.kind, place, "optional" if each.optional else ""


def _profile(status: ProfileStatus) -> str:
    profile = status.profile
    where = f"for {names.object_name(profile.object)}" if profile.object else "for all matches"
    lines = [f"{profile.name}  {status.state}  {where} in {profile.cluster}"]
    if profile.error:
        lines.append(f"  not renewed: {profile.error}")
    known = {outcome.cluster: outcome for outcome in status.outcomes}
    for cluster in profile.destinations:
        outcome = known.get(cluster)
        phase = outcome.phase if outcome else "Provisioning"
        message = f": {outcome.message}" if outcome and outcome.message else ""
        lines.append(f"  {cluster}  {phase}{message}")
    lines += [f"  {cluster}  Removing" for cluster in profile.leaving]
    return "\n".join(lines)


def _destination(trigger: EventTrigger) -> str:
    if trigger.stays_home:
        return "the cluster of the event"
    named, selector = trigger.destination_cluster, trigger.destination_selector
    parts = [f"cluster {named.namespace}/{named.name}".replace(" /", " ")] if named else []
    return ", and ".join(parts + ([str(selector)] if selector else []))


VIEWS = {"eventtrigger": View(COLUMNS, _select, _row, _manifest, _describe)}
