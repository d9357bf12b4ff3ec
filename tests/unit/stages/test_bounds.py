"""Stages over records that are as large as a fleet makes them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.core.gvk import GVK, Resource
from bellhop.errors import DeniedError, InvalidError
from bellhop.resync.progress import MOST_UNSEEN
from bellhop.state import messages
from bellhop.state.messages import Apply, Resync
from bellhop.state.record import MOST_LABELS, Profile, ResyncProgress
from tests.fakes.fleet import Fleet, service

EAST = "fleet/east"
EVERYWHERE = tuple(f"fleet-of-europe/cluster-number-{number:06}" for number in range(50_000))


ODD = "odd.example.org"


def source(name: str, *kinds: str) -> str:
    groups = {kind: ODD if kind.startswith("Odd") else "" for kind in kinds}
    selectors = ", ".join(
        f"{{group: '{group}', version: v1, kind: {kind}}}" for kind, group in groups.items()
    )
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: {name}}}
spec: {{resourceSelectors: [{selectors}]}}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {{name: {name}}}
spec:
  sourceClusterSelector: {{matchLabels: {{env: production}}}}
  eventSourceName: {name}
  oneForEvent: true
  policyRefs: [{{kind: ConfigMap, name: {name}, namespace: default}}]
"""


def sweep(fleet: Fleet) -> int:
    """Sweep the cluster; return how many objects that had evaluated."""
    fleet.publisher.publish([Resync(EAST)])
    told = 0
    while deliveries := fleet.queues["sweep"].receive(1, wait=timedelta(0)):
        fleet.work("sweep", deliveries)
    while deliveries := fleet.queues["review"].receive(1, wait=timedelta(0)):
        told += len(deliveries)
        fleet.work("review", deliveries)
    return told


@pytest.mark.rest
def test_a_cluster_judged_by_hundreds_of_sources_is_swept_in_peace(fleet: Fleet) -> None:
    """What it was judged by is known to the next sweep; where that is lost, all is judged anew.

    It takes seconds: seven hundred sources are applied and evaluated.
    """
    fleet.register("east", env="production").put(service("web"))
    fleet.apply(*(source(f"source-with-a-long-name-{n:0>200}", "Service") for n in range(700)))
    assert sweep(fleet) == 1
    assert len(fleet.records.health.get(EAST).value.judgement) == 700
    assert fleet.records.health.head(EAST).judgement == {}
    assert sweep(fleet) == 0
    for shard in "0123456789abcdef":
        for item in list(fleet.store.query(f"payload/health/{shard}")):
            fleet.store.delete(item.partition, item.sort)

    assert sweep(fleet) == 1
    assert sweep(fleet) == 0
    assert fleet.records.health.head(EAST).swept_at == fleet.clock.now()


def test_a_cluster_of_which_hardly_a_kind_may_be_listed_is_down(fleet: Fleet) -> None:
    """Up to so many are passed over, and named; of more nobody may say that it was swept."""
    east = fleet.register("east", env="production")
    east.put(service("web"))
    page = east.page

    def refuse(gvk: Any, **more: Any) -> Any:
        if gvk.kind.startswith("Odd"):
            raise DeniedError(f"{gvk.kind} is forbidden")
        return page(gvk, **more)

    east.page = refuse  # type: ignore[method-assign]
    odd = [f"Odd{number:03}" for number in range(MOST_UNSEEN + 1)]
    for kind in odd:
        east.serve(Resource(GVK(ODD, "v1", kind), kind.lower() + "s", namespaced=True))
    fleet.apply(source("odd", *odd[:-1], "Service"))
    assert sweep(fleet) == 1
    assert fleet.records.health.get(EAST).value.state == "Healthy"

    fleet.apply(source("more", odd[-1]))
    sweep(fleet)
    health = fleet.records.health.get(EAST).value
    assert (health.state, health.message) == ("Down", f"{odd[-1]} is forbidden")


def test_a_walk_that_owes_very_much_evaluates_everything(fleet: Fleet) -> None:
    """Begun anew, it need not remember what of each kind was not told."""
    east = fleet.register("east", env="production")
    east.put(service("web"))
    fleet.apply(source("a", "Service"))
    assert sweep(fleet) == 1
    assert sweep(fleet) == 0
    untold = {f"/v1/Odd{number:03}": "default/web" for number in range(MOST_UNSEEN + 1)}
    fleet.records.walks.put(EAST, ResyncProgress("of-other-sources", "other", "", untold=untold))

    assert sweep(fleet) == 1
    assert fleet.records.walks.get(EAST) is None


def test_a_cluster_with_too_many_labels_is_refused(fleet: Fleet) -> None:
    """Nothing of it is changed."""
    fleet.register("east", env="production")
    more: dict[str, str | None] = {f"label-{number}": "yes" for number in range(MOST_LABELS)}

    with pytest.raises(InvalidError, match="'fleet/east' 257 labels: a cluster may have 256"):
        fleet.declare.label(EAST, more)
    kept = fleet.records.clusters.get(EAST)
    assert kept
    assert kept.value.labels == {"env": "production"}
    assert list(fleet.records.pending.all()) == []


def test_a_cluster_that_comes_is_asked_for_by_profiles_that_may_name_it(fleet: Fleet) -> None:
    """One with fifty thousand destinations is not opened to know: applying it tells."""
    fleet.pump()
    fleet.records.profiles.put(_own("everywhere", EVERYWHERE))
    fleet.records.profiles.put(_own("here", (EAST,)))
    fleet.records.profiles.put(_own("elsewhere", ("fleet/west",)))

    fleet.register("east")

    deliveries = []
    while page := fleet.queues["apply"].receive(100, wait=timedelta(0)):
        deliveries += page
    asked = [messages.read(each.message.body) for each in deliveries]
    applied = {each.profile for each in asked if isinstance(each, Apply)}
    assert applied == {"everywhere", "here"}


def _own(name: str, destinations: tuple[str, ...]) -> Profile:
    return Profile(
        name=name,
        trigger="",
        cluster="",
        object="",
        contents=(),
        destinations=destinations,
        tier=100,
        leaves_policies=False,
        continue_on_conflict=False,
        digest="d",
    )
