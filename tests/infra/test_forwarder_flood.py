"""A flood of messages of NATS, and a kill after it: a real forwarder beside a cluster."""

from __future__ import annotations

import asyncio
import threading
from http import HTTPStatus
from pathlib import Path

import nats

from bellhop.registration.forwarder_manifests import messaging_rights
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from tests.infra.forwarder_rig import rigged
from tests.infra.nats_rig import NAMESPACE, configuration, happened, program, secret
from tests.lab.nats import Nats
from tests.waiting import eventually

MANY = 4000


def test_a_flood_delays_no_event_and_a_kill_loses_none(
    tmp_path: Path, source_cluster: Cluster
) -> None:
    """While ingest takes no events, objects arrive as ever; what came is there after kill -9."""
    with Nursery() as nursery, rigged(tmp_path, source_cluster) as rig:
        (tmp_path / "nats").mkdir()
        server = Nats(program(), tmp_path / "nats", nursery)
        server.start()
        entry = configuration(url=server.url, subjects=["flood"])
        for manifest in (NAMESPACE, *messaging_rights(), secret(entry)):
            rig.admin.apply(manifest)
        rig.inbox.events_status = HTTPStatus.SERVICE_UNAVAILABLE
        rig.ready()
        eventually("it is subscribed", lambda: "Subscribed to NATS" in rig.log.read_text())
        flood = threading.Thread(target=lambda: asyncio.run(_flood(server.url)))
        flood.start()
        for number in range(10):
            rig.api.create(f"made-{number}")
            eventually("it is sent", lambda: rig.inbox.named(f"made-{number}"))  # noqa: B023 - it is asked at once
        flood.join()
        eventually("all is kept", lambda: rig.metric("events_kept") == MANY)
        rig.kill()
        rig.inbox.events_status = HTTPStatus.OK
        rig.start()
        rig.wait()
        eventually("all was sent", lambda: len(rig.inbox.events) >= MANY)

        assert {each["id"] for each in rig.inbox.events} == {f"{each}" for each in range(MANY)}
        assert rig.metric("events_dropped_total") == 0


async def _flood(url: str) -> None:
    client = await nats.connect(url)
    for number in range(MANY):
        await client.publish("flood", happened(number))
        if number % 100 == 0:
            await client.flush()
    await client.flush()
    await client.close()
