"""How far an API server's clock is from ours, by the time in each of its answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.address_policy import LOCAL
from bellhop.errors import BellhopError

MARGIN = timedelta(minutes=1)


class _Handler(BaseHTTPRequestHandler):
    status = 200
    date = ""

    def do_GET(self) -> None:
        body = b'{"gitVersion": "v1.20.2"}'
        self.send_response_only(self.status)
        if self.date:
            self.send_header("Date", self.date)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def handler() -> type[_Handler]:
    class Handler(_Handler):
        pass

    return Handler


@pytest.fixture
def kube(handler: type[_Handler]) -> Iterator[KubeClient]:
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    client = KubeClient(
        "prod/eu-1", Kubeconfig(f"http://127.0.0.1:{server.server_port}"), reach=LOCAL
    )
    yield client
    client.close()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("status", [200, 403])
@pytest.mark.parametrize("minutes", [-15, 0, 15])
def test_returns_the_skew_of_a_clock(
    kube: KubeClient, handler: type[_Handler], minutes: int, status: int
) -> None:
    """By an answer as by a refusal, on either side."""
    ahead = timedelta(minutes=minutes)
    handler.date = format_datetime(datetime.now(UTC) + ahead, usegmt=True)
    handler.status = status
    try:
        kube.version()
    except BellhopError:
        assert status == 403

    assert kube.skew is not None
    assert abs(kube.skew - ahead) < MARGIN


@pytest.mark.parametrize("date", ["", "yesterday", "Thu, 99 Jan 2026 12:00:00 GMT", "\xff"])
def test_has_no_skew_without_a_date(kube: KubeClient, handler: type[_Handler], date: str) -> None:
    """No answer yet, no date, or none that can be read."""
    assert kube.skew is None
    handler.date = date
    kube.version()

    assert kube.skew is None
