"""Serve Cloud Monitoring's time series on this machine, as far as who asks how much waits goes.

    with Monitoring() as monitoring:
        monitoring.report("bellhop-evaluate", "num_undelivered_messages", 12, at=now)
        Services("a-project", emulators={"MONITORING_EMULATOR_HOST": monitoring.address})

It answers with the points of one metric of one subscription in an interval, newest first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.lab.http_server import HttpServer, Request, Response

_PATH = re.compile(r"/v3/projects/[^/]+/timeSeries")
_FILTER = re.compile(
    r'metric\.type = "pubsub\.googleapis\.com/subscription/(\w+)"'
    r' AND resource\.labels\.subscription_id = "([^"]+)"'
)
_NEEDED = {"filter", "interval.startTime", "interval.endTime"}


class Monitoring(HttpServer):
    """One project's measurements, as tests set them."""

    def __init__(self) -> None:
        super().__init__()
        self._points: dict[tuple[str, str], list[tuple[datetime, int]]] = defaultdict(list)
        self._refusal = 0

    def report(self, subscription: str, metric: str, value: int, *, at: datetime) -> None:
        """Note what was measured."""
        self._points[metric, subscription].append((at, value))

    def refuse(self, status: int) -> None:
        """Answer with an HTTP status from now on; 0 answers again."""
        self._refusal = status

    def respond(self, request: Request) -> Response:
        """Answer a request as Cloud Monitoring does."""
        return Response.of(*self._measured(request.target))

    def _measured(self, target: str) -> tuple[int, dict[str, Any]]:
        parts = urlsplit(target)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        matched = _FILTER.fullmatch(asked.get("filter", ""))
        if self._refusal:
            return self._refusal, {"error": {"code": self._refusal}}
        if not (_PATH.fullmatch(parts.path) and matched and asked.keys() >= _NEEDED):
            return 400, {"error": {"code": 400, "status": "INVALID_ARGUMENT"}}
        first, last = (
            datetime.fromisoformat(asked[f"interval.{end}Time"]) for end in ("start", "end")
        )
        points = sorted(self._points[matched[1], matched[2]], reverse=True)
        found = [_point(at, value) for at, value in points if first < at <= last]
        # As the real one, it says nothing where nothing was measured.
        return 200, {"timeSeries": [{"points": found}]} if found else {}


def _point(at: datetime, value: int) -> dict[str, Any]:
    moment = at.isoformat()
    return {
        "interval": {"startTime": moment, "endTime": moment},
        # Google writes numbers of 64 bits as text.
        "value": {"int64Value": str(value)},
    }
