"""State of a former version goes on: a folder that it filled, in the middle of its work.

`d32470f9.json` has the two databases as SQL and the blobs, as that version wrote them, and the
objects of its clusters. An event and a resync are in flight, one cluster does not answer and has
yet to lose a profile that the other has lost, a changed profile waits for it, one that ended is
held, and timers are set.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import Identity
from bellhop.settings import Settings
from tests.fakes import rig
from tests.fakes.clock import FakeClock
from tests.fakes.fleet import Fleet
from tests.fakes.health import Watched
from tests.fakes.living import LivingKube

FORMER: dict[str, Any] = json.loads(Path(__file__).with_name("d32470f9.json").read_text())


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    for name in ("store", "queue"):
        database = sqlite3.connect(tmp_path / f"{name}.db")
        database.executescript("\n".join(FORMER[name]))
        database.close()
    for name, blob in FORMER["blobs"].items():
        place = tmp_path / "blobs" / name
        place.parent.mkdir(parents=True)
        place.write_bytes(base64.b64decode(blob))
    clock = FakeClock(datetime.fromisoformat(FORMER["now"]))
    settings = Settings(adopt="always", hold_from=2, hold_share=0.4, hold_agreement=0)
    fleet = Watched(tmp_path, settings, clock)
    for name, held in FORMER["clusters"].items():
        kube = fleet.access.clusters[f"fleet/{name}"] = LivingKube(f"fleet/{name}")
        for each, part in ((kube._objects, "objects"), (kube._applied, "applied")):
            each.clear()
            each.update({Identity(*row[:4]): row[4] for row in held[part]})
    return fleet


def deployed(fleet: Fleet) -> dict[str, dict[str, str]]:
    """Return what profiles have deployed to each cluster: ConfigMaps, with their one value."""
    return {
        name: {each: data["v"] for each, data in kube.data().items() if "v" in data}
        for name, kube in fleet.access.clusters.items()
    }


def work(fleet: Fleet) -> None:
    """Let time pass, and work, until nothing is due nor becomes due soon."""
    for _ in range(6):
        fleet.wait(timedelta(minutes=3))
        rig.tick(fleet)


def test_all_that_was_in_progress_goes_on(fleet: Fleet) -> None:
    """The event is deployed, the cluster that answers again catches up, the hold stays a hold."""
    there = {"each-east-service-a": "v1", "each-east-service-b": "v1", "then": "1"}
    assert deployed(fleet) == {
        "fleet/east": {**there, "then": "2"},
        "fleet/west": {**there, "team": "1"},
    }

    work(fleet)

    there |= {"each-east-service-c": "v2", "then": "2"}
    assert deployed(fleet) == {"fleet/east": there, "fleet/west": there}
    assert [each.source for each in fleet.records.holds.all()] == ["watched"]

    rig.release_held(fleet)
    work(fleet)

    del there["each-east-service-b"]
    assert deployed(fleet) == {"fleet/east": there, "fleet/west": there}
    for cluster in ("east", "west"):
        assert {*rig.outcomes(fleet, cluster).values()} == {("Provisioned", "")}
    assert rig.left_over(fleet) == []
    fleet.close()
