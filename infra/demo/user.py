"""Somebody who works in a cluster: creates, changes and deletes objects, knowing no Bellhop."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import urllib3

from bellhop.core.gvk import GVK, ObjectKey

_PLURALS = {
    "ClusterSummary": "clustersummaries",
    "ConfigMap": "configmaps",
    "CustomResourceDefinition": "customresourcedefinitions",
    "DaemonSet": "daemonsets",
    "Deployment": "deployments",
    "Endpoints": "endpoints",
    "Event": "events",
    "HTTPRoute": "httproutes",
    "Ingress": "ingresses",
    "Job": "jobs",
    "Namespace": "namespaces",
    "NetworkPolicy": "networkpolicies",
    "ResourceQuota": "resourcequotas",
    "Role": "roles",
    "Secret": "secrets",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    "Widget": "widgets",
}
_CLUSTER_SCOPED = frozenset(
    {"CustomResourceDefinition", "Namespace", "ValidatingWebhookConfiguration"}
)
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_TIMEOUT = 10.0
_TOO_MANY = 429
_TRIES = 30
_NOT_FOUND = 404


class User:
    """Plain requests to one API server, with what a kubeconfig says."""

    def __init__(self, kubeconfig: Mapping[str, Any]) -> None:
        cluster = kubeconfig["clusters"][0]["cluster"]
        token = kubeconfig["users"][0]["user"]["token"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._server = cluster["server"]
        self._pool = urllib3.PoolManager(
            ssl_context=ssl.create_default_context(cadata=authority),
            headers={"Authorization": f"Bearer {token}"},
            retries=False,
            maxsize=8,
        )

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        key = ObjectKey.of(manifest)
        return self._ask("POST", make_path(key.gvk, key.namespace, ""), manifest)

    def apply(
        self, manifest: Mapping[str, Any], manager: str = "kubectl", *, dry_run: bool = False
    ) -> dict[str, Any]:
        """Create or change an object by server-side apply, as `kubectl` and Flux do."""
        query = f"?fieldManager={manager}&force=true{'&dryRun=All' * dry_run}"
        return self._ask("PATCH", make_path(*ObjectKey.of(manifest)) + query, manifest, _APPLY)

    def patch(self, key: ObjectKey, change: Mapping[str, Any], sub: str = "") -> dict[str, Any]:
        """Change an object, or a subresource of it, by a merge patch."""
        path = make_path(*key) + (f"/{sub}" if sub else "")
        return self._ask("PATCH", path, change, _MERGE)

    def give_address(self, key: ObjectKey, ip: str) -> dict[str, Any]:
        """Set a Service's load balancer address, as a cloud's controller does."""
        return self.patch(key, {"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}}, "status")

    def delete(self, key: ObjectKey) -> None:
        self._ask("DELETE", make_path(*key))

    def get(self, key: ObjectKey) -> dict[str, Any] | None:
        """Read an object; None if it is not there."""
        try:
            return self._ask("GET", make_path(*key))
        except LookupError:
            return None

    def names(self, gvk: GVK, namespace: str = "") -> list[str]:
        """List the names of the objects of a kind."""
        return sorted(item["metadata"]["name"] for item in self.list(gvk, namespace))

    def list(self, gvk: GVK, namespace: str = "") -> Sequence[dict[str, Any]]:
        """List the objects of a kind."""
        items: Sequence[dict[str, Any]] = self._ask("GET", make_path(gvk, namespace, ""))["items"]
        return items

    def watch(self, gvk: GVK, namespace: str) -> Iterator[dict[str, Any]]:
        """Yield a kind's objects as they come and change, those that are there first.

        It ends with the connections.
        """
        answer = self._pool.request(
            "GET",
            f"{self._server}{make_path(gvk, namespace, '')}?watch=1",
            preload_content=False,
            timeout=None,
        )
        rest = b""
        for part in answer.stream(None):
            *lines, rest = (rest + part).split(b"\n")
            for event in map(json.loads, lines):
                if event["type"] in {"ADDED", "MODIFIED"}:
                    yield event["object"]

    def close(self) -> None:
        self._pool.clear()

    def _ask(
        self, verb: str, path: str, body: Any = None, media: str = "application/json"
    ) -> dict[str, Any]:
        for _ in range(_TRIES):
            answer = self._pool.request(
                verb,
                self._server + path,
                body=None if body is None else json.dumps(body),
                headers={**self._pool.headers, "Content-Type": media},
                timeout=_TIMEOUT,
            )
            if answer.status != _TOO_MANY:
                break
            time.sleep(1)  # A kind that was just defined has no cache yet.
        if answer.status == _NOT_FOUND:
            raise LookupError(path)
        if answer.status >= 300:  # noqa: PLR2004 - HTTP's success ends here
            raise RuntimeError(f"{verb} {path}: {answer.status} {answer.data[:300]!r}")
        return dict(answer.json())


def make_path(gvk: GVK, namespace: str, name: str) -> str:
    root = f"/apis/{gvk.group}/{gvk.version}" if gvk.group else f"/api/{gvk.version}"
    scope = f"/namespaces/{namespace}" if namespace and gvk.kind not in _CLUSTER_SCOPED else ""
    plural = _PLURALS.get(gvk.kind, f"{gvk.kind.lower()}s")
    return f"{root}{scope}/{plural}" + (f"/{name}" if name else "")
