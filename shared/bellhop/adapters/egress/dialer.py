"""Connections to checked addresses, directly or through an HTTP proxy (`CONNECT`).

The C library takes no deadline and cannot be interrupted: a slow DNS server decides how long a
lookup lasts. So each lookup has a thread of its own, and a caller whose time is up leaves it
behind. One lookup of a name serves all callers, and the number of threads is bounded.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from http import HTTPStatus
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from bellhop.adapters.egress.answer import Deadline, LimitError
from bellhop.clusters.proxy_url import shown_proxy
from bellhop.core.address_policy import AddressPolicy
from bellhop.core.structs import Redacted
from bellhop.errors import InvalidError, UnreachableError

AT_ONCE = 64
"""Lookups in flight in one process. One that hangs ends when the C library times out."""

Resolve = Callable[[str], list[str]]


class CrowdedError(Exception):
    """Too many look-ups hang to begin another."""


class Lookups:
    """The look-ups under way, by name; shared between threads."""

    def __init__(self, resolve: Resolve | None = None, *, at_once: int = AT_ONCE) -> None:
        self._resolve = resolve or _resolve
        self._at_once = at_once
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[list[str]]] = {}

    def addresses(self, host: str, seconds: float) -> list[str]:
        """Return a name's addresses, none of them twice.

        Raises:
            TimeoutError: it takes longer than `seconds`.
            CrowdedError: too many others do.
            OSError, UnicodeError: the name is not known, or is none.
        """
        return list(dict.fromkeys(self._begun(host).result(seconds)))

    def _begun(self, host: str) -> Future[list[str]]:
        with self._lock:
            found = self._under_way.get(host)
            if found is None:
                if len(self._under_way) >= self._at_once:
                    raise CrowdedError
                found = Future()
                threading.Thread(
                    target=self._look_up, args=(host, found), name="look-up", daemon=True
                ).start()
                # Its thread takes it out again, and waits for the lock until it is in.
                self._under_way[host] = found
            return found

    def _look_up(self, host: str, found: Future[list[str]]) -> None:
        try:
            addresses = self._resolve(host)
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            self._end(host)
            found.set_exception(error)
        else:
            self._end(host)
            found.set_result(addresses)

    def _end(self, host: str) -> None:
        with self._lock:
            del self._under_way[host]


def _resolve(host: str) -> list[str]:
    return [str(each[4][0]) for each in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


LOOKUPS = Lookups()
"""Those of this process."""


class ForbiddenAddressError(Exception):
    """A host has no address that may be called; the words say of the first one why."""


def is_address(host: str) -> bool:
    """Return whether a host is an IP address, and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def allowed_addresses(
    host: str, reach: AddressPolicy, lookups: Lookups, seconds: float
) -> list[str]:
    """Return the addresses of a host that may be called, in the order of the resolver.

    Raises:
        ForbiddenAddressError: it has addresses, and none may be called.
        TimeoutError: looking it up takes longer than so many seconds.
        CrowdedError: it was not looked up, since too many others take long.
        OSError, UnicodeError: its name is not known, or is none.
    """
    found = [host] if is_address(host) else lookups.addresses(host, seconds)
    refusals = {each: reach.refusal_of(ipaddress.ip_address(each), host) for each in found}
    allowed = [each for each, refusal in refusals.items() if not refusal]
    if refusals and not allowed:
        address, refusal = next(iter(refusals.items()))
        raise ForbiddenAddressError(f"its address {address} {refusal}")
    return allowed


LOOKUP_SECONDS = 10.0
"""How long looking a name up may take: resolvers ask a second server after five."""

NO_DELAY = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
"""The option of a socket that sends what is written at once."""


class UnknownNameError(OSError):
    """No DNS server knows a host's name."""


