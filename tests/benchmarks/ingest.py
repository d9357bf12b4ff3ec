"""How fast an admission request is answered: `python -m tests.benchmarks.ingest [REQUESTS]`.

Over TLS and a kept connection, by the embedded mode. The floor is the health check of the same
server in the same run: TLS, HTTP and the framework, and nothing of ours.
"""

from __future__ import annotations

import hashlib
import io
import json
import ssl
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import urllib3

from bellhop.embedded.serve import running
from bellhop.embedded.state import open_state
from bellhop.logs import Log
from bellhop.model.kinds import parse_all, read_documents
from bellhop.model.record import Cluster
from bellhop.settings import Settings

ROOT = Path(__file__).parents[2]


def timed(pool: urllib3.PoolManager, verb: str, url: str, body: bytes, count: int) -> list[float]:
    """Return the ms of each of `count` requests."""
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        answer = pool.request(verb, url, body=body or None)
        times.append((time.perf_counter() - begun) * 1000)
        assert answer.status == 200, answer.data
    return times


def main(count: int) -> None:
    """Print p50 and p99 beside the floor's."""
    review = json.loads((ROOT / "tests/payloads/kube/admission-status-patch.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        opened = open_state(state, Settings())
        digest = hashlib.sha256(b"east").hexdigest()
        labels = {"env": "production"}
        opened.installation.declare.register(
            Cluster("fleet", "east", labels, "v1.20.2", digest, datetime.now(UTC))
        )
        for path in sorted((ROOT / "docs/examples/service-discovery").glob("*.yaml")):
            kinds = parse_all(read_documents(path.read_text(), source=path.name))
            opened.installation.declare.apply(kinds)
        opened.close()
        with running(state, Settings(), Log(io.StringIO()), "127.0.0.1", 0) as url:
            authority = json.loads((state / "address.json").read_text())["ca"]
            pool = urllib3.PoolManager(ssl_context=ssl.create_default_context(cadata=authority))
            floor = timed(pool, "GET", f"{url}/healthz", b"", count)
            body = json.dumps(review).encode()
            ingest = timed(pool, "POST", f"{url}/clusters/fleet/east/east", body, count)
            pool.clear()
    print(f"{count} requests  p50 ms  p99 ms")
    for name, times in (("admission", ingest), ("floor", floor)):
        cut = statistics.quantiles(times, n=100)
        print(f"{name:<13} {cut[49]:>7.2f} {cut[98]:>7.2f}")
    print(f"{'ratio':<13} {statistics.median(ingest) / statistics.median(floor):>7.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
