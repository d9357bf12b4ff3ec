"""Services of Google: clients made when they are needed, and calls with a deadline.

The libraries' own repetitions are switched off: they go on for a minute, and a write that was
repeated must know it, as its condition may fail on what it has written itself.

Services that speak gRPC are called through the clients generated from their definition, without
the layers above them; a call by HTTP is one request of google-auth's session.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import urlsplit

import google.auth
import grpc
from google.api_core.exceptions import from_http_status
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession, Request
from msgspec import Struct

from bellhop.adapters.gcp.errors import FAILURES, code_of, translate
from bellhop.core.attempts import Attempts

ATTEMPT_SECONDS = 4.0
"""How long one attempt of a call may take."""

LAST_TRY_SECONDS = 6.0
"""No attempt of a call begins later than this after the first one."""

_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # A server that went away and came back is found again at once, not minutes later.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A connection that died while a function had no processor is found out by asking.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 3_000),
)
_SCOPES = (
    "https://www.googleapis.com/auth/cloud-platform",
    # Else GKE knows a service account by a number, and not by the address that RBAC names.
    "https://www.googleapis.com/auth/userinfo.email",
)
_REDIRECTED = 300

T = TypeVar("T")


class _Service(Struct, frozen=True):
    """Where a service's client is, and which variable names an emulator of it."""

    module: str
    client: str
    emulator: str

    @property
    def transport(self) -> str:
        return self.client.removesuffix("Client") + "GrpcTransport"


_SERVICES = {
    "firestore": _Service(
        "google.cloud.firestore_v1.services.firestore",
        "FirestoreClient",
        "FIRESTORE_EMULATOR_HOST",
    ),
    "publisher": _Service(
        "google.pubsub_v1.services.publisher", "PublisherClient", "PUBSUB_EMULATOR_HOST"
    ),
    "subscriber": _Service(
        "google.pubsub_v1.services.subscriber", "SubscriberClient", "PUBSUB_EMULATOR_HOST"
    ),
    "secretmanager": _Service(
        "google.cloud.secretmanager_v1.services.secret_manager_service",
        "SecretManagerServiceClient",
        "SECRET_MANAGER_EMULATOR_HOST",
    ),
}
_HTTP_EMULATORS = {
    "storage.googleapis.com": "STORAGE_EMULATOR_HOST",
    "monitoring.googleapis.com": "MONITORING_EMULATOR_HOST",
    "logging.googleapis.com": "LOGGING_EMULATOR_HOST",
    "container.googleapis.com": "CONTAINER_EMULATOR_HOST",
    "connectgateway.googleapis.com": "CONNECT_GATEWAY_EMULATOR_HOST",
    "openidconnect.googleapis.com": "OPENID_CONNECT_EMULATOR_HOST",
}

EMULATORS = frozenset({each.emulator for each in _SERVICES.values()} | {*_HTTP_EMULATORS.values()})
"""The variables that name what stands in for a service of Google's."""


class RefusedError(Exception):
    """An answer that the caller knows how to take, by its code.

    `repeated` says that the call was made before and not answered: it may have been done then.
    """

    def __init__(self, code: str, *, repeated: bool) -> None:
        super().__init__(code)
        self.code = code
        self.repeated = repeated


