"""An API server behind an APIService, that keeps its objects in a way of its own.

It serves one kind, takes server-side applies, and refuses what it cannot take of their conditions
with a status that is chosen: such servers differ in it. Objects are whatever was applied last.
"""

from __future__ import annotations

import json
import ssl
import threading
import uuid
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bellhop.core.gvk import GVK
from infra.lab.certificates import write_certificates
from tests.lab.http_server import HttpServer, Request, Response

PARCEL = GVK("aggregated.lab.example", "v1", "Parcel")
REASONS = {400: "BadRequest", 404: "NotFound", 409: "Conflict", 422: "Invalid"}


class Aggregated(HttpServer):
    """Serves Parcels; `refuses` names the metadata for which any apply gets `code`."""

    def __init__(self, folder: Path, *, refuses: str = "", code: int = 500) -> None:
        write_certificates(folder, "aggregated", ("127.0.0.1",))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
        super().__init__(tls)
        self.refuses = refuses
        self.code = code
        self.calls: list[str] = []
        """The methods by which objects were asked for, in order."""
        self._objects: dict[str, dict[str, Any]] = {}
        self._version = 1
        self._lock = threading.Lock()

    def registration(self) -> dict[str, dict[str, Any]]:
        """Return what has a cluster's own API server hand requests on to this one, by its path."""
        place = {"name": "aggregated", "namespace": "default"}
        spec = {"type": "ExternalName", "externalName": "localhost"}
        served = {
            "group": PARCEL.group,
            "version": PARCEL.version,
            "service": {**place, "port": urlsplit(self.address).port},
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
        }
        return {
            "/api/v1/namespaces/default/services": {"metadata": place, "spec": spec},
            "/apis/apiregistration.k8s.io/v1/apiservices": {
                "metadata": {"name": f"{PARCEL.version}.{PARCEL.group}"},
                "spec": served,
            },
        }

    def put(self, name: str, manager: str, spec: Any) -> dict[str, Any]:
        """Make an object as somebody else does; return it."""
        head = {"name": name, "namespace": "default", "managedFields": [_managed(manager)]}
        with self._lock:
            return self._store(name, {**_KIND, "metadata": head, "spec": spec})

    def there(self, name: str) -> dict[str, Any] | None:
        """Return an object as it is kept."""
        with self._lock:
            return self._objects.get(name)

    def respond(self, request: Request) -> Response:
        """Answer as an API server does."""
        path = urlsplit(request.target).path.strip("/").split("/")
        if path == ["apis", PARCEL.group, PARCEL.version]:
            return Response.of(HTTPStatus.OK, _DISCOVERY)
        if path[:3] != ["apis", PARCEL.group, PARCEL.version] or len(path) != _DEPTH:
            return Response(HTTPStatus.NOT_FOUND)
        with self._lock:
            self.calls.append(request.method)
            return self._asked(request, unquote(path[-1]))

    def _asked(self, request: Request, name: str) -> Response:
        there = self._objects.get(name)
        if request.method == "PATCH":
            return self._applied(name, json.loads(request.body), there)
        if there is None:
            return _refused(HTTPStatus.NOT_FOUND, name)
        if request.method == "DELETE":
            del self._objects[name]
        return Response.of(HTTPStatus.OK, there)

    def _applied(self, name: str, desired: dict[str, Any], there: Any) -> Response:
        head = desired["metadata"]
        if self.refuses in head:
            return _refused(self.code, name)
        for field in {"uid", "resourceVersion"}.intersection(head):
            if there is not None and there["metadata"][field] != head[field]:
                return _refused(HTTPStatus.CONFLICT, name)
        others = (there or {}).get("metadata", {}).get("managedFields", [])
        others = [each for each in others if each["manager"] != "bellhop"]
        head = {**head, "managedFields": [*others, _managed("bellhop", "Apply")]}
        return Response.of(HTTPStatus.OK, self._store(name, {**desired, "metadata": head}))

    def _store(self, name: str, manifest: dict[str, Any]) -> dict[str, Any]:
        before = self._objects.get(name)
        self._version += 1
        life = before["metadata"]["uid"] if before else str(uuid.uuid4())
        servers = {"uid": life, "resourceVersion": str(self._version)}
        self._objects[name] = {**manifest, "metadata": {**manifest["metadata"], **servers}}
        return self._objects[name]


def _managed(manager: str, operation: str = "Update") -> dict[str, str]:
    return {"manager": manager, "operation": operation}


def _refused(code: int, name: str) -> Response:
    details = {"group": PARCEL.group, "kind": "parcels", "name": name}
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    status |= {"reason": REASONS.get(code, ""), "message": "it is not taken", "details": details}
    return Response.of(code, status)


_DEPTH = 7
_KIND = {"apiVersion": PARCEL.api_version, "kind": PARCEL.kind}
_DISCOVERY = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": PARCEL.api_version,
    "resources": [
        {
            "name": "parcels",
            "singularName": "parcel",
            "namespaced": True,
            "kind": PARCEL.kind,
            "verbs": ["get", "patch", "delete"],
        }
    ],
}
