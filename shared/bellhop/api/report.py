"""EventReport: what of a cluster matches an EventSource now, in the shape users know."""

import base64
import json
from typing import Any

from pydantic import Field

from bellhop.api.manifest import Declaration
from bellhop.core.gvk import CLOUD_EVENT, GVK

API_VERSION = "lib.projectsveltos.io/v1beta1"
CLUSTER_NAME_LABEL = "eventreport.projectsveltos.io/cluster-name"
CLUSTER_TYPE_LABEL = "eventreport.projectsveltos.io/cluster-type"
SOURCE_LABEL = "projectsveltos.io/eventsource-name"


class EventReport(Declaration):
    """A view over the matches; Bellhop writes it and users read it."""

    spec: dict[str, Any] = Field(default_factory=dict)


def event_report(
    cluster_namespace: str,
    cluster_name: str,
    source_name: str,
    resources: list[dict[str, Any]],
    *,
    collect: bool,
) -> dict[str, Any]:
    """Make the manifest of a report from the objects that match, in their order.

    CloudEvents are reported whole in any case, and are none of its resources.
    """
    cloud_events = [each["event"] for each in resources if "event" in each and _is_event(each)]
    resources = [each for each in resources if not _is_event(each)]
    spec: dict[str, Any] = {
        "clusterName": cluster_name,
        "clusterNamespace": cluster_namespace,
        "clusterType": "Sveltos",
        "eventSourceName": source_name,
        "matchingResources": [_reference(resource) for resource in resources],
    }
    if collect and resources:
        joined = "".join(f"{_compact(resource)}\n---" for resource in resources)
        spec["resources"] = base64.b64encode(joined.encode()).decode()
    if cloud_events:
        spec["cloudEvents"] = [
            base64.b64encode(_compact(each).encode()).decode() for each in cloud_events
        ]
    return {
        "apiVersion": API_VERSION,
        "kind": "EventReport",
        "metadata": {
            "name": f"sveltos--{source_name}--{cluster_name}",
            "namespace": cluster_namespace,
            "labels": {
                CLUSTER_NAME_LABEL: cluster_name,
                CLUSTER_TYPE_LABEL: "sveltos",
                SOURCE_LABEL: source_name,
            },
        },
        "spec": spec,
    }


def _is_event(resource: dict[str, Any]) -> bool:
    return GVK.of(resource) == CLOUD_EVENT


def _compact(resource: dict[str, Any]) -> str:
    return json.dumps(resource, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _reference(resource: dict[str, Any]) -> dict[str, str]:
    metadata = resource.get("metadata") or {}
    reference = {
        "apiVersion": str(resource.get("apiVersion", "")),
        "kind": str(resource.get("kind", "")),
    }
    if metadata.get("namespace"):
        reference["namespace"] = str(metadata["namespace"])
    reference["name"] = str(metadata.get("name", ""))
    return reference
