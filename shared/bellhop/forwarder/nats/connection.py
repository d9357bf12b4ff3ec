"""One connection to a NATS server: how each proves itself, and nothing that is shown to a stranger.

The library is loaded here, where a Secret asks for it: a forwarder without NATS does without the
memory that it takes.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bellhop.adapters.egress.failures import happened
from bellhop.core.key_pair import load_key_pair
from bellhop.errors import InvalidError
from bellhop.forwarder.nats.secret import Server

if TYPE_CHECKING:
    from nats.aio.client import Client

NAME = "bellhop-forwarder"
"""How we are called in the server's list of connections."""

CONNECT_SECONDS = 5
PING_SECONDS = 20
"""How often the server is asked whether it is there; two answers may be missing."""


async def connect(
    server: Server, ended: asyncio.Event, failed: Callable[[Exception], None]
) -> Client:
    """Connect once; `ended` is set when the connection ends, `failed` told what goes wrong on it.

    Raises:
        InvalidError: the library is not installed, or the Secret's certificates are none.
        Exception: whatever the library says.
    """
    client = _client(server)
    last: list[Exception] = []

    async def heard(error: Exception) -> None:
        last[:] = [error]
        failed(error)

    async def closed() -> None:
        ended.set()

    try:
        await client.connect(
            servers=list(server.urls),
            name=NAME,
            error_cb=heard,
            closed_cb=closed,
            disconnected_cb=closed,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=CONNECT_SECONDS,
            ping_interval=PING_SECONDS,
            **_proof(server),
        )
    except Exception as error:
        with suppress(Exception):
            await client.close()
        if last and type(error).__name__ == "NoServersError":
            # It says that there is none, and not why.
            raise last[-1] from error
        raise
    return client


def _client(server: Server) -> Client:
    try:
        from nats.aio.client import Client  # noqa: PLC0415
        from nats.errors import Error  # noqa: PLC0415
    except ImportError as error:
        raise InvalidError(
            "cannot subscribe to NATS: its client is not installed; install the extra `nats`"
            " (pip install 'bellhop-fleet[nats]')"
        ) from error

    class Careful(Client):
        """Shows nothing of us to a server that asks for no TLS where the Secret does."""

        async def _process_info(self, info: dict[str, Any], *given: Any, **more: Any) -> None:
            if _hides(server) and not info.get("tls_required"):
                raise Error("the Secret asks for TLS, and the server does not require it")
            await super()._process_info(info, *given, **more)

    return Careful()


def _hides(server: Server) -> bool:
    """Say if the Secret asks for TLS."""
    schemes = (urlsplit(each).scheme for each in server.urls)
    return bool(server.authority or server.certificate) or "tls" in schemes


def in_words(error: Exception) -> str:
    """Return why NATS cannot be used: its client's words, or ours for a failed connection."""
    if isinstance(error, OSError):
        return happened(error)
    return str(error).removeprefix("nats: ")[:256] or "it gives no reason"


def _proof(server: Server) -> dict[str, Any]:
    given: dict[str, Any] = {
        "user": server.user or None,
        "password": server.password or None,
        "token": server.token or None,
    }
    return {**given, "tls": _tls(server)} if _hides(server) else given


def _tls(server: Server) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=server.authority or None)
        if server.certificate:
            load_key_pair(context, server.certificate.encode(), server.key.encode())
    except (OSError, ValueError) as error:
        raise InvalidError(
            "cannot subscribe to NATS: the certificates of its Secret cannot be read;"
            " write them again"
        ) from error
    return context
