"""The subscriber: one server's subscriptions, for as long as the Secret says so.

    connect ──► subscribe, consume ──► the connection ends ──► pause, and again
                      │
                      └─ stopped: nothing more is taken, held messages go to ingest or back

The client library does not reconnect by itself: so streams, rights and all else of a connection are
set up in one place, with pauses of our own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bellhop.forwarder.backoff import pause
from bellhop.forwarder.nats.consumer import Consumer, connect, in_words
from bellhop.forwarder.nats.receiver import LogLimiter, Receiver
from bellhop.forwarder.nats.secret import Server

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

GROUP = "bellhop-forwarder"
"""The queue group of core subscriptions: of several forwarders one gets a message."""

_PENDING = 10_000
_PENDING_BYTES = 8 * 1024 * 1024
"""The most that waits in memory between the socket and the disk, of all subjects together."""

_STEADY_SECONDS = 60.0
_JOIN_SECONDS = 5.0


class Subscriber:
    """One server; `run` is its life, within the loop of its thread."""

    def __init__(self, server: Server, receiver: Receiver) -> None:
        self._server = server
        self._receiver = receiver
        self._limiter = LogLimiter()
        self._stopping = asyncio.Event()
        self.trouble = ""
        """The reason why it is not subscribed; empty for none."""

    def stop(self) -> None:
        """Take no more, and have `run` return soon; within the loop."""
        self._stopping.set()

    async def run(self, grace: Callable[[], float]) -> None:
        """Be subscribed until stopped; then what is held has `grace` seconds to be taken."""
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                await self._live(grace)
            except Exception as error:  # noqa: BLE001 - whatever it is, the server is tried again
                self._report_trouble(error)
            # If the server closes the connection at once, the pause grows each time.
            failures = 1 if time.monotonic() - began > _STEADY_SECONDS else failures + 1
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause(failures))

    async def _live(self, grace: Callable[[], float]) -> None:
        """Have one connection, until it ends or we are stopped."""
        ended = asyncio.Event()
        client = await connect(self._server, ended, self._report_failure)
        try:
            subscribed = [await self._subscribe(client, each) for each in self._server.subjects]
            consumers = [
                Consumer(client, each, self._receiver, self._say) for each in self._server.streams
            ]
            tasks = [asyncio.create_task(each.run()) for each in consumers]
            # `subscribe` returns before the server has read of it: what is published until then
            # would come to nobody, though we say that we are subscribed. Twice, since the library
            # writes its first ping before what it still has to write.
            await client.flush()
            await client.flush()
            self.trouble = ""
            self._receiver.log.info("Subscribed to NATS", server=self._server.place)
            waits = [asyncio.create_task(each.wait()) for each in (ended, self._stopping)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            await _cancel(*waits, *tasks)
            if ended.is_set():
                self._say("The connection to NATS ended; it is made again")
                return
            for each in filter(None, subscribed):
                await each.drain()  # type: ignore[no-untyped-call]
            await asyncio.gather(*(each.leave(grace()) for each in consumers))
        finally:
            with suppress(Exception):
                await client.close()

    async def _subscribe(self, client: Client, subject: str) -> Subscription | None:
        share = _PENDING_BYTES // len(self._server.subjects)

        async def came(message: Msg) -> None:
            self._receiver.keep(message.subject, subject, message.headers, message.data)

        try:
            return await client.subscribe(
                subject,
                queue=GROUP,
                cb=came,
                pending_msgs_limit=_PENDING,
                # One message is always taken.
                pending_bytes_limit=max(share, client.max_payload),
            )
        except Exception as error:
            if client.is_closed:
                raise
            self._say("Cannot subscribe to a subject of NATS", subject=subject, why=in_words(error))
            return None

    def _report_failure(self, error: Exception) -> None:
        """Hear what the client library says beside its answers."""
        if type(error).__name__ == "SlowConsumerError":
            self._receiver.lost(
                getattr(error, "subject", ""), "they come faster than they are kept"
            )
        elif "permissions violation" in str(error).lower():
            self._say("NATS refuses a subscription", why=in_words(error))

    def _report_trouble(self, error: Exception) -> None:
        said = self._server.concealed(in_words(error))
        self.trouble = f"cannot subscribe to NATS at '{self._server.place}': {said}"
        self._say("Cannot subscribe to NATS, and keep trying", why=said)

    def _say(self, sentence: str, **more: str) -> None:
        """Log something, once a minute; never what proves us."""
        if self._limiter.allow(f"{sentence}{more.get('stream', '')}"):
            concealed = {name: self._server.concealed(text) for name, text in more.items()}
            self._receiver.log.warning(sentence, server=self._server.place, **concealed)


class Subscribed:
    """A thread with its loop, and in it all servers of one Secret."""

    def __init__(self, servers: Sequence[Server], receiver: Receiver) -> None:
        self._grace = 0.0
        self._ends = 0.0
        self._subscribers: list[Subscriber] = []
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run(servers, receiver)), name="nats", daemon=True
        )
        self._thread.start()
        self._ready.wait()

    def alive(self) -> bool:
        """Say if it still works."""
        return self._thread.is_alive()

    def trouble(self) -> str:
        """Say what keeps one of them from being subscribed; empty for nothing."""
        return next((each.trouble for each in self._subscribers if each.trouble), "")

    def stop(self, seconds: float) -> None:
        """Take no more; what is held may take so long to be sent."""
        self._grace = seconds
        self._ends = time.monotonic() + seconds + _JOIN_SECONDS
        with suppress(RuntimeError):  # Its loop has ended.
            for each in self._subscribers:
                self._loop.call_soon_threadsafe(each.stop)

    def join(self) -> None:
        """Wait until what was stopped has ended, or would not."""
        self._thread.join(max(0.0, self._ends - time.monotonic()))

    async def _run(self, servers: Sequence[Server], receiver: Receiver) -> None:
        self._loop = asyncio.get_running_loop()
        self._subscribers = [Subscriber(each, receiver) for each in servers]
        self._ready.set()
        await asyncio.gather(*(each.run(lambda: self._grace) for each in self._subscribers))


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
