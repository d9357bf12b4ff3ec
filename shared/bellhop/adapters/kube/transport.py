"""One API server over HTTPS: requests and JSON answers, on urllib3.

The connections are our own because the credentials stay in memory, because nothing of the machine
may change where a call goes (no proxy and no certificate bundle of the environment is honoured, no
redirect is followed, no retry outlives the timeouts), and because the other side is not trusted:
`egress` holds it to addresses, sizes and times.

Of a client library nothing would be left but a status and a body: the official one took 70 ms of a
cold stage's 250 to load for it, and a dozen packages.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import urllib3
from msgspec import Struct
from msgspec.structs import replace

from bellhop.adapters.egress.answer import LimitError
from bellhop.adapters.egress.client import HttpClient
from bellhop.adapters.egress.dialer import LOOKUPS, Dialer, Lookups
from bellhop.adapters.kube.errors import refusal_error, transport_error
from bellhop.adapters.kube.reachability import Greeting
from bellhop.adapters.kube.refusal import Call, Refusal, read_shallow
from bellhop.adapters.kube.tls import CONTEXTS
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.address_policy import PUBLIC, AddressPolicy
from bellhop.errors import InvalidError, UnreachableError

CONNECT_SECONDS = 3
READ_SECONDS = 15
GREETING_SECONDS = 3
"""How long the answer to a greeting may take: it is in the server's memory."""

MERGE = "application/merge-patch+json"

THREADS = 16
# A connection that the other side had closed while it lay idle fails at once; later than this
# the request may have been at work, and sending it again would double the wait.
_AT_ONCE_SECONDS = 1
_REPEATABLE = {"GET", "PATCH"}
_ESCAPED = re.compile("[\x7f-\uffff]")
"""Characters that a body has escaped.

An apply is read as YAML, which knows no pair of escapes for a character beyond U+FFFF, as JSON has,
and takes such a character as it is; of the others it refuses some.
"""

_SHORTEST_TOKEN = 16
"""Bytes; what is shorter is found in words that mean nothing by it."""

Renew = Callable[[Kubeconfig], Kubeconfig | None]
"""Finds others for credentials that were refused; None if there are none."""


class Request(Struct, frozen=True):
    """One call of the API; `path` is already escaped."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: Any = None
    content_type: str = "application/json"
    answers_json: bool = True
    warns: bool = False
    """Whether the answer's warnings are asked for, not its content."""

    accept: str = "application/json"
    """The kind of JSON that is asked for."""

    account: str = ""
    """The service account whose rights count."""


_GREETING = Request("GET", "/version", {"timeout": f"{GREETING_SECONDS}s"}, answers_json=False)

_LEAST = Request("GET", "/api/v1/namespaces/kube-system", answers_json=False)
"""A read that only the API server itself answers, by none of its webhooks."""


