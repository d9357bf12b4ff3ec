"""The forwarder in figures: `python -m tests.infra.forwarder_figures [EVENTS]`.

A real API server, a real forwarder and an ingest that takes everything at once, on one machine.
Writes with the webhook (ConfigMaps) alternate with writes without (Secrets), so that both see the
same load.
"""

from __future__ import annotations

import json
import ssl
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import urllib3

from infra.lab.binaries import find
from infra.lab.control_plane import ControlPlane
from tests.infra.forwarder_rig import PATH, Rig, rigged

SECRETS = "/api/v1/namespaces/default/secrets"


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as name, ControlPlane(find(), Path(name) / "lab") as plane:
        folder = Path(name) / "rig"
        folder.mkdir()
        with rigged(folder, plane.start_cluster("source")) as rig:
            rig.grant()
            rig.instruct()
            begun = time.monotonic()
            rig.start()
            rig.wait()
            tell("ready after its start", f"{time.monotonic() - begun:.2f} s")
            rig.hook()
            rig.await_ringing()
            tell("memory at rest", rss(rig))
            latency(rig, events)
            tell("memory afterwards", rss(rig))
            rate(rig)
            tell("memory afterwards", rss(rig))
            large(rig)
            tell("memory afterwards", f"{rss(rig)}, at most {rss(rig, 'VmHWM')}")


def latency(rig: Rig, events: int) -> None:
    hooked, bare = [], []
    for number in range(events):
        begun = time.perf_counter()
        rig.api.create(f"event-{number}", a="b")
        hooked.append(time.perf_counter() - begun)
        time.sleep(0.02)
        begun = time.perf_counter()
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"event-{number}"}}
        rig.api.do("POST", SECRETS, secret)
        bare.append(time.perf_counter() - begun)
        time.sleep(0.02)
    rig.settle()
    sent = [
        arrived - datetime.fromisoformat(item["rang"]).timestamp()
        for item, arrived in zip(rig.inbox.items, rig.inbox.times, strict=True)
    ]
    tell("from hint to sent", f"{spread(sent)} over {len(sent)} events")
    tell("write with the webhook", spread(hooked))
    tell("write without", spread(bare))


def rate(rig: Rig) -> None:
    """Ring on four connections, about objects that are not there."""
    context = ssl.create_default_context(cadata=rig.authority.certificate_pem.decode())
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    seconds: list[float] = []
    lock = threading.Lock()

    def ring(worker: int) -> None:
        mine = []
        with urllib3.PoolManager(ssl_context=context, retries=False) as pool:
            for number in range(1000):
                metadata = {"uid": f"u{worker}-{number}", "resourceVersion": "1"}
                request = {"uid": "u", "operation": "DELETE", "kind": kind, "namespace": "default"}
                subject = {"name": f"n{worker}-{number}", "oldObject": {"metadata": metadata}}
                body = json.dumps({"request": {**request, **subject}}).encode()
                begun = time.perf_counter()
                pool.request("POST", rig.url + PATH, body=body)
                mine.append(time.perf_counter() - begun)
        with lock:
            seconds.extend(mine)

    begun = time.monotonic()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(ring, range(4)))
    rang = time.monotonic() - begun
    tell("hints on four connections", f"{4000 / rang:.0f}/s, answered in {spread(seconds)}")
    rig.settle()
    tell("all of them sent", f"after {time.monotonic() - begun:.1f} s")


def large(rig: Rig) -> None:
    """Ring with eight reviews at once that are near the limit."""
    data = {f"key-{number}": "x" * 20 for number in range(90_000)}
    body = json.dumps({"request": {"uid": "u", "operation": "UPDATE", "object": {"data": data}}})
    begun = time.monotonic()
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: rig.ring(body.encode())[0], range(24)))
    assert set(answers) == {200}
    megabytes = len(body) / 2**20
    tell(
        f"24 reviews of {megabytes:.1f} MiB, 8 at once", f"{time.monotonic() - begun:.2f} s in all"
    )


def spread(seconds: list[float]) -> str:
    ordered = sorted(each * 1000 for each in seconds)
    median, high = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    return f"p50 {median:.1f} ms, p99 {high:.1f} ms"


def rss(rig: Rig, field: str = "VmRSS") -> str:
    status = Path(f"/proc/{rig.process.pid}/status").read_text()
    kilobytes = int(status.split(f"{field}:")[1].split()[0])
    return f"{kilobytes / 1024:.0f} MiB"


def tell(what: str, value: str) -> None:
    sys.stdout.write(f"{what:32} {value}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
