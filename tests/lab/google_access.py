"""Check what people and functions may request of Google's emulators, by their permissions.

    with Access({"FIRESTORE_EMULATOR_HOST": …, "STORAGE_EMULATOR_HOST": …}) as access:
        access.may({"datastore.entities.get": ("",)})   # on resources with any of these prefixes
        run(access.environment)       # is denied all else
        access.asked()                # the rights that were asked for, and on what

No emulator checks any right. Here each request is read for the rights that Google's documents name
for it, and what somebody may not is answered as IAM answers it; what is not known here nobody may.
A right may be held to resources by how their names begin: a prefix that ends in `/` is a name and
all below it, one that ends in `$` a name only.

    Firestore        cloud.google.com/firestore/docs/security/iam
    Pub/Sub          cloud.google.com/pubsub/docs/access-control
    Secret Manager   cloud.google.com/secret-manager/docs/access-control
    Cloud Storage    cloud.google.com/storage/docs/access-control/iam-json
    Logging          cloud.google.com/logging/docs/access-control
    Monitoring       cloud.google.com/monitoring/access-control
    GKE              cloud.google.com/kubernetes-engine/docs/reference/rest, of each method
"""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qs, unquote

from google.cloud.firestore_v1.types import BatchGetDocumentsRequest, CommitRequest, RunQueryRequest
from google.cloud.secretmanager_v1 import types as secrets
from google.pubsub_v1 import types as pubsub

from tests.lab.google_front import Front
from tests.lab.http_server import HttpServer, Request, Response

_SECRETS = "google.cloud.secretmanager.v1.SecretManagerService"
_SPEAKING_HTTP = ("CONTAINER", "LOGGING", "MONITORING", "STORAGE")


@dataclass(frozen=True)
class Asked:
    """A right that somebody has to have, and the resource on which."""

    right: str
    resource: str = ""


Rights = Iterator[Asked]


def _commit(body: bytes) -> Rights:
    """Name what is asked for a write: what it expects to be there says what it makes of it."""
    request = CommitRequest.deserialize(body)
    for write in request.writes:
        expects = write.current_document
        if write.delete:
            yield Asked("datastore.entities.delete", request.database)
            continue
        new = "exists" in expects and not expects.exists
        known = "update_time" in expects or expects.exists
        if not known:
            yield Asked("datastore.entities.create", request.database)
        if not new:
            yield Asked("datastore.entities.update", request.database)


def _of(kind: Any, right: str, *places: str) -> Callable[[bytes], Rights]:
    """Return what names the right for a kind of request, on the resource in one of its fields."""

    def rights(body: bytes) -> Rights:
        request = kind.deserialize(body)
        named = (getattr(request, each, "") for each in places)
        yield Asked(right, next(filter(None, named), ""))

    return rights


def _plain(*rights: str) -> Callable[[bytes], Rights]:
    return lambda _: map(Asked, rights)


def _query(body: bytes) -> Rights:
    database = RunQueryRequest.deserialize(body).parent.partition("/documents")[0]
    yield Asked("datastore.entities.get", database)
    yield Asked("datastore.entities.list", database)


BY_METHOD: Mapping[str, Callable[[bytes], Rights]] = {
    "/google.firestore.v1.Firestore/BatchGetDocuments": _of(
        BatchGetDocumentsRequest, "datastore.entities.get", "database"
    ),
    "/google.firestore.v1.Firestore/RunQuery": _query,
    "/google.firestore.v1.Firestore/Commit": _commit,
    "/google.pubsub.v1.Publisher/Publish": _of(
        pubsub.PublishRequest, "pubsub.topics.publish", "topic"
    ),
    **{
        f"/google.pubsub.v1.Subscriber/{name}": _of(
            getattr(pubsub, f"{name}Request"), "pubsub.subscriptions.consume", "subscription"
        )
        for name in ("Acknowledge", "Pull")
    },
    **{
        f"/{_SECRETS}/{name}": _of(
            getattr(secrets, f"{name}Request"), f"secretmanager.{right}", "name", "parent"
        )
        for name, right in {
            "CreateSecret": "secrets.create",
            "DeleteSecret": "secrets.delete",
            "AddSecretVersion": "versions.add",
            "AccessSecretVersion": "versions.access",
            "ListSecretVersions": "versions.list",
            "DestroySecretVersion": "versions.destroy",
        }.items()
    },
}
"""The rights that each method of gRPC asks for."""

BY_ADDRESS: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("GET", r"/storage/v1/b/[^/]+/o/[^/]+", ("storage.objects.get",)),
    ("GET", r"/storage/v1/b/[^/]+/o", ("storage.objects.list",)),
    # Who may write over what is there has to be allowed to delete it.
    (
        "POST",
        r"/upload/storage/v1/b/[^/]+/o",
        ("storage.objects.create", "storage.objects.delete"),
    ),
    ("DELETE", r"/storage/v1/b/[^/]+/o/[^/]+", ("storage.objects.delete",)),
    ("GET", r"/v3/projects/[^/]+/timeSeries", ("monitoring.timeSeries.list",)),
    ("GET", r"/v1/projects/[^/]+/locations/[^/]+/clusters/[^/]+", ("container.clusters.get",)),
)
"""The rights that each request by HTTP asks for; those for logs follow from what is in it."""


