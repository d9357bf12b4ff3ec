"""Every way in over HTTP, each before the ingest of one installation."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from flask import Request
from werkzeug.test import Client, EnvironBuilder

from bellhop.logs import Log
from bellhop.runtime.aws.http import Front as LambdaFront
from bellhop.runtime.cloud.resources import Resources
from bellhop.runtime.embedded.http import Front as EmbeddedFront
from bellhop.runtime.gcp.http import Front as FrameworkFront
from tests.fakes.fleet import Fleet
from tests.functions.lab import Context, event

EMPTY = {"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": []}
BATCH = json.dumps(EMPTY)
PATH = "/clusters/fleet/east"
ADDRESS = "203.0.113.7"
EAST = {"authorization": "Bearer east", "content-type": "application/json"}
OWN: Mapping[str, str] = MappingProxyType({})
"""No other header than those of the forwarder of `fleet/east`."""


class Answer(NamedTuple):
    """An HTTP response; its body is read as JSON, and its headers have small letters."""

    status: int
    body: Any
    headers: Mapping[str, str]


Ask = Callable[..., Answer]
"""Sends a request with `path`, `body`, `method`, `headers` and `address`, as far as given."""


def open_cloud(fleet: Fleet) -> Resources:
    """Return the fleet as the functions of a cloud see an installation."""
    return Resources(
        settings=fleet.settings,
        records=fleet.records,
        queues={},
        publisher=fleet.publisher,
        secrets="",
        ingest_url="",
        log=Log(fleet.output),
    )


class Lambda:
    """A function behind one of AWS' APIs, of which `name` is the recorded event."""

    def __init__(self, name: str, *, encoded: bool) -> None:
        self._name = name
        self._encoded = encoded

    def front(self, fleet: Fleet, opening: Callable[[], Resources]) -> LambdaFront:
        return LambdaFront(lambda _: fleet.ingest, opening)

    def ask(
        self,
        front: LambdaFront,
        path: str = PATH,
        body: str = BATCH,
        *,
        method: str = "POST",
        headers: Mapping[str, str] = OWN,
        address: str = ADDRESS,
    ) -> Answer:
        sent, about = event(self._name), {**EAST, **headers}
        sent["body"] = base64.b64encode(body.encode()).decode() if self._encoded else body
        sent["isBase64Encoded"] = self._encoded
        if "http" in sent["requestContext"]:
            sent["rawPath"] = path
            sent["requestContext"]["http"] |= {"method": method, "path": path, "sourceIp": address}
            sent["headers"] |= about
        else:
            sent["path"], sent["httpMethod"] = path, method
            sent["requestContext"]["identity"]["sourceIp"] = address
            sent["headers"] |= {name.title(): value for name, value in about.items()}
        answer = front(sent, Context())
        assert set(answer) == {"statusCode", "headers", "body", "isBase64Encoded"}
        assert answer["isBase64Encoded"] is False
        found = {name.lower(): value for name, value in answer["headers"].items()}
        return Answer(answer["statusCode"], _read(answer["body"]), found)


class Framework:
    """A function of Google Cloud, as functions-framework calls it."""

    def front(self, fleet: Fleet, opening: Callable[[], Resources]) -> FrameworkFront:
        return FrameworkFront(lambda _: fleet.ingest, opening)

    def ask(
        self,
        front: FrameworkFront,
        path: str = PATH,
        body: str = BATCH,
        *,
        method: str = "POST",
        headers: Mapping[str, str] = OWN,
        address: str = ADDRESS,
    ) -> Answer:
        about = {**EAST, "x-forwarded-for": address, **headers}
        environ = EnvironBuilder(path, method=method, data=body, headers=about).get_environ()
        text, status, found = front(Request(environ))
        return Answer(status, _read(text), {name.lower(): each for name, each in found.items()})


class Embedded:
    """The WSGI app of `bellhop serve`, behind a server that does not ask it before it reads."""

    def front(self, fleet: Fleet, opening: Callable[[], Resources]) -> EmbeddedFront:
        del opening
        return EmbeddedFront(fleet.ingest)

    def ask(
        self,
        front: EmbeddedFront,
        path: str = PATH,
        body: str = BATCH,
        *,
        method: str = "POST",
        headers: Mapping[str, str] = OWN,
        address: str = ADDRESS,
    ) -> Answer:
        peer = {"REMOTE_ADDR": address}
        about = {**EAST, **headers}
        answer = Client(front).open(
            path, method=method, data=body, headers=about, environ_base=peer
        )
        found = {name.lower(): value for name, value in answer.headers.items()}
        return Answer(answer.status_code, _read(answer.text), found)


def _read(text: str) -> Any:
    return json.loads(text) if text.startswith("{") else text


FUNCTIONS = {
    "a function URL": Lambda("function_url", encoded=False),
    "a function URL in base64": Lambda("function_url", encoded=True),
    "an HTTP API": Lambda("http_api", encoded=True),
    "a private API": Lambda("rest_api", encoded=False),
    "functions-framework": Framework(),
}
FRONTS = {**FUNCTIONS, "serve": Embedded()}
