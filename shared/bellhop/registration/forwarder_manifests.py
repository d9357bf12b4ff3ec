"""How a cluster is made to ring: the webhook configuration and the forwarder's rights.

Both follow the kinds that sources in force name, and nothing wider: never `*`, with which leases,
events and tokens would ring as well.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bellhop.core.gvk import Resource
from bellhop.core.identity import REASON, REASONS

NAME = "bellhop-forwarder"
NAMESPACE = "bellhop-system"
WEBHOOK = "ring.bellhop.dev"
HOLDING = "drift.bellhop.dev"
CHARTS = "charts.drift.bellhop.dev"

_DEPLOYED = {"key": REASON, "operator": "In", "values": list(REASONS)}
_BY_HELM = {"key": "app.kubernetes.io/managed-by", "operator": "In", "values": ["Helm"]}
"""Helm sets this label on each object of a release, whatever its chart says."""

MESSAGING_NAME = "sveltos-nats"
MESSAGING_NAMESPACE = "projectsveltos"
"""The Secret that says where a cluster's NATS server is, where Sveltos' agent looks for it."""

_TIMEOUT = 2
_RINGING = frozenset({"status", "finalize"})
"""Subresources that write the object itself; a Namespace ends through its `finalize`."""

_WORD = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SERVICE_PATH = re.compile(rf"(?:/{_WORD}(?:\.{_WORD})*)+")


def webhook_configuration(
    resources: Sequence[Resource],
    forwarder: Mapping[str, str],
    held: Sequence[Resource] = (),
    charts: Sequence[Resource] = (),
) -> dict[str, Any]:
    """Return the ValidatingWebhookConfiguration that rings the forwarder.

    `forwarder` holds `url` (or nothing, for the Service in the cluster), `ca` (PEM, or nothing for
    public ones) and `path` (unguessable: an API server shows no other credential). It may as well
    be ingest itself. A write never fails or waits for
    us: failurePolicy Ignore, a short timeout, no side effects on a dry run. Requests for
    objects in the forwarder's own namespace do not ring. A write rings once for each version of
    its kind that counts, in that version. Of the resources that are `held` against drift only the
    objects ring that have our label, or had it before the write; of those of `charts` the objects
    that have Helm's.
    """
    client: dict[str, Any] = {}
    if forwarder["ca"]:
        client["caBundle"] = base64.b64encode(forwarder["ca"].encode()).decode()
    if forwarder.get("url"):
        client["url"] = forwarder["url"].rstrip("/") + forwarder["path"]
    else:
        client["service"] = {
            "namespace": NAMESPACE,
            "name": NAME,
            "path": forwarder["path"],
            "port": 443,
        }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME, "labels": _LABELS},
        "webhooks": [
            _webhook(f"{number}.{WEBHOOK}" if number else WEBHOOK, client, once)
            for number, once in enumerate(_one_version_each(resources))
        ]
        + [
            _holding(f"{number}.{name}" if number else name, client, once, label)
            for name, label, some in ((HOLDING, _DEPLOYED, held), (CHARTS, _BY_HELM, charts))
            for number, once in enumerate(_one_version_each(some))
        ],
    }


def is_direct(forwarder: Mapping[str, str]) -> bool:
    """Say if the API server calls ingest itself, without a forwarder."""
    return bool(forwarder.get("direct"))


def is_audited(forwarder: Mapping[str, str]) -> bool:
    """Say if the API server sends its audit log to ingest: nothing in the cluster says so."""
    return bool(forwarder.get("audit"))


def direct(forwarder: Mapping[str, str], token: str) -> dict[str, str]:
    """Return where an API server calls ingest itself, which it shows a token in the path alone."""
    return {**forwarder, "path": f"/{token}"}


def is_callable(forwarder: Mapping[str, str]) -> bool:
    """Say if API servers take the forwarder's path.

    Below a URL they take any; of a Service each segment has to be a lower-case RFC 1123 name.
    """
    return bool(forwarder.get("url")) or bool(_SERVICE_PATH.fullmatch(forwarder["path"]))


def concealed(text: str, forwarder: Mapping[str, str]) -> str:
    """Take the forwarder's unguessable paths out of a text, as a refusal may quote a URL."""
    for key in ("path", "next-path"):
        if forwarder.get(key):
            text = text.replace(forwarder[key], "/…")
    return text


