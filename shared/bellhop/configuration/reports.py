"""Reports of one rule in one cluster: EventReport, HealthCheckReport, ClassifierReport."""

from __future__ import annotations

from typing import Any

from bellhop.api.names import asker
from bellhop.configuration.conditions import shorten
from bellhop.configuration.limits import MOST_BYTES, TRUNCATED
from bellhop.configuration.names import (
    CLUSTER_TYPE,
    cut_name,
    make_hash,
    make_labels,
    name_report,
    refer_to_object,
)
from bellhop.configuration.objects import (
    ClassifierReportSpec,
    ClassifierReportStatus,
    EventReportStatus,
    HealthCheckReportSpec,
    ReportStatus,
    ResourceHealth,
    UnmanagedLabel,
    Written,
    to_json,
)
from bellhop.core.gvk import GVK
from bellhop.diagnosis.declaration_status import summarize_classifier
from bellhop.diagnosis.event_reports import (
    join_failures,
    list_failed_profiles,
    make_event_report,
)
from bellhop.diagnosis.source_status import Report, find_phase, read_report
from bellhop.errors import MissingError
from bellhop.extras.health.state import MESSAGE, STATE, counting
from bellhop.installation import InstallationView
from bellhop.ports.kube import Manifest

API_VERSION = "lib.projectsveltos.io/v1beta1"
_SECRET = GVK("", "v1", "Secret")
_MOST_COLLECTED = MOST_BYTES * 2 // 3
"""Bytes of collected objects before they are encoded, which takes a third more."""


def make_report(here: InstallationView, source: str, cluster: str) -> Manifest | None:
    """Return the EventReport of a source in a cluster; None where it is not in force.

    CloudEvents are not in it, nor what a script made of objects among which a Secret may be.
    """
    catalog = here.catalogs.known()
    if asker(source) or source not in catalog.sources_in(cluster):
        return None
    declared = catalog.sources[source]
    found = read_report(here, cluster, source)
    collect = declared.collect_resources
    if declared.aggregation and _SECRET in declared.kinds:
        collect = False
    manifest = _fit(here, cluster, source, found, collect=collect)
    manifest["spec"].pop("cloudEvents", None)
    manifest["metadata"]["name"] = cut_name(manifest["metadata"]["name"])
    manifest["metadata"]["labels"] = make_labels(manifest["metadata"]["labels"])
    failures = [*found.messages, *list_failed_profiles(here, cluster, source)]
    status = EventReportStatus(
        phase=find_phase(here, cluster, source, found),
        failure_message=shorten(join_failures(failures)) if failures else "",
    )
    return {**manifest, "status": to_json(status)}


def _fit(
    here: InstallationView, cluster: str, source: str, found: Report, *, collect: bool
) -> Manifest:
    """Return a report with as many of the collected objects as it has room for."""
    total = len(found.matching)
    kept = found
    while True:
        manifest = make_event_report(here, cluster, source, kept, collect=collect)
        size, number = len(manifest["spec"].get("resources", "")) * 3 // 4, len(kept.matching)
        if number < total:
            note = f"{number} of {total}"
            manifest["metadata"]["annotations"] = {TRUNCATED: note}
        if size <= _MOST_COLLECTED or number <= 1:
            return manifest
        fits = min(number * _MOST_COLLECTED // size, number - 1)
        kept = Report(kept.matching[: max(fits, 1)], waits=kept.waits)


def make_health_report(here: InstallationView, check: str, cluster: str) -> Manifest | None:
    """Return the HealthCheckReport of a check in a cluster; None where there is no result.

    Only the unhealthy objects are in it: no others are stored.
    """
    catalog = here.catalogs.known()
    declared = catalog.health_checks.get(check)
    if declared is None or check not in catalog.looking_at(cluster):
        return None
    try:
        kept = here.records.selections.get(cluster, declared.source.name)
    except MissingError:
        return None
    if kept is None or not (kept.value.made or kept.value.error):
        return None
    unhealthy = counting(kept.value, declared.patience, here.records.clock.now())
    spec = HealthCheckReportSpec(
        **_name_cluster(cluster),
        health_check_name=check,
        resource_statuses=tuple(
            ResourceHealth(
                object_ref=refer_to_object(each.key.gvk, each.key.namespace, each.key.name),
                health_status=each.manifest[STATE],
                message=shorten(each.manifest.get(MESSAGE, "")),
            )
            for each in unhealthy
        ),
    )
    labels = _label(
        "projectsveltos.io/healthcheck-name",
        "healthcheckreport.projectsveltos.io",
        check,
        cluster,
    )
    return _make("HealthCheckReport", check, cluster, labels, spec, ReportStatus(phase="Processed"))


def make_classifier_report(
    here: InstallationView, classifier: str, cluster: str
) -> Manifest | None:
    """Return the ClassifierReport of a cluster; None if there is no such classifier."""
    catalog = here.catalogs.known()
    declared = catalog.classifiers.get(classifier)
    if declared is None or cluster not in catalog.clusters:
        return None
    results = here.records.classified.get(cluster).value
    found = summarize_classifier({cluster: results}, classifier)
    matches = bool(found.matching)
    spec = ClassifierReportSpec(**_name_cluster(cluster), classifier_name=classifier, match=matches)
    refused = {label: why for (_, label), why in found.lacks.items()}
    managed = tuple(each for each in declared.labels if each not in refused)
    status = ClassifierReportStatus(
        phase="WaitingForDelivery" if found.open else "Processed",
        deployment_status="Provisioning" if found.open else "Provisioned",
        hash=make_hash(declared.written["spec"]),
        managed_labels=managed if matches else (),
        unmanaged_labels=tuple(
            UnmanagedLabel(key=key, failure_message=shorten(why)) for key, why in refused.items()
        ),
    )
    labels = _label(
        "projectsveltos.io/classifier-name", "classifier.projectsveltos.io", classifier, cluster
    )
    return _make("ClassifierReport", classifier, cluster, labels, spec, status)


def _name_cluster(cluster: str) -> dict[str, Any]:
    namespace, _, name = cluster.partition("/")
    return {
        "cluster_namespace": namespace,
        "cluster_name": name,
        "cluster_type": CLUSTER_TYPE,
    }


def _label(rule_label: str, domain: str, rule: str, cluster: str) -> dict[str, str]:
    return make_labels(
        {
            rule_label: rule,
            f"{domain}/cluster-name": cluster.partition("/")[2],
            f"{domain}/cluster-type": CLUSTER_TYPE.lower(),
        }
    )


def _make(
    kind: str, rule: str, cluster: str, labels: dict[str, str], spec: Written, status: Written
) -> Manifest:
    metadata = {"namespace": cluster.partition("/")[0], "name": name_report(rule, cluster)}
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {**metadata, "labels": labels},
        "spec": to_json(spec),
        "status": to_json(status),
    }
