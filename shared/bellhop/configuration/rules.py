"""Status of EventTriggers, sets, classifiers and ClusterHealthChecks."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from bellhop.configuration.conditions import (
    State,
    progress,
    retry,
    shorten,
    stall,
    succeed,
    to_seconds,
    wait,
)
from bellhop.configuration.names import make_hash, refer_to_cluster
from bellhop.configuration.objects import (
    ClassifiedCluster,
    ClassifierStatus,
    ClusterCondition,
    ClusterHealthCheckStatus,
    ClusterInfo,
    ClusterSetStatus,
    EventTriggerStatus,
    HealthCondition,
    NotificationSummary,
    UnmanagedLabel,
)
from bellhop.configuration.profiles import describe_state, with_outcomes
from bellhop.diagnosis.declaration_status import read_classifications, summarize_classifier
from bellhop.extras.health.records import Condition, Liveness
from bellhop.extras.health.state import owed
from bellhop.installation import InstallationView

if TYPE_CHECKING:
    from bellhop.api.health_check import ClusterHealthCheck
    from bellhop.api.trigger import EventTrigger

_MOST_PROFILES = 1000
"""Profiles of one trigger whose results count for its conditions."""


# Triggers ----------------------------------------------------------------------------------------


def make_trigger_status(
    here: InstallationView, name: str
) -> tuple[EventTriggerStatus, State] | None:
    """Return the status of an EventTrigger and its state; None if there is no such trigger."""
    catalog = here.catalogs.known()
    trigger = catalog.triggers.get(name)
    if trigger is None:
        return None
    matching = [each for each in catalog.clusters if catalog.watches(trigger, each)]
    infos = tuple(_describe_source(here, trigger, each) for each in matching)
    status = EventTriggerStatus(
        matching_clusters=tuple(map(refer_to_cluster, matching)), cluster_info=infos
    )
    return status, _describe_trigger(here, trigger, infos)


def _describe_source(here: InstallationView, trigger: EventTrigger, cluster: str) -> ClusterInfo:
    """Return whether the source that a trigger names is in force in a cluster."""
    catalog = here.catalogs.known()
    ref = refer_to_cluster(cluster)
    problem = catalog.problems_in(cluster).get(trigger.name)
    if problem:
        return ClusterInfo(
            cluster=ref, hash=make_hash(), status="Failed", failure_message=shorten(str(problem))
        )
    source = catalog.source_of(trigger, cluster)
    if source is None:
        return ClusterInfo(cluster=ref, hash=make_hash(), status="Provisioning")
    revision = make_hash(catalog.digest(source.name))
    health = here.records.health.head(cluster)
    if health.away:
        said = shorten(f"the cluster does not answer: {health.message}")
        return ClusterInfo(cluster=ref, hash=revision, status="Failed", failure_message=said)
    return ClusterInfo(cluster=ref, hash=revision, status="Provisioned")


def _describe_trigger(
    here: InstallationView, trigger: EventTrigger, infos: tuple[ClusterInfo, ...]
) -> State:
    """Return the state of a trigger: its source, and the worst of its profiles, count."""
    catalog, source = here.catalogs.known(), trigger.event_source_name
    if "{{" not in source and source not in catalog.sources:
        return wait("SourceMissing", f"there is no EventSource '{source}', which it names")
    if failing := [each for each in infos if each.status == "Failed"]:
        first = failing[0]
        return retry("ClusterFailed", f"{first.cluster.name}: {first.failure_message}")
    heads = islice(here.records.profiles.heads(trigger.name), _MOST_PROFILES)
    states = [describe_state(with_outcomes(here, each).status) for each in heads]
    number = len(states)
    if worst := max(states, key=_badness, default=None):
        alike = sum(_badness(each) == _badness(worst) for each in states)
        said = f"{alike} of {number} profiles: {worst.message}"
        if worst.ready != "True":
            return worst._replace(message=said)
    since = max((each.since for each in states if each.since), default=None)
    return succeed("Provisioned", f"{number} profile{'' if number == 1 else 's'}", since)


def _badness(state: State) -> int:
    if state.ready == "True":
        return 0
    return 3 if state.stalled else 2 if state.ready == "False" else 1


# Sets and classifiers ----------------------------------------------------------------------------


def make_set_status(here: InstallationView, where: str) -> tuple[ClusterSetStatus, State] | None:
    """Return the status of a set, by its place, and its state; None if there is no such set."""
    catalog = here.catalogs.known()
    if where not in catalog.sets:
        return None
    matching = catalog.pool(where)
    selected = [each for each in matching if catalog.has(where, each)]
    status = ClusterSetStatus(
        matching_cluster_refs=tuple(map(refer_to_cluster, matching)),
        selected_cluster_refs=tuple(map(refer_to_cluster, selected)),
    )
    failing = catalog.choices[where].failing if where in catalog.choices else ()
    if failing:
        said = f"{', '.join(failing)} do not answer, and no other cluster can take their place"
        return status, retry("ClustersFailing", said)
    return status, succeed("Selected", f"{len(selected)} of {len(matching)} clusters are selected")


def make_classifier_status(
    here: InstallationView, name: str
) -> tuple[ClassifierStatus, State] | None:
    """Return the status of a Classifier and its state; None if there is no such classifier."""
    catalog = here.catalogs.known()
    declared = catalog.classifiers.get(name)
    if declared is None:
        return None
    found = summarize_classifier(read_classifications(here), name)
    revision = make_hash(declared.written["spec"])
    infos = tuple(
        ClusterInfo(
            cluster=refer_to_cluster(each),
            hash=revision,
            status="Provisioning" if each in found.open else "Provisioned",
        )
        for each in catalog.clusters
    )
    matching = tuple(
        ClassifiedCluster(
            cluster_ref=refer_to_cluster(each),
            managed_labels=tuple(x for x in declared.labels if (each, x) not in found.lacks),
            un_managed_labels=tuple(
                UnmanagedLabel(key=x, failure_message=shorten(found.lacks[each, x]))
                for x in declared.labels
                if (each, x) in found.lacks
            ),
        )
        for each in found.matching
    )
    status = ClassifierStatus(cluster_info=infos, matching_clusters=matching)
    if found.lacks:
        (cluster, label), why = next(iter(found.lacks.items()))
        return status, stall("LabelsRefused", f"{cluster} does not get '{label}': {why}")
    if found.open:
        return status, progress("Evaluating", f"{len(found.open)} clusters wait for a resync")
    return status, succeed("Evaluated", f"{len(matching)} of {len(infos)} clusters match")


# Health ------------------------------------------------------------------------------------------


def make_health_status(
    here: InstallationView, name: str
) -> tuple[ClusterHealthCheckStatus, State] | None:
    """Return the status of a ClusterHealthCheck and its state; None if there is no such check."""
    catalog = here.catalogs.known()
    check = catalog.checks.get(name)
    if check is None:
        return None
    clusters = [
        each.key
        for each in catalog.clusters.values()
        if check.cluster_selector.matches(each.labels)
    ]
    known = {}
    for cluster in clusters:
        if stored := here.records.conditions.get(cluster, name):
            known[cluster] = stored.value
    status = ClusterHealthCheckStatus(
        matching_clusters=tuple(map(refer_to_cluster, clusters)),
        cluster_condition=tuple(
            _describe_health(here, check, cluster, each) for cluster, each in known.items()
        ),
    )
    unhealthy = sum(not each.healthy for each in known.values())
    if len(known) < len(clusters):
        return status, progress("Evaluating", f"{len(clusters) - len(known)} clusters are pending")
    said = f"{unhealthy} of {len(clusters)} clusters are unhealthy"
    return status, succeed("Evaluated", said)


def _describe_health(
    here: InstallationView, check: ClusterHealthCheck, cluster: str, found: Condition
) -> ClusterCondition:
    """Return the condition of a cluster; a deferred notification has not failed."""
    now = here.records.clock.now()
    whole = Liveness("", found.healthy, found.message)
    parts = {each.name: each for each in found.checks}
    late = {x.name: x.error for at, x in owed(found, check.policies) if x.error or at <= now}
    return ClusterCondition(
        cluster_info=ClusterInfo(
            cluster=refer_to_cluster(cluster),
            hash=make_hash(check.manifest()["spec"]),
            status="Provisioned",
        ),
        conditions=tuple(
            _describe_check(each.name, each.type, parts.get(each.name, whole), found)
            for each in check.spec.liveness_checks
        ),
        notification_summaries=tuple(
            NotificationSummary(
                name=each.name,
                status="FailedToDeliver" if each.name in late else "Delivered",
                failure_message=shorten(late.get(each.name, "")),
            )
            for each in check.notifications
        ),
    )


def _describe_check(name: str, kind: str, result: Liveness, found: Condition) -> HealthCondition:
    truth = "Unknown" if result.healthy is None else str(result.healthy)
    return HealthCondition(
        name=name,
        type=f"{kind}:{name}",
        status=truth,
        last_transition_time=to_seconds(found.since),
        message="" if result.healthy else shorten(result.message),
    )
