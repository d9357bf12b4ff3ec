"""Which kinds an API server serves and under which path; asked one group version at a time.

Kept in memory for as long as its client lives. What is not known is asked again each time, so
that a new CRD is found; what turned out wrong is forgotten by the client.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from bellhop.adapters.kube.errors import Call, Refusal, refusal_error
from bellhop.adapters.kube.transport import Request, Transport
from bellhop.errors import UnreachableError
from bellhop.model.gvk import GVK, Resource


class Discovery:
    """The kinds of one cluster; shared between threads."""

    def __init__(self, cluster: str, transport: Transport) -> None:
        self._cluster = cluster
        self._transport = transport
        self._known: dict[GVK, Resource] = {}

    def find(self, gvk: GVK) -> Resource | None:
        """Return the resource of a kind, None if the cluster does not serve it."""
        resource = self._known.get(gvk)
        if resource is None and gvk.version and gvk.kind:
            self._known.update(self._read(gvk))
            resource = self._known.get(gvk)
        return resource

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
    entries = [e for e in document["resources"] if isinstance(e, dict)]
    below: dict[str, list[str]] = {}
    for entry in entries:
        plural, slash, subresource = str(entry.get("name", "")).partition("/")
        if slash:
            below.setdefault(plural, []).append(subresource)
    found: dict[GVK, Resource] = {}
    for entry in entries:
        plural = str(entry.get("name", ""))
        if "/" in plural:
            continue
        key = GVK(gvk.group, gvk.version, str(entry.get("kind", "")))
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