class Transport:
    """Sends requests and reads JSON answers; shared between threads."""

    def __init__(
        self,
        cluster: str,
        kubeconfig: Kubeconfig,
        *,
        renew: Renew = lambda _: None,
        reach: AddressPolicy = PUBLIC,
        lookups: Lookups = LOOKUPS,
    ) -> None:
        self._renew = renew
        self._make_client = partial(_client, cluster, reach=reach, lookups=lookups)
        self._renewing = threading.Lock()
        self._session = _Session(kubeconfig, self._make_client(kubeconfig))
        self._greeting = Greeting()

    def send(self, request: Request, call: Call) -> Any:
        """Return the JSON of a successful answer.

        Raises:
            BellhopError: anything else, mapped.
        """
        answer = self.ask(request, call)
        if isinstance(answer, Refusal):
            raise refusal_error(answer, call)
        return answer

    def ask(self, request: Request, call: Call) -> Any:
        """Return the JSON of a successful answer, or the `Refusal`; raise without one.

        Credentials that are no longer accepted are read again, once.
        """
        session = self._session
        if self._greeting.is_due:
            self._greeting.exchange(lambda: session.greet(call), lambda: _silent(call))
        try:
            answer = session.ask(request, call)
            if _is_unauthorized(answer):
                answer = self._ask_again(request, call, session, answer)
        except UnreachableError:
            self._greeting.missed()
            raise
        self._greeting.answered()
        return answer

    def _ask_again(self, request: Request, call: Call, session: _Session, refused: Refusal) -> Any:
        """Return the answer to a request that was answered 401, with fresh credentials if any.

        An admission webhook and an aggregated API server answer 401, too. That of a server that
        accepts the credentials for the least counts as 403.
        """
        answer: Any = refused
        fresh = self._renew_session(session)
        if fresh is not None:
            session, answer = fresh, fresh.ask(request, call)
        if not _is_unauthorized(answer) or _is_unauthorized(session.ask(_LEAST, call)):
            return answer
        return replace(answer, code=HTTPStatus.FORBIDDEN)

    def close(self) -> None:
        """Close the idle connections."""
        self._session.client.close()

    @property
    def kubeconfig(self) -> Kubeconfig:
        return self._session.kubeconfig

    @property
    def skew(self) -> timedelta | None:
        return self._session.skew()

    @property
    def ends_at(self) -> datetime | None:
        return self._session.kubeconfig.ends_at

    def _renew_session(self, refused: _Session) -> _Session | None:
        with self._renewing:
            if self._session is not refused:  # Another thread was faster.
                return self._session
            kubeconfig = self._renew(refused.kubeconfig)
            if kubeconfig is None or kubeconfig == refused.kubeconfig:
                return None
            self._session = _Session(kubeconfig, self._make_client(kubeconfig))
            return self._session


class Acting:
    """A transport whose requests are made with the rights of a service account."""

    def __init__(self, transport: Transport | Acting, account: str) -> None:
        self._transport = transport
        self._account = account

    def send(self, request: Request, call: Call) -> Any:
        """Return the JSON of a successful answer, as a transport does."""
        answer = self.ask(request, call)
        if isinstance(answer, Refusal):
            raise refusal_error(answer, call)
        return answer

    def ask(self, request: Request, call: Call) -> Any:
        """Return the JSON of a successful answer, or the `Refusal`, as a transport does."""
        answer = self._transport.ask(replace(request, account=self._account), call)
        return replace(answer, account=self._account) if isinstance(answer, Refusal) else answer

    def close(self) -> None:
        """Close nothing: the connections are the transport's."""

    @property
    def kubeconfig(self) -> Kubeconfig:
        return self._transport.kubeconfig

    @property
    def skew(self) -> timedelta | None:
        return self._transport.skew

    @property
    def ends_at(self) -> datetime | None:
        return self._transport.ends_at


Sends = Transport | Acting
"""A transport, with our own rights or with those of a service account."""


