"""From an event to the add-ons and back to nothing, stage by stage, in one thread."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.errors import UnreachableError
from bellhop.rendering.observation import observe
from bellhop.state import messages
from bellhop.state.match import Match
from tests.fakes.fleet import POLICY, SERVICE, Fleet, service, with_address
from tests.fakes.hooks import failing
from tests.fakes.kube import CONFIG
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger
from tests.fakes.mortal import Killed

ENDPOINTS = GVK("", "v1", "Endpoints")
INGRESS = GVK("networking.k8s.io", "v1", "Ingress")


def names(fleet: Fleet, cluster: str, gvk: GVK) -> list[str]:
    return [
        each["metadata"]["name"] for each in fleet.access.clusters[f"fleet/{cluster}"].objects(gvk)
    ]


def discovery(fleet: Fleet) -> None:
    fleet.register("east", env="production")
    west = fleet.register("west", dep="eng")
    west.serve(Resource(ENDPOINTS, "endpoints", namespaced=True))
    fleet.apply_example("service-discovery")
    fleet.pump()


def test_carries_a_service_to_the_destination_and_takes_it_away(fleet: Fleet) -> None:
    """A Service with an address appears in another cluster, follows its ports, and is deleted."""
    discovery(fleet)
    stored = fleet.write("east", service("web"))
    fleet.pump()
    assert names(fleet, "west", SERVICE) == []

    fleet.write("east", with_address(service("web")))
    fleet.pump()
    assert names(fleet, "west", SERVICE) == ["external-web"]
    endpoints = fleet.access.clusters["fleet/west"].objects(ENDPOINTS)[0]
    assert endpoints["subsets"] == [{"addresses": [{"ip": "203.0.113.7"}], "ports": [{"port": 80}]}]

    spec = {"ports": [{"port": 8081, "protocol": "TCP", "targetPort": 1}]}
    stored = fleet.write("east", with_address(service("web", spec=spec)))
    fleet.pump()
    external = fleet.access.clusters["fleet/west"].objects(SERVICE)[0]
    assert [port["port"] for port in external["spec"]["ports"]] == [8081]

    fleet.drop("east", stored)
    fleet.pump()
    assert names(fleet, "west", SERVICE) == []
    assert names(fleet, "west", ENDPOINTS) == []
    assert list(fleet.records.profiles.of("service-policy")) == []
    assert list(fleet.records.inventories.of("fleet/west")) == []
    assert list(fleet.records.outcomes.of("fleet/west")) == []


def test_withdraws_when_the_object_stops_matching(fleet: Fleet) -> None:
    """Level, not edge: an address that is taken away takes the add-ons away."""
    discovery(fleet)
    fleet.write("east", with_address(service("web")))
    fleet.pump()

    fleet.write("east", service("web"))
    fleet.pump()

    assert names(fleet, "west", SERVICE) == []


def test_another_type_of_an_equal_value_is_a_change(fleet: Fleet) -> None:
    """1 and true, 0 and false, are equal only in Python: no stage takes them for the same."""
    east = fleet.register("east", env="production")
    value = "v: '{{ printf \"%T %v\" .Resource.spec.x .Resource.spec.x }}'"
    made = holder("made", config(FOR_EACH, value), annotations=INSTANTIATE)
    fleet.deploy(source(), trigger(), made)
    seen = []
    for x in (1, True, 0, False, 0.0):
        fleet.write("east", service("web", spec={"x": x}))
        fleet.pump()
        seen += [each["data"]["v"] for each in east.objects(CONFIG)]

    assert seen == ["int64 1", "bool true", "int64 0", "bool false", "float64 0"]


def test_makes_one_policy_for_each_service_in_the_source_cluster(fleet: Fleet) -> None:
    """With oneForEvent each matching object has its own profile; one goes without the other."""
    fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    first = fleet.write("east", service("my-service"))
    fleet.write("east", service("another-service"))
    fleet.pump()
    assert names(fleet, "east", POLICY) == ["front-another-service", "front-my-service"]

    fleet.drop("east", first)
    fleet.pump()

    assert names(fleet, "east", POLICY) == ["front-another-service"]


def https(name: str, *ports: int) -> dict[str, Any]:
    return service(name, "eng", spec={"ports": [{"port": port} for port in ports]})


def test_makes_one_ingress_for_all_services_together(fleet: Fleet) -> None:
    """Without oneForEvent one profile is rendered from all that match, in a fixed order."""
    east = fleet.register("east", env="production")
    east.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "eng"}})
    fleet.apply_example("ingress")
    fleet.pump()
    second = fleet.write("east", https("my-service-2", 80, 8443))
    fleet.write("east", https("my-service", 80, 443))
    fleet.write("east", https("plain", 80))
    fleet.pump()

    def paths() -> list[tuple[str, int]]:
        ingress = east.objects(INGRESS)[0]
        return [
            (path["path"], path["backend"]["service"]["port"]["number"])
            for path in ingress["spec"]["rules"][0]["http"]["paths"]
        ]

    assert paths() == [("/my-service", 443), ("/my-service-2", 8443)]

    fleet.drop("east", second)
    fleet.pump()
    assert paths() == [("/my-service", 443)]


def test_creates_a_missing_namespace(fleet: Fleet) -> None:
    """The destination's namespace is made when it is not there, as Sveltos does."""
    discovery(fleet)
    fleet.write("east", with_address(service("web")))
    fleet.pump()

    assert "external" in names(fleet, "west", GVK("", "v1", "Namespace"))


