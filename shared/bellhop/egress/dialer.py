"""Opens connections to checked addresses, for our own requests and for those of other programs."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from bellhop.egress.addresses import ForbiddenAddressError, allowed_addresses, is_address
from bellhop.egress.answer import Deadline, LimitError
from bellhop.egress.lookups import LOOKUPS, CrowdedError, Lookups
from bellhop.errors import InvalidError, UnreachableError
from bellhop.model.reach import Reach

LOOKUP_SECONDS = 10.0
"""How long looking a name up may take: resolvers ask a second server after five."""

NO_DELAY = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
"""The option of a socket that sends what is written at once."""


class UnknownNameError(OSError):
    """No DNS server knows a host's name."""


class Dialer(Struct, frozen=True):
    """Connects to where `reach` allows."""

    reach: Reach
    lookups: Lookups = LOOKUPS

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

        Raises:
            LimitError: none of its addresses may be called, or there is no time left.
            UnknownNameError, UnicodeError: its name is not known, or is none.
            TimeoutError, OSError: no address takes a connection, or not in time.
        """
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
