"""Opens connections to checked addresses, for our own requests and for those of other programs."""

from __future__ import annotations

import socket
from collections.abc import Collection, Sequence
from typing import Any, ClassVar

from bellhop.adapters.egress.addresses import ForbiddenAddressError, allowed_addresses, is_address
from bellhop.adapters.egress.answer import Deadline, LimitError
from bellhop.adapters.egress.lookups import LOOKUPS, CrowdedError, Lookups
from bellhop.adapters.egress.proxies import connect_through, place_of
from bellhop.clusters.proxy_url import shown_proxy
from bellhop.core.address_policy import AddressPolicy
from bellhop.core.redaction import Redacted
from bellhop.errors import InvalidError, UnreachableError

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
            # A name may lead elsewhere tomorrow.
            kind = InvalidError if is_address(host) else UnreachableError
            raise LimitError(kind, f"{error}; nothing is called there") from error
        except TimeoutError:
            words = f"looking its host name up took longer than {seconds:.3g} s"
        except CrowdedError:
            words = "its host name was not looked up, since too many others take long"
        except OSError as error:
            raise UnknownNameError(*error.args) from error
        raise LimitError(UnreachableError, words)
