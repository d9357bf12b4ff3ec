"""The webhook configuration of a cluster, and the forwarder's roles.

Both have only the kinds that sources in force name: never `*`, which would send leases, events and
tokens as well.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bellhop.core.gvk import Resource
from bellhop.core.identity import REASON, REASONS

NAME = "bellhop-forwarder"
NAMESPACE = "bellhop-system"
WEBHOOK = "ring.bellhop.dev"
HOLDING = "drift.bellhop.dev"
CHARTS = "charts.drift.bellhop.dev"
CONFIGURATION = "configuration.bellhop.dev"
HOLDERS = "holders.configuration.bellhop.dev"

NAMES = "/names"
"""Ends the path to which the API server sends objects of which the forwarder reads nothing."""

_DEPLOYED = {"key": REASON, "operator": "In", "values": list(REASONS)}
_BY_HELM = {"key": "app.kubernetes.io/managed-by", "operator": "In", "values": ["Helm"]}
"""Helm sets this label on each object of a release, whatever its chart says."""

MESSAGING_NAME = "sveltos-nats"
MESSAGING_NAMESPACE = "projectsveltos"
"""The Secret that says where a cluster's NATS server is, where Sveltos' agent looks for it."""

_TIMEOUT = 2
_WRITTEN = frozenset({"status", "finalize"})
"""Subresources that write the object itself; a Namespace ends through its `finalize`."""

_WORD = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SERVICE_PATH = re.compile(rf"(?:/{_WORD}(?:\.{_WORD})*)+")


def webhook_configuration(
    resources: Sequence[Resource],
    forwarder: Mapping[str, str],
    held: Sequence[Resource] = (),
    charts: Sequence[Resource] = (),
    configured: Sequence[Resource] = (),
    namespaces: Collection[str] | None = None,
) -> dict[str, Any]:
    """Return the ValidatingWebhookConfiguration that calls the forwarder.

    `forwarder` has `url` (or nothing, for the Service in the cluster), `ca` (PEM, or nothing for
    public ones) and `path` (unguessable: an API server shows no other credential). It may be ingest
    itself. A write never fails or waits because of it: failurePolicy Ignore, a short timeout, no
    side effects on a dry run. Objects in the forwarder's own namespace send nothing. A write sends
    one request for each version of its kind that sources name, in that version. Of the resources
    `held` against drift only the objects with our label, now or before the write, send requests; of
    those of `charts` those with Helm's. Of the `configured` the forwarder sends only names, and of
    the ConfigMaps and Secrets among them those in `namespaces`, if these are given.
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
            for number, once in enumerate(_split_versions(resources))
        ]
        + [
            _make_drift_webhook(f"{number}.{name}" if number else name, client, once, label)
            for name, label, some in ((HOLDING, _DEPLOYED, held), (CHARTS, _BY_HELM, charts))
            for number, once in enumerate(_split_versions(some))
        ]
        + list(_list_configured(_add_names(client, forwarder), configured, namespaces)),
    }


def _list_configured(
    client: Mapping[str, Any], resources: Sequence[Resource], namespaces: Collection[str] | None
) -> Iterator[dict[str, Any]]:
    """Yield the webhook of the configuration, and a limited one of its ConfigMaps and Secrets."""
    holders = [each for each in resources if not each.gvk.group and namespaces is not None]
    kinds = [each for each in resources if each not in holders]
    if kinds:
        yield _webhook(CONFIGURATION, client, kinds)
    if holders and namespaces:
        webhook = _webhook(HOLDERS, client, holders)
        named = {"key": _NAMED, "operator": "In", "values": sorted(namespaces)}
        webhook["namespaceSelector"]["matchExpressions"].append(named)
        yield webhook


def _add_names(client: Mapping[str, Any], forwarder: Mapping[str, str]) -> dict[str, Any]:
    """Return the address that gets only names; ingest itself gets all requests at one address."""
    if is_direct(forwarder):
        return dict(client)
    if "url" in client:
        return {**client, "url": client["url"] + NAMES}
    service = client["service"]
    return {**client, "service": {**service, "path": service["path"] + NAMES}}


def is_direct(forwarder: Mapping[str, str]) -> bool:
    return bool(forwarder.get("direct"))


def is_audited(forwarder: Mapping[str, str]) -> bool:
    """Return whether the API server sends its audit log, without objects in the cluster."""
    return bool(forwarder.get("audit"))


def make_direct_record(forwarder: Mapping[str, str], token: str) -> dict[str, str]:
    """Return the record of an API server that calls ingest itself, with a token in the path."""
    return {**forwarder, "path": f"/{token}"}


def is_callable(forwarder: Mapping[str, str]) -> bool:
    """Return whether API servers accept the forwarder's path.

    Below a URL they accept any; of a Service each segment must be a lower-case RFC 1123 name.
    """
    return bool(forwarder.get("url")) or bool(_SERVICE_PATH.fullmatch(forwarder["path"]))


def redact_paths(text: str, forwarder: Mapping[str, str]) -> str:
    """Remove the forwarder's unguessable paths from a text, as a refusal may quote a URL."""
    for key in ("path", "next-path"):
        if forwarder.get(key):
            text = text.replace(forwarder[key], "/…")
    return text


def forwarder_role(resources: Sequence[Resource]) -> dict[str, Any]:
    """Return the ClusterRole by which the forwarder reads objects back."""
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
    """Return the role and binding to read the Secret of the cluster's NATS server, and no other."""
    place = {"name": NAME, "namespace": MESSAGING_NAMESPACE, "labels": _LABELS}
    return _make_reader(place, MESSAGING_NAME)


def forwarder_rights() -> list[dict[str, Any]]:
    """Return the forwarder's namespace, its account, and the role for its own Secret."""
    own: dict[str, Any] = {"name": NAME, "namespace": NAMESPACE, "labels": _LABELS}
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            # From 1.21 on every namespace has its name as a label, which our webhooks look at.
            "metadata": {"name": NAMESPACE, "labels": {**_LABELS, _NAMED: NAMESPACE}},
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": own},
        *_make_reader(own, NAME),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME, "labels": _LABELS},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": [_ACCOUNT],
        },
    ]


def forwarder_secret(entries: Mapping[str, str]) -> dict[str, Any]:
    """Return the Secret with the forwarder's cluster, credentials and address of ingest."""
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


def _make_reader(place: Mapping[str, Any], secret: str) -> list[dict[str, Any]]:
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


def _make_drift_webhook(
    name: str, client: Mapping[str, Any], resources: Sequence[Resource], label: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the webhook for objects of profiles, which have a label.

    A status is no drift. An object with replicas sends its status, too: scaling writes them by a
    subresource that has neither labels nor the kind, and the status follows.
    """
    sent = [
        replace(each, subresources=each.subresources if "scale" in each.subresources else ())
        for each in resources
    ]
    selector = {"matchExpressions": [label]}
    return {**_webhook(name, client, sent), "objectSelector": selector}


def _split_versions(resources: Sequence[Resource]) -> list[list[Resource]]:
    """Split resources so that no part has one in two versions.

    An API server calls a webhook once for a write, in one of the versions that its rules name. It
    also takes resources of two groups for one (an Ingress was in `extensions`), and does not say
    which: so only the plural decides.
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
                *(f"{resource.plural}/{sub}" for sub in resource.subresources if sub in _WRITTEN),
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
