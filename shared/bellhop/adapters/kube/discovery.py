"""Which kinds an API server serves and under which path; asked one group version at a time.

What it says is checked before it becomes a path, a right or a rule: names that Kubernetes itself
would not take are passed over.

Kept in memory for as long as its client lives; of the kinds that are everywhere the same nobody is
asked before one turns out wrong. What is not known is asked again each time, so that a new CRD is
found; what turned out wrong is forgotten by the client.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from bellhop.adapters.kube.builtin import BUILT_IN
from bellhop.adapters.kube.errors import refusal_error
from bellhop.adapters.kube.refusal import Call, Refusal
from bellhop.adapters.kube.transport import Request, Transport
from bellhop.core.gvk import GVK, Resource
from bellhop.errors import UnreachableError

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
        # The core group lists versions by name alone, others with the group in front.
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
