"""Pages of a list that fit: of fewer objects where so many exceed the limit of an answer."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from msgspec.structs import replace

from bellhop.adapters.egress.answer import LateError
from bellhop.adapters.egress.client import LARGEST
from bellhop.adapters.kube.refusal import Call, Refusal
from bellhop.adapters.kube.transport import Request, Sends
from bellhop.core.gvk import GVK
from bellhop.errors import TooLargeError

_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_LARGE = f"larger than {LARGEST >> 20} MiB as JSON"


class PageSizes:
    """The sizes of pages, by kind; shared between threads."""

    def __init__(self) -> None:
        # How many objects of a kind a page holds at most, where pages turned out too large.
        self._fitting: dict[GVK, int] = {}
        # The kinds of which it was one object: their pages grow again.
        self._growing: set[GVK] = set()

    def read(
        self, transport: Sends, request: Request, gvk: GVK, limit: int, call: Call
    ) -> tuple[Any, str]:
        """Read a page of at most `limit` objects; return it, and why it has metadata only.

        It has only the metadata of one object that is too large by itself.
        """
        while True:
            size = max(1, min(limit, self._fitting.get(gvk, limit)))
            try:
                answer = transport.ask(_limit(request, size), call)
            except TooLargeError:
                self._growing.discard(gvk)
                if size == 1:
                    return self._read_metadata(transport, request, gvk, call), _LARGE
                self._fitting[gvk] = size // 2
            except LateError:
                # The next try asks for less; this one has taken its time.
                self._fitting[gvk] = max(1, size // 2)
                raise
            else:
                if gvk in self._growing:
                    self._fitting[gvk] = max(2 * size, self._fitting[gvk])
                return answer, ""

    def _read_metadata(self, transport: Sends, request: Request, gvk: GVK, call: Call) -> Any:
        """Read the metadata of one object that is too large; pages grow again after it."""
        self._growing.add(gvk)
        answer = transport.ask(replace(_limit(request, 1), accept=_METADATA), call)
        if isinstance(answer, Refusal) and answer.code == HTTPStatus.NOT_ACCEPTABLE:
            raise TooLargeError(f"{call}: an object is {_LARGE}")
        return answer


def _limit(request: Request, size: int) -> Request:
    return replace(request, query={"limit": str(size), **(request.query or {})})
