"""An apply costs as much as it has manifests, however many the installation has."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bellhop.api.kinds import Declaration, of
from bellhop.ports.store import Item
from bellhop.state.cluster import Cluster
from bellhop.state.payloads import SHARDS
from tests.fakes.fleet import Fleet, OpenFleet

LIB = "lib.projectsveltos.io/v1beta1"


@pytest.fixture
def fleet_of(tmp_path: Path) -> Callable[[str], Fleet]:
    def make(name: str) -> Fleet:
        fleet = Fleet(tmp_path / name)
        for number in range(3):
            labels, digest = {"env": "prod"}, f"{number:064}"
            made = Cluster("fleet", str(number), labels, "v1.34.2", digest, fleet.clock.now())
            fleet.declare.register(made)
        return fleet

    return make


def rules(first: int, count: int) -> list[Declaration]:
    """Return sources, and a trigger and a ConfigMap for each."""
    found = []
    for number in range(first, first + count):
        selectors = [{"group": "", "version": "v1", "kind": "Service"}]
        found.append(manifest("EventSource", f"s{number}", {"resourceSelectors": selectors}))
        spec = {
            "sourceClusterSelector": {"matchLabels": {"env": "prod"}},
            "eventSourceName": f"s{number}",
            "policyRefs": [{"kind": "ConfigMap", "name": f"c{number}", "namespace": "default"}],
        }
        found.append(manifest("EventTrigger", f"t{number}", spec))
        metadata = {"name": f"c{number}", "namespace": "default"}
        found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    return [of(each) for each in found]


def manifest(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": LIB, "kind": kind, "metadata": {"name": name}, "spec": spec}


def calls(act: Callable[[], Any]) -> int:
    """Count the calls of functions that something takes: unlike its time, always the same."""
    profile = cProfile.Profile()
    profile.runcall(act)
    return sum(entry.callcount for entry in profile.getstats())


def test_ten_times_as_many_manifests_take_ten_times_as_long(
    fleet_of: Callable[[str], Fleet],
) -> None:
    """Nothing is looked for among all the others, in the file or in the catalog."""
    taken = []
    for count in (20, 200):
        fleet, declared = fleet_of(str(count)), rules(0, count)
        taken.append(calls(lambda fleet=fleet, declared=declared: fleet.declare.apply(declared)))
        fleet.close()

    assert taken[1] < 11 * taken[0]


def test_one_more_costs_what_it_costs_beside_few(fleet_of: Callable[[str], Fleet]) -> None:
    """The other manifests are neither read nor parsed again: a few calls find them valid."""
    taken = []
    for count in (10, 200):
        fleet = fleet_of(str(count))
        fleet.declare.apply(rules(0, count))
        fleet.declare.apply(rules(1000, 1)[:2])
        more = rules(2000, 1)[:2]
        taken.append(calls(lambda fleet=fleet, more=more: fleet.declare.apply(more)))
        fleet.close()

    assert taken[1] - taken[0] < 13 * 2 * (200 - 10)


def text(name: str, value: str = "") -> Declaration:
    """Return a ConfigMap with a text."""
    metadata = {"name": name, "namespace": "default"}
    data = {"text": value}
    return of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def test_a_new_manifest_is_read_once(fleet_of: Callable[[str], Fleet]) -> None:
    """The write itself finds out whether it came meanwhile."""
    asked = []
    for count in (20, 40):
        fleet = fleet_of(str(count))
        fleet.store.counts.clear()
        fleet.declare.apply([text(f"c{number}") for number in range(count)])
        asked.append(fleet.store.counts["get"])
        fleet.close()

    assert asked[1] - asked[0] == 20


def test_a_manifest_that_was_just_applied_by_another_is_written_over(
    fleet_of: Callable[[str], Fleet],
) -> None:
    """Neither is refused; the later one counts, in the record and in the catalog."""
    fleet = fleet_of("one")
    put, theirs = fleet.store.put, rules(0, 1)[0]
    written = theirs.manifest()
    written["metadata"]["labels"] = {"whose": "mine"}
    mine = of(written)

    def hurried(item: Item, **how: Any) -> Item:
        if item.partition == "pending":
            fleet.store.put = put  # type: ignore[method-assign]
            fleet.declare.apply([theirs])
        return put(item, **how)

    fleet.store.put = hurried  # type: ignore[method-assign]

    assert [each.change for each in fleet.declare.apply([mine])] == ["created"]

    kept = fleet.records.manifests.get(*mine.key)
    assert kept
    assert kept.value == mine.written
    assert fleet.catalogs.current().sources["s0"].metadata.labels == {"whose": "mine"}
    fleet.close()


def test_a_manifest_whose_payload_is_lost_is_applied_again(open_fleet: OpenFleet) -> None:
    """A record without its payload prevents no apply."""
    fleet = open_fleet(short=0)
    fleet.declare.apply([text("c", "lost")])
    for shard in SHARDS:
        for item in list(fleet.store.query(f"payload/manifest/ConfigMap/{shard}")):
            fleet.store.delete(item.partition, item.sort)

    fleet.declare.apply([text("c", "found")])

    kept = fleet.records.manifests.get("ConfigMap", "default", "c")
    assert kept
    assert kept.value["data"] == {"text": "found"}