class Dialer(Redacted, frozen=True):
    """Connects to where `reach` allows, by the HTTP proxy of a URL if one is given."""

    secret_fields: ClassVar[Collection[str]] = ("proxy",)
    reach: AddressPolicy
    lookups: Lookups = LOOKUPS
    proxy: str = ""

    def dial(
        self,
        host: str,
        port: int,
        deadline: Deadline,
        *,
        seconds: float,
        options: Sequence[Any] = (NO_DELAY,),
    ) -> socket.socket:
        """Connect to the first address of a host that takes it in `seconds`.

        A proxy looks names up itself, so only its own addresses are checked.

        Raises:
            LimitError: no address may be called, the proxy fails, or there is no time left.
            UnknownNameError, UnicodeError: its name is not known, or is none.
            TimeoutError, OSError: no address takes a connection, or not in time.
        """
        if not self.proxy:
            return self._dial(host, port, deadline, seconds, options)
        try:
            connection = self._dial(*place_of(self.proxy), deadline, seconds, options)
        except (OSError, UnicodeError) as error:
            words = f"its proxy {shown_proxy(self.proxy)} cannot be reached"
            raise LimitError(UnreachableError, words) from error
        try:
            connect_through(connection, self.proxy, host, port, deadline)
            connection.settimeout(min(seconds, deadline.left()))
        except BaseException:
            connection.close()
            raise
        return connection

    def _dial(
        self, host: str, port: int, deadline: Deadline, seconds: float, options: Sequence[Any]
    ) -> socket.socket:
        failure = OSError("it has no address")
        for address in self._addresses(host, deadline):
            try:
                connection = socket.create_connection(
                    (address, port), min(seconds, deadline.left())
                )
            except OSError as error:
                failure = error
                continue
            for option in options:
                connection.setsockopt(*option)
            return connection
        raise failure

    def _addresses(self, host: str, deadline: Deadline) -> list[str]:
        """Look a host up and check what is found: what is called is what was checked."""
        seconds = min(LOOKUP_SECONDS, deadline.left())
        try:
            return allowed_addresses(host, self.reach, self.lookups, seconds)
        except ForbiddenAddressError as error:
            # A name may resolve to another address later.
            kind = InvalidError if is_address(host) else UnreachableError
            raise LimitError(kind, f"{error}; nothing is called there") from error
        except TimeoutError:
            words = f"looking its host name up took longer than {seconds:.3g} s"
        except CrowdedError:
            words = "its host name was not looked up, since too many others take long"
        except OSError as error:
            raise UnknownNameError(*error.args) from error
        raise LimitError(UnreachableError, words)


_HEAD = 64 << 10
_PIECE = 4096
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})\b")


def place_of(proxy: str) -> tuple[str, int]:
    """Return the host and port of a proxy."""
    parts = urlsplit(proxy)
    return parts.hostname or "", parts.port or 80


def connect_through(
    connection: socket.socket, proxy: str, host: str, port: int, deadline: Deadline
) -> None:
    """Have the proxy at the other end of a connection connect it to a server.

    Raises:
        LimitError: it does not, or there is no time left.
        OSError: the connection breaks off.
    """
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *_login(proxy)]
    connection.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        connection.settimeout(deadline.left())
        piece = connection.recv(_PIECE)
        head += piece
        if not piece or len(head) > _HEAD:
            raise _proxy_error(proxy, "does not answer as one")
    found = _STATUS.match(head)
    # The server speaks only after us: nothing may follow the head.
    if not found or (found[1] == b"200" and not head.endswith(b"\r\n\r\n")):
        raise _proxy_error(proxy, "does not answer as one")
    status = int(found[1])
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        raise _proxy_error(proxy, "does not accept the login in `proxy-url`, or asks for one")
    if status != HTTPStatus.OK:
        raise _proxy_error(proxy, f"answers {status}")


def _login(proxy: str) -> list[str]:
    parts = urlsplit(proxy)
    if not parts.username:
        return []
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return [f"Proxy-Authorization: Basic {base64.b64encode(login.encode()).decode()}"]


def _proxy_error(proxy: str, words: str) -> LimitError:
    return LimitError(UnreachableError, f"its proxy {shown_proxy(proxy)} {words}")
