"""Stages over records that are as large as a fleet makes them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.core.gvk import GVK, Resource
from bellhop.errors import DeniedError, InvalidError
from bellhop.resync.progress import MOST_UNSEEN
from bellhop.state import messages
from bellhop.state.cluster import MOST_LABELS
from bellhop.state.messages import Apply, Resync
from bellhop.state.profile import Profile
from bellhop.state.resync_progress import ResyncProgress
from tests.fakes.fleet import EAST, Fleet, service
from tests.fakes.manifests import join, trigger

EVERYWHERE = tuple(f"fleet-of-europe/cluster-number-{number:06}" for number in range(50_000))


ODD = "odd.example.org"


def watching(name: str, *kinds: str) -> str:
    groups = {kind: ODD if kind.startswith("Odd") else "" for kind in kinds}
    selectors = ", ".join(
        f"{{group: '{group}', version: v1, kind: {kind}}}" for kind, group in groups.items()
    )
    watched = f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: {name}}}
spec: {{resourceSelectors: [{selectors}]}}
"""
    return join(watched, trigger(name, origin=name))


def resync(fleet: Fleet) -> int:
    """Resync the cluster; return how many objects it published for evaluation."""
    fleet.publisher.publish([Resync(EAST)])
    published = 0
    while deliveries := fleet.queues["sweep"].receive(1, wait=timedelta(0)):
        fleet.work("sweep", deliveries)
    while deliveries := fleet.queues["review"].receive(1, wait=timedelta(0)):
        published += len(deliveries)
        fleet.work("review", deliveries)
    return published


@pytest.mark.rest
def test_a_cluster_of_hundreds_of_sources_is_evaluated_once(fleet: Fleet) -> None:
    """Its sources are known to the next resync; if they are lost, all is evaluated again."""
    fleet.register("east", env="production").put(service("web"))
    fleet.apply(*(watching(f"source-with-a-long-name-{n:0>200}", "Service") for n in range(700)))
    assert resync(fleet) == 1
    assert len(fleet.records.health.get(EAST).value.judgement) == 700
    assert fleet.records.health.head(EAST).judgement == {}
    assert resync(fleet) == 0
    for shard in "0123456789abcdef":
        for item in list(fleet.store.query(f"payload/health/{shard}")):
            fleet.store.delete(item.partition, item.sort)

    assert resync(fleet) == 1
    assert resync(fleet) == 0
    assert fleet.records.health.head(EAST).swept_at == fleet.clock.now()


def test_a_cluster_of_which_hardly_a_kind_may_be_listed_is_down(fleet: Fleet) -> None:
    """Up to so many are passed over, and named; with more the resync fails."""
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
    fleet.apply(watching("odd", *odd[:-1], "Service"))
    assert resync(fleet) == 1
    assert fleet.records.health.get(EAST).value.state == "Healthy"

    fleet.apply(watching("more", odd[-1]))
    resync(fleet)
    health = fleet.records.health.get(EAST).value
    assert (health.state, health.message) == ("Down", f"{odd[-1]} is forbidden")


def test_a_resync_with_too_many_unpublished_kinds_evaluates_everything(fleet: Fleet) -> None:
    """It starts again, and need not remember what of each kind was not published."""
    east = fleet.register("east", env="production")
    east.put(service("web"))
    fleet.apply(watching("a", "Service"))
    assert resync(fleet) == 1
    assert resync(fleet) == 0
    untold = {f"/v1/Odd{number:03}": "default/web" for number in range(MOST_UNSEEN + 1)}
    fleet.records.walks.put(EAST, ResyncProgress("of-other-sources", "other", "", untold=untold))

    assert resync(fleet) == 1
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


def test_a_new_cluster_gets_the_profiles_that_may_name_it(fleet: Fleet) -> None:
    """One with fifty thousand destinations is not read for that: its apply finds out."""
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
