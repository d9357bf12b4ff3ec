"""The forwarder: `python -m tests.benchmarks.forwarder [EVENTS] [ROUNDS] [HINTS] [LARGE]`.

A real API server, a real forwarder and an ingest that takes everything at once, on one machine.
Writes with the webhook (ConfigMaps) and the floor, writes without (Secrets), take turns. Then come
HINTS about objects that are not there, on four connections, and LARGE reviews near the limit.
"""

from __future__ import annotations

import json
import ssl
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import count
from pathlib import Path

import urllib3

from infra.lab.control_plane import ControlPlane
from tests.benchmarks.figures import beside, in_turns, lab, percentile, run
from tests.infra.forwarder_rig import PATH, Rig, rigged

SMALLEST = (2, 1, 8, 2)
CONNECTIONS = 4
_SECRETS = "/api/v1/namespaces/default/secrets"
_SETTLE_SECONDS = 0.02

_numbers = count()


def main(
    events: int = 200,
    rounds: int = 5,
    hints: int = 4000,
    reviews: int = 24,
    *,
    plane: ControlPlane | None = None,
) -> None:
    """Print what a write costs and when it is sent, how many hints are taken, and the memory."""
    with (
        lab(plane, "source") as [cluster],
        tempfile.TemporaryDirectory() as folder,
        rigged(Path(folder), cluster) as rig,
    ):
        rig.grant()
        rig.instruct()
        begun = time.monotonic()
        rig.start()
        rig.wait()
        print(f"ready {time.monotonic() - begun:.2f} s after its start")
        rig.hook()
        rig.await_webhook()
        print(f"memory at rest: {resident(rig)}")
        each = max(1, events // rounds)
        blocks = {
            "a write with the webhook": lambda: hooked(rig, each),
            "floor": lambda: bare(rig, each),
        }
        beside(f"{rounds} rounds of {each} writes", in_turns(rounds, **blocks))
        rig.settle()
        sent = [
            (arrived - datetime.fromisoformat(item["rang"]).timestamp()) * 1000
            for item, arrived in zip(rig.inbox.items, rig.inbox.times, strict=True)
        ]
        middle, late = percentile(sent, 50), percentile(sent, 99)
        print(f"from hint to sent: p50 {middle:.1f} ms, p99 {late:.1f} ms")
        send_hints(rig, hints)
        print(f"memory afterwards: {resident(rig)}")
        large(rig, reviews)
        print(f"memory afterwards: {resident(rig)}, at most {resident(rig, 'VmHWM')}")


def hooked(rig: Rig, events: int) -> list[float]:
    """Return the ms of creating ConfigMaps, for which the webhook is called."""
    return [timed(lambda: rig.api.create(f"event-{next(_numbers)}", a="b")) for _ in range(events)]


def bare(rig: Rig, events: int) -> list[float]:
    """Return the ms of creating Secrets, for which no webhook is called."""

    def create() -> None:
        about = {"name": f"event-{next(_numbers)}"}
        rig.api.do("POST", _SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": about})

    return [timed(create) for _ in range(events)]


def timed(act: Callable[[], object]) -> float:
    """Return the ms that something takes, and leave a pause behind it."""
    begun = time.perf_counter()
    act()
    took = (time.perf_counter() - begun) * 1000
    time.sleep(_SETTLE_SECONDS)
    return took


def send_hints(rig: Rig, hints: int) -> None:
    """Call the webhook on four connections, about objects that do not exist."""
    context = ssl.create_default_context(cadata=rig.authority.certificate_pem.decode())
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}

    def call_with_large_reviews(worker: int) -> list[float]:
        times = []
        with urllib3.PoolManager(ssl_context=context, retries=False) as pool:
            for number in range(hints // CONNECTIONS):
                metadata = {"uid": f"u{worker}-{number}", "resourceVersion": "1"}
                request = {"uid": "u", "operation": "DELETE", "kind": kind, "namespace": "default"}
                subject = {"name": f"n{worker}-{number}", "oldObject": {"metadata": metadata}}
                body = json.dumps({"request": {**request, **subject}}).encode()
                begun = time.perf_counter()
                pool.request("POST", rig.url + PATH, body=body)
                times.append((time.perf_counter() - begun) * 1000)
        return times

    begun = time.monotonic()
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        times = [
            took
            for found in threads.map(call_with_large_reviews, range(CONNECTIONS))
            for took in found
        ]
    sent = time.monotonic() - begun
    rig.settle()
    sent = time.monotonic() - begun
    print(f"{len(times)} hints: {len(times) / sent:.0f} a second, answered in", end=" ")
    print(f"p50 {percentile(times, 50):.1f} ms, all sent after {sent:.1f} s")


def large(rig: Rig, reviews: int) -> None:
    """Call the webhook with reviews that are near the limit, eight at once."""
    data = {f"key-{number}": "x" * 20 for number in range(90_000)}
    body = json.dumps({"request": {"uid": "u", "operation": "UPDATE", "object": {"data": data}}})
    begun = time.monotonic()
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: rig.ring(body.encode())[0], range(reviews)))
    assert set(answers) == {200}
    took = time.monotonic() - begun
    print(f"{reviews} reviews of {len(body) / 2**20:.1f} MiB, 8 at once: {took:.2f} s in all")


def resident(rig: Rig, field: str = "VmRSS") -> str:
    """Return the memory of the forwarder, now or at most."""
    status = Path(f"/proc/{rig.process.pid}/status").read_text()
    return f"{int(status.split(f'{field}:')[1].split()[0]) / 1024:.0f} MiB"


if __name__ == "__main__":
    run(main)
