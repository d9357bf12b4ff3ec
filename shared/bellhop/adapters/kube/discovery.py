"""Kinds that an API server serves, and their paths; asked for one group version at a time.

Names that Kubernetes itself would not accept are ignored, before they become a path, a right or a
rule. Results are kept in memory for as long as their client lives. An unknown kind is asked for
each time, so that a new CRD is found; the client forgets a result that turns out wrong.

Built-in kinds are known without a request. Their groups belong to Kubernetes, so that no CRD of a
user can serve them otherwise, and in these versions neither their plural nor their scope nor their
subresources have ever changed. One that a cluster does not serve answers 404, and is then asked for
like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from bellhop.adapters.kube.errors import refusal_error
from bellhop.adapters.kube.refusal import Call, Refusal
from bellhop.adapters.kube.transport import Request, Transport
from bellhop.core.gvk import GVK, Resource
from bellhop.errors import UnreachableError

_NAMESPACED = {
    "v1": """ConfigMap=configmaps Endpoints=endpoints LimitRange=limitranges Secret=secrets
        PersistentVolumeClaim=persistentvolumeclaims/status ResourceQuota=resourcequotas/status
        Service=services/proxy/status""",
    "apps/v1": """DaemonSet=daemonsets/status Deployment=deployments/scale/status
        ReplicaSet=replicasets/scale/status StatefulSet=statefulsets/scale/status""",
    "batch/v1": "Job=jobs/status",
    "networking.k8s.io/v1": "Ingress=ingresses/status",
    "rbac.authorization.k8s.io/v1": "Role=roles RoleBinding=rolebindings",
}
_OF_THE_CLUSTER = {
    "v1": "Namespace=namespaces/finalize/status",
    "admissionregistration.k8s.io/v1": """
        MutatingWebhookConfiguration=mutatingwebhookconfigurations
        ValidatingWebhookConfiguration=validatingwebhookconfigurations""",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition=customresourcedefinitions/status",
    "networking.k8s.io/v1": "IngressClass=ingressclasses",
    "rbac.authorization.k8s.io/v1": """ClusterRole=clusterroles
        ClusterRoleBinding=clusterrolebindings""",
    "scheduling.k8s.io/v1": "PriorityClass=priorityclasses",
    "storage.k8s.io/v1": "StorageClass=storageclasses",
}


def _read(api_version: str, entry: str, *, namespaced: bool) -> Resource:
    kind, _, path = entry.partition("=")
    plural, *subresources = path.split("/")
    gvk = GVK.parse(api_version, kind)
    return Resource(gvk, plural, namespaced=namespaced, subresources=tuple(subresources))


BUILT_IN = {
    resource.gvk: resource
    for namespaced, versions in ((True, _NAMESPACED), (False, _OF_THE_CLUSTER))
    for api_version, entries in versions.items()
    for entry in entries.split()
    for resource in (_read(api_version, entry, namespaced=namespaced),)
}


_GROUP = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?")
_VERSION = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}")
# The largest group that is known, of a cloud's own kinds, has a thousand.
_MOST_KINDS = 10_000
_MOST_VERSIONS = 50


class Discovery:
    """The kinds of one cluster; shared between threads."""

    def __init__(self, cluster: str, transport: Transport) -> None:
        self._cluster = cluster
        self._transport = transport
        self._known = dict(BUILT_IN)

    def find(self, gvk: GVK) -> Resource | None:
        """Return the resource of a kind, None if the cluster does not serve it."""
        resource = self._known.get(gvk)
        if resource is None and _plausible(gvk):
            self._known.update(self._read(gvk))
            resource = self._known.get(gvk)
        return resource

    def served(self, group: str, kind: str) -> Iterator[Resource]:
        """Yield the resources of a kind, one for each version, the preferred version first."""
        if not _plausible(GVK(group, "v1", kind)):
            return
        for version in self._versions(group, kind):
            resource = self.find(GVK(group, version, kind))
            if resource is not None:
                yield resource

    def clear(self) -> None:
        """Ask again for everything next time: it is another cluster."""
        self._known = dict(BUILT_IN)

    def forget(self, gvk: GVK) -> None:
        """Ask again for this kind next time."""
        self._known.pop(gvk, None)

    def _read(self, gvk: GVK) -> dict[GVK, Resource]:
        call = Call(self._cluster, f"look up {gvk}")
        answer = self._transport.ask(Request("GET", group_path(gvk)), call)
        if isinstance(answer, Refusal):
            if answer.code != HTTPStatus.NOT_FOUND:
                raise refusal_error(answer, call)
            answer = {"resources": []}
        if not isinstance(answer, dict) or not isinstance(answer.get("resources"), list):
            raise UnreachableError(f"{call}: the answer is not a list of kinds")
        found = resources(gvk, answer)
        if gvk not in found:
            self.require_ready(call)
        return found

    def _versions(self, group: str, kind: str) -> list[str]:
        call = Call(self._cluster, f"look up the versions of {kind}")
        path = f"/apis/{quote(group, safe='')}" if group else "/api"
        answer = self._transport.ask(Request("GET", path), call)
        if isinstance(answer, Refusal):
            if answer.code != HTTPStatus.NOT_FOUND:
                raise refusal_error(answer, call)
            self.require_ready(call)
            return []
        entries = answer.get("versions") if isinstance(answer, dict) else None
        if not isinstance(entries, list):
            raise UnreachableError(f"{call}: the answer is not a list of versions")
        preferred = answer.get("preferredVersion")
        # The core group lists versions by name only, others with the group in front.
        names = [e.get("version") if isinstance(e, dict) else e for e in (preferred, *entries)]
        found = [name for name in names if isinstance(name, str) and _VERSION.fullmatch(name)]
        return list(dict.fromkeys(found))[:_MOST_VERSIONS]

    def require_ready(self, call: Call) -> None:
        """Raise UnreachableError if the API server is still starting.

        Until it has read the CRDs it answers 404 to every custom kind, and until it has read the
        roles 403 to everybody.
        """
        answer = self._transport.ask(Request("GET", "/readyz", answers_json=False), call)
        if isinstance(answer, Refusal) and answer.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise UnreachableError(f"{call}: the API server is not ready yet")


def group_path(gvk: GVK) -> str:
    """Return the path below which all kinds of a group version are."""
    version = quote(gvk.version, safe="")
    return f"/apis/{quote(gvk.group, safe='')}/{version}" if gvk.group else f"/api/{version}"


def resources(gvk: GVK, document: dict[str, Any]) -> dict[GVK, Resource]:
    """Read an APIResourceList of the group and version of `gvk`."""
    entries = [e for e in document["resources"][:_MOST_KINDS] if isinstance(e, dict)]
    below: dict[str, list[str]] = {}
    for entry in entries:
        plural, slash, subresource = str(entry.get("name", "")).partition("/")
        if slash:
            below.setdefault(plural, []).append(subresource)
    found: dict[GVK, Resource] = {}
    for entry in entries:
        plural = str(entry.get("name", ""))
        key = GVK(gvk.group, gvk.version, str(entry.get("kind", "")))
        if not plural or not _GROUP.fullmatch(plural) or not _KIND.fullmatch(key.kind):
            continue
        found.setdefault(
            key,
            Resource(
                gvk=key,
                plural=plural,
                namespaced=bool(entry.get("namespaced")),
                subresources=tuple(sorted(below.get(plural, ()))),
            ),
        )
    return found


def _plausible(gvk: GVK) -> bool:
    """Say if it may be a kind at all; what is none is served by nobody, and leads nowhere."""
    patterns = ((_GROUP, gvk.group), (_VERSION, gvk.version), (_KIND, gvk.kind))
    return all(pattern.fullmatch(part) for pattern, part in patterns)