class _Session:
    """One set of credentials with its connections."""

    def __init__(self, kubeconfig: Kubeconfig, client: HttpClient) -> None:
        self.kubeconfig = kubeconfig
        self.client = client
        self._dated = ("", datetime.now(UTC))
        self._headers = {"User-Agent": "bellhop"}
        # API servers compress only from 128 KiB on.
        self._headers["Accept-Encoding"] = "gzip"
        if kubeconfig.token:
            self._headers["Authorization"] = f"Bearer {kubeconfig.token}"

    def greet(self, call: Call) -> None:
        """Ask for the version, which every server returns or refuses.

        Raises:
            UnreachableError: it does neither, soon.
        """
        try:
            self._once(_GREETING, call, patience=GREETING_SECONDS)
        except urllib3.exceptions.ProtocolError as exc:
            raise transport_error(exc, call) from exc

    def ask(self, request: Request, call: Call) -> Any:
        started = time.monotonic()
        try:
            return self._once(request, call)
        except urllib3.exceptions.ProtocolError as exc:
            quick = time.monotonic() - started < _AT_ONCE_SECONDS
            if not quick or request.method not in _REPEATABLE:
                raise transport_error(exc, call) from exc
        try:
            return self._once(request, call)
        except urllib3.exceptions.ProtocolError as exc:
            raise transport_error(exc, call) from exc

    def _once(self, request: Request, call: Call, *, patience: float = 0) -> Any:
        body = _body(request.body, call)
        headers = {
            **self._headers,
            "Accept": request.accept,
            "Content-Type": request.content_type,
        }
        if request.account:
            headers["Impersonate-User"] = user_of(request.account)
        try:
            answer = self.client.request(
                request.method,
                request.path,
                query=request.query,
                headers=headers,
                body=body,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=patience or READ_SECONDS),
            )
        except LimitError as exc:
            words = f"{call}: {exc.words}"
            raise exc.error(words, plain=words) from exc
        except urllib3.exceptions.ProtocolError:
            raise
        except (urllib3.exceptions.HTTPError, OSError) as exc:
            raise transport_error(exc, call) from exc
        except ValueError:
            words = f"{call}: the request cannot be made: its address or a header is malformed"
            # Not chained: it may quote a header, and so the token.
            raise InvalidError(words) from None
        self._dated = (str(answer.headers.get("Date") or ""), datetime.now(UTC))
        if not answer.succeeded:
            return Refusal.read(answer.status, self._unquote(answer.data), answer.headers)
        if request.warns:
            return str(answer.headers.get("Warning") or "")
        return read_answer(answer.data, call) if request.answers_json else answer.data

    def _unquote(self, data: bytes | str | None) -> bytes | str | None:
        """Take our token out of what a server has said that repeats what it was sent."""
        token = self.kubeconfig.token.encode()
        if not isinstance(data, bytes) or len(token) < _SHORTEST_TOKEN:
            return data
        return data.replace(token, b"...")

    def skew(self) -> timedelta | None:
        text, at = self._dated
        try:
            theirs = parsedate_to_datetime(text)
        except (TypeError, ValueError):
            return None
        # Without a zone it is UTC, as in all of HTTP.
        return (theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)) - at


def user_of(account: str) -> str:
    """Name the user that an API server takes a service account `namespace/name` for.

    Of this one it knows the groups by itself (apiserver's impersonation filter), so that nobody
    needs the right to name groups.
    """
    namespace, _, name = account.partition("/")
    return f"system:serviceaccount:{namespace}:{name}"


def _is_unauthorized(answer: Any) -> bool:
    return isinstance(answer, Refusal) and answer.code == HTTPStatus.UNAUTHORIZED


def _silent(call: Call) -> UnreachableError:
    return UnreachableError(f"{call}: it did not answer just now", plain=f"{call}: no answer")


def _body(manifest: Any, call: Call) -> bytes | None:
    try:
        text = "" if manifest is None else json.dumps(manifest, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidError(f"{call}: it holds what JSON cannot, such as a date") from exc
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() or None


def read_answer(text: bytes, call: Call) -> Any:
    """Return the JSON of an answer, in which null stands for what is nested too deep to read.

    Raises:
        UnreachableError: it is not JSON.
    """
    try:
        return json.loads(text)
    except RecursionError:
        with suppress(ValueError):
            return read_shallow(text)
    except ValueError:
        pass
    # Outside of the handler: the decoder's error holds the whole answer.
    raise UnreachableError(
        f"{call}: the answer is not JSON; is there an API server at its address?"
    )


def _client(
    cluster: str, kubeconfig: Kubeconfig, *, reach: AddressPolicy, lookups: Lookups
) -> HttpClient:
    """Make connections that fail at once rather than retry or wait for a free one."""
    tls: dict[str, Any] = {}
    if urlsplit(kubeconfig.server).scheme != "http":
        tls["ssl_context"] = CONTEXTS.of(cluster, kubeconfig)
        if kubeconfig.tls_server_name:
            tls["server_hostname"] = kubeconfig.tls_server_name
    return HttpClient(
        kubeconfig.server,
        dialer=Dialer(reach, lookups, kubeconfig.proxy_url),
        threads=THREADS,
        **tls,
    )
