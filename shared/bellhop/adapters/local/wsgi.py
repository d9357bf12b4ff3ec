"""The ASGI app around a WSGI app: it admits by the head, limits each sender, and works in threads.

A thread is taken only for what has arrived: to look at a head, and to serve a whole request.
"""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

from bellhop.adapters.local.http_app import Admission, Answer, App, Environ, Guarded, run
from bellhop.adapters.local.protocol import ANSWER_SECONDS, HardenedProtocol, SenderLimiter

BODY_SECONDS = 30.0
"""How long the body of a request that was admitted may take: 4 MiB at 140 KB/s."""

T = TypeVar("T")


class WsgiAdapter:
    """The ASGI app that uvicorn calls for each request of a `HardenedProtocol`."""

    def __init__(self, app: App, threads: int) -> None:
        self.senders = SenderLimiter()
        self._app = app
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="bellhop-request")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        connection: HardenedProtocol = scope["state"]["connection"]
        connection.hold()
        environ = environ_of(scope)
        found = await self._in_thread(self._admit, environ)
        if not connection.busy:
            return
        if isinstance(found, Answer):
            connection.close_with(found)
        elif int(environ.get("CONTENT_LENGTH", "0")) > found.limit:
            _refuse_length(connection, found.limit)
        else:
            answer = await self._serve(connection, found, environ, receive)
            if answer is not None:
                await _send(connection, answer, send)

    def close(self) -> None:
        """Let the threads finish what they are at."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _admit(self, environ: Environ) -> Admission | Answer:
        return self._app.admit(environ) if isinstance(self._app, Guarded) else Admission()

    async def _serve(
        self, connection: HardenedProtocol, admission: Admission, environ: Environ, receive: Any
    ) -> Answer | None:
        """Return the answer to an admitted request; None where it never became whole."""
        try:
            connection.waiting = asyncio.current_task()
            async with self.senders.of(admission.sender):
                connection.waiting = None
                body = await _read(connection, admission.limit, receive)
                if body is None:
                    return None
                answer = await self._in_thread(run, self._app, environ, body)
        except asyncio.CancelledError:
            # The client has left the line.
            return None
        # Some can be authenticated only with their body: a refused one has proved nothing.
        if admission.sender and connection.busy and answer.code != HTTPStatus.UNAUTHORIZED:
            connection.prove()
        return answer

    async def _in_thread(self, act: Callable[..., T], *given: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, act, *given)


async def _read(connection: HardenedProtocol, limit: int, receive: Any) -> bytes | None:
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more and len(body) <= limit:
                message = await receive()
                body += message.get("body", b"")
                more = message.get("more_body", False)
    except TimeoutError:
        connection.refuse(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time")
    # `receive` reads on after the last byte: pipelined requests would fill our memory.
    connection.hold()
    if len(body) > limit:
        _refuse_length(connection, limit)
    return bytes(body) if connection.busy else None


async def _send(connection: HardenedProtocol, answer: Answer, send: Any) -> None:
    headers = answer.raw_headers(last=not connection.cycle.keep_alive)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await send({"type": "http.response.start", "status": answer.code, "headers": headers})
            await send({"type": "http.response.body", "body": answer.body})
    except TimeoutError:
        connection.drop()


def _refuse_length(connection: HardenedProtocol, limit: int) -> None:
    why = f"a body has at most {limit} bytes here; send less at once"
    connection.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)


def environ_of(scope: Any) -> Environ:
    """Return an ASGI request's head as WSGI has it; the input is empty until there is a body."""
    environ: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "REMOTE_ADDR": scope["client"][0] if scope["client"] else "",
        "SERVER_NAME": "bellhop",
        "SERVER_PORT": str(scope["server"][1]),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for raw, value in scope["headers"]:
        name, text = raw.decode("latin-1").upper(), value.decode("latin-1")
        # `X_Y` and `X-Y` would be one name in here: the odd one is nobody's.
        if "_" in name or name == "TRANSFER-ENCODING":
            continue
        key = name.replace("-", "_")
        key = key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"
        environ[key] = f"{environ[key]}, {text}" if key in environ else text
    return environ