class Services:
    """Calls by the libraries' names of a service and an operation; shared between threads.

    `emulators` has the addresses of what stands in for Google, by the names of the variables that
    Google's libraries read; without it they are read from the environment.
    """

    def __init__(
        self,
        project: str,
        *,
        emulators: Mapping[str, str] | None = None,
        seconds: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.project = project
        self._emulators = os.environ if emulators is None else emulators
        self._attempts = Attempts(LAST_TRY_SECONDS, seconds=seconds, sleep=sleep)
        self._lock = threading.Lock()
        self._clients: dict[str, Any] = {}
        self._identity: Any = None
        self._identity_lock = threading.Lock()

    def call(
        self,
        service: str,
        operation: str,
        request: Any,
        *,
        doing: str,
        taken: frozenset[str] = frozenset(),
        read: Callable[[Any], Any] = lambda answer: answer,
    ) -> Any:
        """Return what `read` makes of the answer to a request, which may be a stream.

        Raises:
            RefusedError: the answer is one of gRPC's codes in `taken`.
            BellhopError: anything else, mapped, once trying again has not helped.
        """

        def once() -> Any:
            method = getattr(self.client(service), operation)
            return read(method(request=request, timeout=ATTEMPT_SECONDS, retry=None))

        return self._try(once, doing, taken)

    def ask(
        self,
        method: str,
        url: str,
        *,
        doing: str,
        taken: frozenset[str] = frozenset(),
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return the body of the answer to a request by HTTP.

        Raises:
            RefusedError: the answer's status is one of those in `taken`, by number or gRPC's name.
            BellhopError: anything else, mapped, once trying again has not helped.
        """

        def once() -> bytes:
            answer = self.client("http").request(
                method,
                self.moved(url),
                data=body,
                headers=dict(headers or {}),
                timeout=ATTEMPT_SECONDS,
                allow_redirects=False,
            )
            if answer.status_code >= _REDIRECTED:
                raise from_http_status(answer.status_code, "")  # type: ignore[no-untyped-call]
            content: bytes = answer.content
            return content

        return self._try(once, doing, taken)

    def token(self, *, doing: str) -> str:
        """Return a token that says who calls, and is taken for three minutes at least.

        Raises:
            BellhopError: there is no such token, once trying again has not helped.
        """

        def once() -> str:
            with self._identity_lock:
                if self._identity is None:
                    self._identity, _ = google.auth.default(scopes=_SCOPES)
                if not self._identity.valid:
                    self._identity.refresh(partial(Request(), timeout=ATTEMPT_SECONDS))
                return str(self._identity.token)

        return self._try(once, doing, frozenset())

    def refused(self, token: str) -> None:
        """Give out a token no more that somebody did not take, unless there is another already."""
        with self._identity_lock:
            if self._identity is not None and self._identity.token == token:
                self._identity.token = None

    def moved(self, url: str) -> str:
        """Return where a request goes: to Google, or to what stands in for it."""
        parts = urlsplit(url)
        address = self._emulators.get(_HTTP_EMULATORS.get(parts.netloc, ""), "")
        if not address:
            return url
        place = urlsplit(address if "://" in address else f"http://{address}")
        return parts._replace(scheme=place.scheme, netloc=place.netloc).geturl()

    def rest(self, number: int) -> None:
        """Rest after so many attempts."""
        self._attempts.rest(number)

    def client(self, service: str) -> Any:
        """Return the client of a service, made when it is asked for first."""
        with self._lock:
            if service not in self._clients:
                made = self._session() if service == "http" else self._grpc(_SERVICES[service])
                self._clients[service] = made
            return self._clients[service]

    def close(self) -> None:
        """Close the connections; a later call makes new ones."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            (client if hasattr(client, "close") else client.transport).close()

    def _try(self, once: Callable[[], T], doing: str, taken: frozenset[str]) -> T:
        failed: list[str] = []

        def attempt() -> T:
            try:
                return once()
            except FAILURES as error:
                code = code_of(error)
                if code in taken:
                    raise RefusedError(code, repeated=bool(failed)) from error
                failed.append(code)
                raise

        return self._attempts.make(attempt, FAILURES, lambda error: translate(error, doing))

    def _grpc(self, service: _Service) -> Any:
        module = import_module(service.module)
        transport = getattr(import_module(f"{service.module}.transports"), service.transport)
        address = self._emulators.get(service.emulator)
        if address:
            channel = grpc.insecure_channel(address, options=_OPTIONS)
        else:
            channel = transport.create_channel(transport.DEFAULT_HOST, options=_OPTIONS)
        return getattr(module, service.client)(transport=transport(channel=channel))

    def _session(self) -> Any:
        """Return a session that signs its requests; to an emulator it says that it is nobody."""
        credentials: Any = AnonymousCredentials()  # type: ignore[no-untyped-call]
        if not any(self._emulators.get(each) for each in _HTTP_EMULATORS.values()):
            credentials, _ = google.auth.default(scopes=_SCOPES)
        return AuthorizedSession(credentials)  # type: ignore[no-untyped-call]
