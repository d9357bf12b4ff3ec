"""The consumer: what a stream of JetStream holds for us, acknowledged when ingest has it.

    fetch ──► held ──► sender ───► taken: acknowledged · refused for good: terminated
                │
                └─ while ingest is away: messages are reported as in progress, so that none of the
                   deliveries that a consumer may be limited to is used up

The durable consumer is the one of Sveltos' agent: it goes on where that one was. Where it is not
there it is made, and begins with what the stream holds.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bellhop.adapters.egress.answer import happened
from bellhop.core.key_pair import load_key_pair
from bellhop.errors import InvalidError
from bellhop.forwarder.backoff import pause
from bellhop.forwarder.nats.receiver import Receiver, covers, event
from bellhop.forwarder.nats.secret import Server, Stream

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

NAME = "bellhop-forwarder"
"""Our name in the server's list of connections."""

CONNECT_SECONDS = 5
PING_SECONDS = 20
"""Seconds between two pings of the server; two answers may be missing."""


async def connect(
    server: Server, ended: asyncio.Event, failed: Callable[[Exception], None]
) -> Client:
    """Connect once; `ended` is set when the connection ends, `failed` gets its errors.

    Raises:
        InvalidError: the library is not installed, or the Secret's certificates are none.
        Exception: whatever the library says.
    """
    client = _client(server)
    last: list[Exception] = []

    async def note_error(error: Exception) -> None:
        last[:] = [error]
        failed(error)

    async def closed() -> None:
        ended.set()

    try:
        await client.connect(
            servers=list(server.urls),
            name=NAME,
            error_cb=note_error,
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


DURABLE = "sveltos-agent"
"""The name of Sveltos' own consumer."""

HELD = 100
HELD_BYTES = 4 * 1024 * 1024
"""How much of one stream is on its way at once."""

_AT_ONCE = 20
_LINGER_SECONDS = 30.0
_FULL_SECONDS = 0.5
_ACK_SECONDS = 30.0


class Consumer:
    """One stream, over one connection; all of it runs within the loop."""

    def __init__(
        self,
        client: Client,
        stream: Stream,
        receiver: Receiver,
        say: Callable[..., None],
    ) -> None:
        self._client = client
        self._stream = stream
        self._receiver = receiver
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._held: dict[int, tuple[Msg, float]] = {}
        self._bytes = 0
        self._settled = asyncio.Event()
        self._acknowledging: set[asyncio.Task[None]] = set()
        self._number = 0

    async def run(self) -> None:
        """Fetch until cancelled; what keeps us from it is said, and tried again."""
        failures = 0
        while not self._client.is_closed:
            try:
                source, within = await self._open()
                failures = 0
                await self._consume(source, within)
            except Exception as error:  # noqa: BLE001 - a stream may be made, or allowed, later
                why = in_words(error)
                said = "Cannot consume a stream of JetStream, and keep trying"
                self._say(said, stream=self._stream.name, why=why)
            failures += 1
            await asyncio.sleep(pause(failures))

    async def leave(self, seconds: float) -> None:
        """Wait until what is held is done, and hand back what is not.

        The server may give the first of it to the request that we had open; that one is delivered
        again when its time to be acknowledged is over.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._held:
                    self._settled.clear()
                    await self._settled.wait()
        for message, _ in [*self._held.values()]:
            with suppress(Exception):
                await message.nak()
        self._held.clear()
        await asyncio.gather(*self._acknowledging, return_exceptions=True)
        with suppress(Exception):
            await self._client.flush()

    async def _open(self) -> tuple[JetStreamContext.PullSubscription, float]:
        """Find the durable consumer, or make it; return it, and its time to acknowledge."""
        from nats.js import api, errors  # noqa: PLC0415 - loaded by who connected

        name, jetstream = self._stream.name, self._client.jetstream()
        try:
            there = await jetstream.consumer_info(name, DURABLE)
        except errors.NotFoundError:
            subjects = [*self._stream.subjects]
            config = api.ConsumerConfig(durable_name=DURABLE, ack_policy=api.AckPolicy.EXPLICIT)
            if len(subjects) == 1:
                [config.filter_subject] = subjects
            elif subjects:
                # A server before 2.10 knows no list: we pass over what is not asked for.
                config.filter_subjects = subjects
            there = await jetstream.add_consumer(name, config)
        if there.config.deliver_subject:
            raise InvalidError(
                f"the consumer '{DURABLE}' of stream '{name}' is one that pushes; delete it, and"
                " one that is pulled from is made"
            )
        bound = await jetstream.pull_subscribe_bind(DURABLE, name)
        return bound, there.config.ack_wait or _ACK_SECONDS

    async def _consume(self, source: JetStreamContext.PullSubscription, within: float) -> None:
        keeping = asyncio.create_task(self._report_progress(within / 3))
        try:
            while True:
                await self._wait_for_capacity()
                for each in await _fetched(source):
                    await self._came(each)
        finally:
            keeping.cancel()
            with suppress(Exception):
                await source.unsubscribe()

    async def _wait_for_capacity(self) -> None:
        has_capacity = self._receiver.sender.has_capacity
        while len(self._held) >= HELD or self._bytes >= HELD_BYTES or not has_capacity():
            self._settled.clear()
            # Other streams may have filled the sender: they do not wake this one.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), _FULL_SECONDS)

    async def _came(self, message: Msg) -> None:
        asked = self._stream.subjects
        if asked and not any(covers(each, message.subject) for each in asked):
            await message.ack()
            return
        try:
            found = event(message.subject, self._stream.name, message.headers, message.data)
        except InvalidError as error:
            self._receiver.malformed(message.subject, error)
            await message.term()
            return
        self._number += 1
        number = self._number
        self._held[number] = message, time.monotonic()
        self._bytes += len(message.data)

        def settled(taken: bool) -> None:  # noqa: FBT001 - who calls it knows one thing
            # A loop that has ended has no connection: the server delivers it again.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._finish, number, taken)

        self._receiver.sender.put(message.subject, found, settled)

    def _finish(self, number: int, taken: bool) -> None:  # noqa: FBT001 - as above
        found = self._held.pop(number, None)
        if found is None:
            return
        message, _ = found
        self._bytes -= len(message.data)
        task = self._loop.create_task(_answer(message, taken=taken))
        self._acknowledging.add(task)
        task.add_done_callback(self._acknowledging.discard)
        self._settled.set()

    async def _report_progress(self, seconds: float) -> None:
        """Report held messages as in progress, so that the server does not send them again."""
        while True:
            await asyncio.sleep(seconds)
            old = time.monotonic() - seconds
            for message, since in [*self._held.values()]:
                if since <= old:
                    await message.in_progress()


async def _answer(message: Msg, *, taken: bool) -> None:
    # Where the connection has ended the server delivers it again, and ingest knows it.
    with suppress(Exception):
        await (message.ack() if taken else message.term())


async def _fetched(source: JetStreamContext.PullSubscription) -> list[Msg]:
    """Wait for messages; none may come for a while."""
    import nats.errors  # noqa: PLC0415 - loaded by who connected

    try:
        return await source.fetch(_AT_ONCE, _LINGER_SECONDS)
    except (nats.errors.TimeoutError, TimeoutError):
        return []
