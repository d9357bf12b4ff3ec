"""EventTriggers, and EventBasedAddOns: where they are in force, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bellhop.api.kinds import EventTrigger
from bellhop.cli.describe import Story
from bellhop.cli.output import Column, Row, count
from bellhop.cli.views.view import Query, View, labels_of, name_of
from bellhop.core.allow import read_allow
from bellhop.core.generated_names import GENERATED_NAMESPACE
from bellhop.diagnosis import catalog_hints, overview
from bellhop.diagnosis.overview import ProfileStatus
from bellhop.diagnosis.profile_manifests import cluster_ref
from bellhop.diagnosis.releases import charted
from bellhop.diagnosis.reports import report
from bellhop.installation.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.rendering.cloud_event_actions import CREATE
from bellhop.state.record import DeploymentStatus

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


def manifests(here: Installation, query: Query) -> Iterator[Manifest]:
    """Yield EventTriggers and EventBasedAddOns as they were written, with their status."""
    known: dict[overview.Who, list[DeploymentStatus]] | None = None
    for manifest in _written(here, query):
        known = overview.outcomes(here) if known is None else known
        trigger = here.catalogs.current().triggers[name_of(manifest)]
        yield {**manifest, "status": _status(here, trigger, known)}


def _status(
    here: Installation,
    trigger: EventTrigger,
    known: Mapping[overview.Who, Sequence[DeploymentStatus]],
) -> dict[str, Any]:
    """Return where a trigger is in force, and what became of its profiles."""
    statuses = list(overview.statuses(here, trigger.name, known))
    return {
        "matchingClusters": [cluster_ref(cluster) for cluster, _ in _in_force(here, trigger)],
        "paused": trigger.paused,
        **_counts(statuses),
        "clusterProfiles": [{"name": each.profile.shown, "state": each.state} for each in statuses],
    }


def _counts(statuses: Sequence[ProfileStatus]) -> dict[str, int]:
    return {
        "profiles": len(statuses),
        "provisioned": sum(each.state == "Provisioned" for each in statuses),
        "failing": sum(each.state in _FAILING for each in statuses),
    }


def _written(here: Installation, query: Query) -> Iterator[Manifest]:
    for kind in ("EventTrigger", "EventBasedAddOn"):
        for manifest in here.records.manifests.of(kind):
            if query.takes("", name_of(manifest), labels_of(manifest)):
                yield manifest


def rows(here: Installation, query: Query) -> Iterator[Row]:
    """Yield one row for each trigger."""
    known = overview.outcomes(here)
    for manifest in _written(here, query):
        trigger = here.catalogs.current().triggers[name_of(manifest)]
        counts = _counts(list(overview.statuses(here, trigger.name, known)))
        yield {
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


def describe(here: Installation, query: Query, story: Story) -> int:
    """Tell of each trigger where it is in force, what it made, and how that went."""
    told = 0
    for manifest in _written(here, query):
        told += 1
        _tell(here, here.catalogs.current().triggers[name_of(manifest)], story)
    return told


def _tell(here: Installation, trigger: EventTrigger, story: Story) -> None:
    story.begin(trigger.kind, trigger.name)
    if trigger.paused:
        story.fact("Paused", f"by {trigger.pauses}: no event makes or withdraws anything")
    story.fact("One for event", str(trigger.one_for_event).lower())
    story.fact("Source clusters", _sources(trigger) or "none: the selector is empty")
    story.fact("Destinations", _destination(trigger))
    story.fact("Tier", str(trigger.tier))
    story.fact(
        "May deploy",
        "; ".join(map(str, read_allow(trigger.allow).entries)) if trigger.allow else "everything",
    )
    if trigger.cloud_event_action != CREATE:
        story.fact("CloudEvents", trigger.cloud_event_action)
    story.fact("When unmatched", "leaves add-ons" if trigger.leaves_policies else "withdraws")
    story.fact("EventSource", f"{trigger.event_source_name} ({_found(here, trigger)})")
    story.grid("In force in", _in_force(here, trigger), nothing="no cluster")
    story.grid("Policy refs", _refs(here, trigger))
    story.grid("Helm charts", (charted(each.chart) for each in trigger.charts))
    story.grid("Generates", _generates(trigger))
    story.grid("Templates read", _reads(trigger))
    hints = catalog_hints.of_trigger(here.catalogs.current(), trigger, here.catalogs.holder)
    story.section("Hints", hints)
    statuses = list(overview.statuses(here, trigger.name))
    story.section("Profiles", (_profile(each) for each in statuses))


def _sources(trigger: EventTrigger) -> str:
    told = [str(trigger.source_selector)] if not trigger.source_selector.empty else []
    return ", and ".join([*told, *(f"ClusterSet {place}" for place in trigger.cluster_sets)])


def _found(here: Installation, trigger: EventTrigger) -> str:
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
            matching = report(here, cluster, source.name).matching
            found.append((cluster, count(len(matching), "match", "matches")))
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
    where = f"for {overview.object_name(profile.object)}" if profile.object else "for all matches"
    lines = [f"{profile.name}  {status.state}  {where} in {profile.cluster}"]
    if profile.error:
        lines.append(f"  not renewed: {profile.error}")
    known = {outcome.cluster: outcome for outcome in status.outcomes}
    for cluster in profile.destinations:
        outcome = known.get(cluster)
        phase = outcome.phase if outcome else "Provisioning"
        said = f": {outcome.message}" if outcome and outcome.message else ""
        lines.append(f"  {cluster}  {phase}{said}")
    lines += [f"  {cluster}  Removing" for cluster in profile.leaving]
    return "\n".join(lines)


def _destination(trigger: EventTrigger) -> str:
    if trigger.stays_home:
        return "the cluster of the event"
    named, selector = trigger.destination_cluster, trigger.destination_selector
    told = [f"cluster {named.namespace}/{named.name}".replace(" /", " ")] if named else []
    return ", and ".join(told + ([str(selector)] if selector else []))


VIEWS = {"eventtrigger": View(COLUMNS, rows, manifests, describe)}