def forwarder_role(resources: Sequence[Resource]) -> dict[str, Any]:
    """Return the ClusterRole of the forwarder: to read back the objects that may ring."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": NAME, "labels": _LABELS},
        "rules": [
            {"apiGroups": [group], "resources": plurals, "verbs": ["get"]}
            for group, plurals in _by_group(resources).items()
        ],
    }


def messaging_rights() -> list[dict[str, Any]]:
    """Return what lets the forwarder read where its cluster's NATS server is: that Secret alone."""
    place = {"name": NAME, "namespace": MESSAGING_NAMESPACE, "labels": _LABELS}
    return _reading(place, MESSAGING_NAME)


def forwarder_rights() -> list[dict[str, Any]]:
    """Return what the forwarder needs once: its namespace, its account, and its own Secret."""
    own: dict[str, Any] = {"name": NAME, "namespace": NAMESPACE, "labels": _LABELS}
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            # From 1.21 on every namespace has its name as a label, which our webhooks look at.
            "metadata": {"name": NAMESPACE, "labels": {**_LABELS, _NAMED: NAMESPACE}},
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": own},
        *_reading(own, NAME),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME, "labels": _LABELS},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": [_ACCOUNT],
        },
    ]


def forwarder_secret(entries: Mapping[str, str]) -> dict[str, Any]:
    """Return the Secret that tells the forwarder whom to serve and whom to send to."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in entries.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": _LABELS},
        "type": "Opaque",
        "data": data,
    }


_LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "bellhop"}
_NAMED = "kubernetes.io/metadata.name"
_RBAC = "rbac.authorization.k8s.io"
_ACCOUNT = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}


def _reading(place: Mapping[str, Any], secret: str) -> list[dict[str, Any]]:
    """Return what lets the forwarder's account read one Secret of a namespace."""
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret]}
    return [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": place,
            "rules": [{**rule, "verbs": ["get"]}],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": place,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": NAME},
            "subjects": [_ACCOUNT],
        },
    ]


def _webhook(name: str, client: Mapping[str, Any], resources: Sequence[Resource]) -> dict[str, Any]:
    own = {"key": _NAMED, "operator": "NotIn", "values": [NAMESPACE]}
    return {
        "name": name,
        "clientConfig": client,
        "rules": _rules(resources),
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": _TIMEOUT,
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchExpressions": [own]},
    }


def _holding(
    name: str, client: Mapping[str, Any], resources: Sequence[Resource], label: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the webhook of what profiles hold, which has a label.

    A status is no drift. What has replicas rings by it all the same: who scales it writes them by a
    subresource that tells neither labels nor the kind, and the status follows.
    """
    ringing = [
        replace(each, subresources=each.subresources if "scale" in each.subresources else ())
        for each in resources
    ]
    selector = {"matchExpressions": [label]}
    return {**_webhook(name, client, ringing), "objectSelector": selector}


def _one_version_each(resources: Sequence[Resource]) -> list[list[Resource]]:
    """Part resources so that no part has one in two versions.

    An API server calls a webhook once for a write, in one of the versions that its rules name.
    It also takes resources of two groups for one (an Ingress was in `extensions`), and does not
    say which: so the plural alone decides.
    """
    parts: list[list[Resource]] = []
    seen: Counter[str] = Counter()
    for resource in sorted(resources, key=lambda each: each.gvk):
        part = seen[resource.plural]
        seen[resource.plural] += 1
        if part == len(parts):
            parts.append([])
        parts[part].append(resource)
    return parts


def _rules(resources: Sequence[Resource]) -> list[dict[str, Any]]:
    return [
        {
            "apiGroups": [resource.gvk.group],
            "apiVersions": [resource.gvk.version],
            "resources": [
                resource.plural,
                *(f"{resource.plural}/{sub}" for sub in resource.subresources if sub in _RINGING),
            ],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "scope": "Namespaced" if resource.namespaced else "Cluster",
        }
        for resource in resources
    ]


def _by_group(resources: Sequence[Resource]) -> dict[str, list[str]]:
    grouped: dict[str, set[str]] = {}
    for resource in resources:
        grouped.setdefault(resource.gvk.group, set()).add(resource.plural)
    return {group: sorted(plurals) for group, plurals in sorted(grouped.items())}
