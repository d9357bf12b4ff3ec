"""A TCP proxy that lets nothing through until something has happened."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.waiting import PATIENCE

_SECONDS = 20.0 * PATIENCE


@contextmanager
def gate(server: str, opens: Callable[[], bool]) -> Iterator[str]:
    """Yield an address whose connections wait until `opens`; after a while they are closed."""
    loop, ready, address = asyncio.new_event_loop(), threading.Event(), []
    deadline = time.monotonic() + _SECONDS

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # Another thread or process makes it open, so there is no event to await.
            while not opens() and time.monotonic() < deadline:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            if opens():
                host, _, port = server.rpartition(":")
                far_reader, far_writer = await asyncio.open_connection(host, int(port))
                await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        finally:
            writer.close()

    async def serve(stopped: asyncio.Event) -> None:
        async with await asyncio.start_server(connected, "127.0.0.1", 0) as listener:
            address.append("127.0.0.1:{1}".format(*listener.sockets[0].getsockname()))
            ready.set()
            await stopped.wait()
        # Connections that are open still would outlive their loop.
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)

    stopped = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(stopped),))
    thread.start()
    ready.wait()
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
        loop.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError):
            while read := await reader.read(65536):
                writer.write(read)
                await writer.drain()
    finally:
        writer.close()