def _by_http(method: str, target: str, body: bytes) -> Rights:
    path = target.partition("?")[0]
    if (method, path) == ("POST", "/v2/entries:list"):
        for place in json.loads(body)["resourceNames"]:
            view = "/views/" in place
            yield Asked("logging.views.access" if view else "logging.logEntries.list", place)
        return
    for verb, pattern, rights in BY_ADDRESS:
        if verb == method and re.fullmatch(pattern, path):
            yield from (Asked(each, _resource(target)) for each in rights)
            return
    yield Asked(f"unknown: {method} {path}")


def _resource(target: str) -> str:
    """Return the name of what a request is about, as IAM writes it."""
    path, _, query = target.partition("?")
    found = re.fullmatch(r"(?:/upload)?/storage/v1/b/([^/]+)/o(?:/([^/]+))?", path)
    if not found:
        return re.sub(r"^/v\d/", "", path)
    name = unquote(found[2] or "") or parse_qs(query).get("name", [""])[0]
    return f"{_bucket(path)}/objects/{name}" if name else _bucket(path)


def _bucket(path: str) -> str:
    """Return the name of the bucket that a request to Cloud Storage is about, as IAM writes it."""
    return "projects/_/buckets/" + path.partition("/storage/v1/b/")[2].partition("/")[0]


class Access:
    """Proxies before Google's emulators, which check the rights of one person or function."""

    def __init__(self, behind: Mapping[str, str]) -> None:
        self._behind = behind
        self._lock = threading.Lock()
        self._asked: set[Asked] = set()
        self._denied: set[Asked] = set()
        self._rights: Mapping[str, tuple[str, ...]] | None = None
        self._end = ExitStack()
        self.environment: dict[str, str] = {}
        """Where the proxies are, by the names of the emulators' variables."""

    def may(self, rights: Mapping[str, tuple[str, ...]] | None) -> None:
        """Allow these rights only, each on what begins so; None allows all that is known."""
        self._rights = rights

    def asked(self) -> set[Asked]:
        """Return the rights that were asked for since this was called last, and on what."""
        with self._lock:
            found, self._asked = self._asked, set()
            return found

    def denied(self) -> set[Asked]:
        """Return what was not allowed since this was called last."""
        with self._lock:
            found, self._denied = self._denied, set()
            return found

    def __enter__(self) -> Self:
        for variable, address in self._behind.items():
            if variable.startswith(_SPEAKING_HTTP):
                opened = self._end.enter_context(_Proxy(address, self._authorize)).address
            else:
                front = Front(address, authorize=self._authorize_call)
                opened = self._end.enter_context(front).address
            self.environment[variable] = opened
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()

    def _authorize_call(self, method: str, body: bytes) -> bool:
        known = BY_METHOD.get(method, _plain(f"unknown: {method}"))
        return self._authorize(known(body))

    def _authorize(self, rights: Rights) -> bool:
        rights_asked = list(rights)
        with self._lock:
            self._asked |= set(rights_asked)
            denied = {each for each in rights_asked if not allowed(each, self._rights)}
            self._denied |= denied
        return not denied


def allowed(asked: Asked, rights: Mapping[str, tuple[str, ...]] | None) -> bool:
    """Say whether somebody with these rights may do what was asked for."""
    if rights is None:
        return not asked.right.startswith("unknown")
    whole = f"{asked.resource}$", f"{asked.resource}/"
    return any(each.startswith(rights.get(asked.right, ())) for each in whole)


class _Proxy(HttpServer):
    """One server before another one that speaks HTTP."""

    def __init__(self, address: str, authorize: Callable[[Rights], bool]) -> None:
        super().__init__()
        self._behind = address if "://" in address else f"http://{address}"
        self._authorize = authorize

    def respond(self, request: Request) -> Response:
        """Pass a request on, if it may be."""
        method, path = request.method, request.target.partition("?")[0]
        if not self._authorize(_by_http(method, request.target, request.body)):
            return Response(HTTPStatus.FORBIDDEN, b"{}")
        passed = urllib.request.Request(
            self._behind + request.target,
            request.body or None,
            {name: value for name, value in request.headers.items() if name == "Content-Type"},
            method=method,
        )
        try:
            with urllib.request.urlopen(passed, timeout=10) as answer:
                return Response(answer.status, answer.read())
        except urllib.error.HTTPError as error:
            absent = error.code == HTTPStatus.NOT_FOUND and "/storage/" in path and method == "GET"
            # A caller that may not list does not learn what is missing.
            if absent and not self._authorize(iter([Asked("storage.objects.list", _bucket(path))])):
                return Response(HTTPStatus.FORBIDDEN, b"{}")
            return Response(error.code, error.read())