def test_one_destination_that_is_down_does_not_keep_another_waiting(fleet: Fleet) -> None:
    """The healthy one is served at once, the other when it is back."""
    discovery(fleet)
    north = fleet.register("north", dep="eng")
    north.serve(Resource(ENDPOINTS, "endpoints", namespaced=True))
    fleet.pump()
    fleet.access.clusters["fleet/west"].fail_with(UnreachableError("'fleet/west' does not answer"))
    fleet.write("east", with_address(service("web")))
    fleet.pump()
    assert names(fleet, "north", SERVICE) == ["external-web"]
    assert names(fleet, "west", SERVICE) == []
    outcome = next(iter(fleet.records.outcomes.of("fleet/west")))
    assert (outcome.phase, outcome.reason) == ("Failed", "Away")

    fleet.access.clusters["fleet/west"].fail_with(None)
    fleet.wait(timedelta(minutes=2))

    assert names(fleet, "west", SERVICE) == ["external-web"]
    assert [each.phase for each in fleet.records.outcomes.of("fleet/west")] == ["Provisioned"]


def test_does_nothing_twice(fleet: Fleet) -> None:
    """The same event again, and a whole resync, change nothing and ask the destination nothing."""
    discovery(fleet)
    stored = fleet.write("east", with_address(service("web")))
    fleet.pump()
    west = fleet.access.clusters["fleet/west"]
    west.calls.clear()

    fleet.send("east", {"object": stored})
    fleet.pump()

    assert [call for call in west.calls if call.verb in {"apply", "remove"}] == []


@pytest.mark.parametrize(("stage", "next_inbox"), [("evaluate", "deploy"), ("deploy", "apply")])
def test_finishes_what_a_killed_stage_left(fleet: Fleet, stage: str, next_inbox: str) -> None:
    """A stage that wrote its record and died before publishing does so at its next try."""
    discovery(fleet)
    fleet.write("east", with_address(service("web")))
    queue = fleet.queues[stage]
    while True:
        if stage == "deploy":
            for delivery in fleet.queues["evaluate"].receive(1, wait=timedelta(0)):
                fleet.work("evaluate", [delivery])
        found = queue.receive(1, wait=timedelta(0))
        if found:
            break
    with failing(fleet.queues[next_inbox], "publish", Killed()), pytest.raises(Killed):
        fleet.stages[stage].handle(messages.read(found[0].message.body))
    fleet.reread()
    queue.release()
    fleet.pump()

    assert names(fleet, "west", SERVICE) == ["external-web"]


@pytest.mark.rest
def test_costs_the_same_at_ten_and_at_a_thousand_matches(fleet: Fleet) -> None:
    """An event's store operations do not grow with how much matches."""
    fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    costs = []
    there = 0
    for count in (10, 1_000):
        for number in range(there, count):
            _remember(fleet, f"s-{number}")
        there = count
        fleet.write("east", service(f"warm-{count}"))
        fleet.pump()
        fleet.store.counts.clear()
        fleet.write("east", service(f"one-more-{count}"))
        fleet.pump()
        costs.append(dict(fleet.store.counts))

    assert costs[0] == costs[1]


LISTED = "all: '{{ range .Resources }}{{ .metadata.name }}{{ .metadata.labels.v }} {{ end }}'"
LABELLED = join(
    source(name="labelled", more=", labelFilters: [{key: r, operation: Equal, value: y1}]"),
    trigger("labelled", origin="labelled", one="false"),
    holder("labelled", config("all", LISTED), annotations=INSTANTIATE),
)


def test_an_event_reads_nothing_of_objects_that_do_not_match(fleet: Fleet) -> None:
    """A trigger for all objects costs the same however many others of the kind there are."""
    fleet.register("east", env="production")
    fleet.deploy(LABELLED)
    costs = []
    for count in (10, 500):
        for number in range(count):
            manifest = service(f"s-{number}")
            manifest["metadata"] |= {"uid": f"s-{number}", "resourceVersion": "1"}
            fleet.records.observations.put(observe("fleet/east", manifest, fleet.clock.now()))
        for v in ("a", "b"):
            fleet.store.counts.clear()
            metadata = {"name": "web", "namespace": "default", "labels": {"r": "y1", "v": v}}
            fleet.write("east", {"apiVersion": "v1", "kind": "Service", "metadata": metadata})
            fleet.pump()
        costs.append(dict(fleet.store.counts))

    assert costs[0] == costs[1]
    assert fleet.access.clusters["fleet/east"].data() == {"all": {"all": "webb "}}


def _remember(fleet: Fleet, name: str) -> None:
    """Write the records of an object that has been seen and matched."""
    now = fleet.clock.now()
    manifest = service(name)
    manifest["metadata"] |= {"uid": name, "resourceVersion": "1"}
    fleet.records.observations.put(observe("fleet/east", manifest, now))
    key = ObjectKey(SERVICE, "default", name)
    match = Match("fleet/east", "sveltos-service", key, matching=True, digest="d", since=now)
    fleet.records.matches.put(match)
