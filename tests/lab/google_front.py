"""Stand before a server that speaks gRPC: count its requests, and fail on demand.

    with Front(firestore.address) as front:
        front.fail("Commit", served=True)   # done, and the answer is lost
        front.requests()                    # {"Commit": 1}

What a `judge` does not allow is denied. The rest is passed on as it is given, byte by byte: one
request, and as many answers as there are; of services no more is known here than the names of
methods. Who `watches` is told of each request that was served, who waits for its answer, and what
it said, before that one has it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import grpc
from grpc.experimental import ChannelOptions

_UNLIMITED = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
_PASSING = (
    *_UNLIMITED,
    # Who asks waits for his own answer: no thread of the channel's brings it, whose end nobody saw
    # and after which all that is asked over the channel waits for ever.
    (ChannelOptions.SingleThreadedUnaryStream, 1),
    # A server that comes back is found at once, as by those who call it themselves.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)


@dataclass(frozen=True)
class _Fault:
    operation: str
    code: grpc.StatusCode
    served: bool


Authorize = Callable[[str, bytes], bool]
"""Says of a method and its request whether it may be made."""

Watch = Callable[[str, str, bytes], None]
"""Is called with a method's name, the caller's address, as gRPC writes it, and the request."""


class Front(grpc.GenericRpcHandler):  # type: ignore[misc]
    """One server in this process, before another one."""

    def __init__(
        self,
        address: str,
        *,
        authorize: Authorize = lambda _method, _request: True,
        watches: Watch = lambda _operation, _peer, _request: None,
    ) -> None:
        self._authorize = authorize
        self._watches = watches
        self._channel = grpc.insecure_channel(address, options=_PASSING)
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._faults: list[_Fault] = []
        self._pool = futures.ThreadPoolExecutor(16, thread_name_prefix="front")
        self._server = grpc.server(self._pool, handlers=[self], options=_UNLIMITED)
        self._port = self._server.add_insecure_port("127.0.0.1:0")

    @property
    def address(self) -> str:
        """Return the address on which it listens."""
        return f"127.0.0.1:{self._port}"

    def requests(self) -> dict[str, int]:
        """Count the requests since this was asked last, by method."""
        with self._lock:
            found, self._requests = dict(self._requests), Counter()
            return found

    def fail(
        self, operation: str, code: str = "UNAVAILABLE", *, served: bool = False, times: int = 1
    ) -> None:
        """Have the next requests for a method fail; `served` says that each is done before.

        With the code OK they end well, and nothing is answered.
        """
        with self._lock:
            self._faults += [_Fault(operation, grpc.StatusCode[code], served)] * times

    def forgive(self) -> None:
        """Forget the failures that were asked for and did not happen yet."""
        with self._lock:
            self._faults.clear()

    def service(self, handler_call_details: Any) -> Any:
        """Return what handles a call: of whatever kind it is, bytes go in and bytes come out."""
        method = handler_call_details.method

        def handle(asked: Iterable[bytes], context: Any) -> Iterator[bytes]:
            return iter(self._pass_on(method, asked, context))

        return grpc.stream_stream_rpc_method_handler(handle)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.stop(None).wait()
        self._channel.close()
        # What is still in flight has just been cut off: nobody of ours is left to fail later.
        self._pool.shutdown()

    def _pass_on(self, method: str, asked: Iterable[bytes], context: Any) -> Sequence[bytes]:
        """Return the answers to a request, all of them at once.

        Were they yielded, who asked could leave in between, and a generator half-way be left to
        whoever collects garbage.
        """
        operation = method.rpartition("/")[2]
        fault = self._note(operation)
        if fault and not fault.served:
            if fault.code is not grpc.StatusCode.OK:
                context.abort(fault.code, "as told")
            return ()
        # A caller that cancels its call at once has asked nothing.
        request = next(iter(asked), None)
        if request is None:
            return ()
        if not self._authorize(method, request):
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "as judged")
        metadata = [
            each for each in context.invocation_metadata() if each.key.startswith("x-goog-")
        ]
        call = self._channel.unary_stream(method)
        answers: Sequence[bytes] = ()
        try:
            answers = list(call(request, metadata=metadata, timeout=context.time_remaining()))
        except grpc.RpcError as error:
            if not fault:
                context.abort(error.code(), error.details())
        self._watches(operation, context.peer(), request)
        if fault:
            context.abort(fault.code, "as told")
        return answers

    def _note(self, operation: str) -> _Fault | None:
        with self._lock:
            self._requests[operation] += 1
            found = next((each for each in self._faults if each.operation == operation), None)
            if found:
                self._faults.remove(found)
            return found
