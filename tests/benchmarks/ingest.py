"""How fast requests are answered: `python -m tests.benchmarks.ingest [REQUESTS] [ROUNDS]`.

Over TLS and a kept connection: the forwarder's batches, which are the default way, and admission
requests. No stage works on what comes of them. The floor is the health check of the same server:
TLS, HTTP and nothing of ours.
"""

from __future__ import annotations

import hashlib
import io
import json
import ssl
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import urllib3

from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.adapters.local.server import Server
from bellhop.api.kinds import parse_all, read_documents
from bellhop.logs import Log
from bellhop.runtime.embedded import serve
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from tests.benchmarks.figures import ROOT, beside, in_turns, run
from tests.fakes.fleet import service, with_address

SMALLEST = (2, 1)
LARGE = 100
"""What the forwarder sends at once at most."""


@contextmanager
def served() -> Iterator[tuple[urllib3.PoolManager, str]]:
    """Serve an installation that knows `fleet/east`; yield a client and where it is to send."""
    now = datetime.now(UTC)
    authority = make_authority("benchmark", now=now, validity=timedelta(hours=1))
    certificate, key = issue(authority, ["127.0.0.1"], now=now, validity=timedelta(hours=1))
    with tempfile.TemporaryDirectory() as folder:
        embedded = open_state(Path(folder), Settings())
        digest = hashlib.sha256(b"east").hexdigest()
        declare = embedded.installation.declare
        declare.register(
            Cluster("fleet", "east", {"env": "production"}, "v1.20.2", digest, datetime.now(UTC))
        )
        for path in sorted((ROOT / "docs/examples/service-discovery").glob("*.yaml")):
            declare.apply(parse_all(read_documents(path.read_text(), source=path.name)))
        app = serve._front(embedded.installation, Log(io.StringIO()))
        server = Server(app, host="127.0.0.1", port=0, certificate_pem=certificate, key_pem=key)
        server.start()
        trust = ssl.create_default_context(cadata=authority.certificate_pem.decode())
        pool = urllib3.PoolManager(ssl_context=trust, retries=False)
        try:
            yield pool, server.url
        finally:
            pool.clear()
            server.stop()
            embedded.close()


def timed(pool: urllib3.PoolManager, url: str, bodies: Sequence[bytes | None]) -> list[float]:
    """Return the ms of each request; those with a body are sent by POST."""
    times = []
    for body in bodies:
        begun = time.perf_counter()
        answer = pool.request("POST" if body else "GET", url, body=body)
        times.append((time.perf_counter() - begun) * 1000)
        assert answer.status == 200, answer.data
    return times


def batch(names: int, version: int) -> bytes:
    """Return what a forwarder sends after so many Services have changed."""
    items = []
    for number in range(names):
        found = with_address(service(f"web-{number}"))
        about = {"uid": f"u-{number}", "resourceVersion": str(version)}
        found["metadata"] = {**found["metadata"], **about}
        items.append({"object": found})
    kind = {"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": items}
    return json.dumps(kind).encode()


def main(requests: int = 1000, rounds: int = 5) -> None:
    """Print what each request takes beside the floor."""
    review = (ROOT / "tests/payloads/kube/admission-status-patch.json").read_bytes()
    each = max(1, requests // rounds)
    few = max(1, each // 20)
    versions = count(1)

    def batches(names: int, many: int) -> list[bytes | None]:
        return [batch(names, next(versions)) for _ in range(many)]

    with served() as (pool, url):
        health, inlet = f"{url}/healthz", f"{url}/clusters/fleet/east/east"
        first = timed(pool, inlet, batches(1, 5))
        blocks = {
            "floor": lambda: timed(pool, health, [None] * each),
            "a batch of 1": lambda: timed(pool, inlet, batches(1, each)),
            f"a batch of {LARGE}": lambda: timed(pool, inlet, batches(LARGE, few)),
            "an admission": lambda: timed(pool, inlet, [review] * each),
        }
        measured = in_turns(rounds, **blocks)
    beside(f"{rounds} rounds of {each} requests", measured)
    print("the first five batches, ms:", " ".join(f"{took:.1f}" for took in first))


if __name__ == "__main__":
    run(main)
