"""A Local object that one cluster cannot have: it is reported, and no other is harmed."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, Resource
from bellhop.errors import InvalidError, TemporaryError
from bellhop.ports.kube import Manifest
from bellhop.settings import Settings
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.messages import Apply, Resolve
from tests.fakes import rig
from tests.fakes.clock import FakeClock
from tests.fakes.fleet import Fleet
from tests.fakes.hosted import CONFIG, EACH, hosted, local, management, names, outcome, two
from tests.fakes.interrupted import interrupted
from tests.fakes.kept import require_value
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile

BY_ZONE = "{{ .Cluster.metadata.labels.zone }}"
ONE = config("one", "of: '{{ .Cluster.metadata.name }}'")


def zones(fleet: Fleet, **of: str) -> None:
    """Label clusters with a zone each."""
    for name, zone in of.items():
        fleet.declare.label(f"fleet/{name}", {"env": "production", "zone": zone})


def test_two_forms_of_one_object_harm_nothing_else(fleet: Fleet) -> None:
    """All other objects are deployed for both, and the former form stays."""
    east, west, mgmt = two(fleet)
    fleet.deploy(join(local(), hosted(config("one", "of: 'both'"))))

    fleet.deploy(hosted(config(EACH), ONE))

    found = outcome(fleet, MANAGEMENT)
    assert (found.phase, found.reason) == ("FailedNonRetriable", "Conflict")
    assert "ConfigMap 'default/one'" in found.message
    assert "otherwise for cluster 'fleet/east' than for 'fleet/west'" in found.message
    assert (names(east), names(west)) == ({"own"}, {"own"})
    assert {each["metadata"]["name"]: each.get("data") for each in mgmt.objects(CONFIG)} == {
        "one": {"of": "both"},
        "about-east": None,
        "about-west": None,
    }
    kept = require_value(fleet.records.inventories.get(MANAGEMENT, "own"))
    assert all(each.digest for each in kept.held.values())

    fleet.declare.label("fleet/west", {"env": "test"})
    fleet.pump()
    assert names(mgmt) == {"one", "about-east"}
    assert outcome(fleet, MANAGEMENT).phase == "Provisioned"


def test_a_conflict_between_refs_names_their_clusters(fleet: Fleet) -> None:
    """Only the object that two refs of one tier declare is in conflict."""
    *_, mgmt = two(fleet)
    two_refs = local().replace(
        "deploymentType: Local}]",
        "deploymentType: Local}, "
        "{kind: ConfigMap, name: also, namespace: default, deploymentType: Local}]",
    )
    also = holder("also", config(EACH, "v: two"), annotations="projectsveltos.io/template: ok")

    fleet.deploy(join(two_refs, hosted(config(EACH, "v: one"), config("x-" + EACH)), also))

    assert names(mgmt) == {"x-about-east", "x-about-west"}
    assert (
        "ConfigMap default/also for cluster 'fleet/east' of one profile want it in two forms"
        in outcome(fleet, MANAGEMENT).message
    )


@pytest.mark.parametrize("brings", ["a Profile", "an annotation"])
def test_what_is_not_allowed_for_one_cluster_harms_no_other(fleet: Fleet, brings: str) -> None:
    """The other's object is applied, the outcome says for which it is not, and none is removed."""
    fleet.register("east", env="production")
    fleet.register("west", env="production")
    mgmt = management(fleet)
    zones(fleet, east="fleet", west="fleet")
    namespace = "fleet" if brings == "a Profile" else ""
    made = config(EACH, namespace=BY_ZONE)
    holds = holder(
        "here", made, annotations="projectsveltos.io/template: ok", namespace=namespace or "default"
    )
    own = holder("own", config("own"), namespace=namespace or "default")
    text = local(namespace=namespace)
    if not namespace:
        note = "{name: own, annotations: {bellhop.dev/allow: 'ConfigMap in fleet,default'}}"
        text = text.replace("{name: own}", note, 1)
    fleet.deploy(join(text, holds, own))
    assert names(mgmt) == {"about-east", "about-west"}

    zones(fleet, west="elsewhere")
    fleet.register("north", env="production", zone="fleet")
    fleet.pump()

    said = outcome(fleet, MANAGEMENT, "fleet/own" if namespace else "own")
    assert (said.phase, said.reason) == ("FailedNonRetriable", "Denied")
    assert said.message.startswith("for cluster 'fleet/west': ")
    assert "'elsewhere'" in said.message
    assert names(mgmt) == {"about-east", "about-west", "about-north"}


class Choosy(FakeKube):
    """A cluster that takes no object with some word in its name, as API servers judge names."""

    error: type[Exception] = InvalidError

    def apply(self, manifest: Manifest, **kwargs: Any) -> Manifest:
        if "bad" in manifest["metadata"]["name"]:
            raise self.error("it does not take that name")
        return super().apply(manifest, **kwargs)


class Slow(Choosy):
    """One of which each write takes longer than a turn."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(MANAGEMENT)
        self._clock = clock

    def apply(self, *args: Any, **kwargs: Any) -> Any:
        self._clock.advance(timedelta(seconds=21))
        return super().apply(*args, **kwargs)


@pytest.mark.parametrize("error", [InvalidError, TemporaryError])
def test_what_the_host_refuses_of_one_cluster_harms_no_other(
    fleet: Fleet, error: type[Exception]
) -> None:
    """A label that makes no name fails for its own cluster, whether for good or for now."""
    fleet.register("east", env="production", zone="bad")
    fleet.register("west", env="production", zone="good")
    management(fleet)
    mgmt = fleet.access.clusters[MANAGEMENT] = Choosy(MANAGEMENT)
    mgmt.error = error

    fleet.deploy(join(local(), hosted(config(BY_ZONE))))

    assert names(mgmt) == {"good"}
    said = outcome(fleet, MANAGEMENT)
    assert said.message == "for cluster 'fleet/east': it does not take that name"
    assert said.retry_at

    zones(fleet, east="better")
    fleet.wait(timedelta(minutes=1))
    assert names(mgmt) == {"good", "better"}
    assert outcome(fleet, MANAGEMENT).phase == "Provisioned"

    zones(fleet, east="worse-bad")
    fleet.pump()
    assert names(mgmt) == {"good", "better"}


def test_retry_time_is_the_earliest_of_all_target_clusters(fleet: Fleet) -> None:
    """A broken template of one cluster does not cancel the retry of another."""
    fleet.register("east", env="production", zone="east")
    fleet.register("west", env="production", zone="bad")
    management(fleet)
    mgmt = fleet.access.clusters[MANAGEMENT] = Choosy(MANAGEMENT)
    mgmt.error = TemporaryError
    fails = '{{ if eq .Cluster.metadata.name "east" }}{{ fail "no" }}{{ end }}'

    fleet.deploy(join(local(), hosted(config(BY_ZONE + fails))))

    said = outcome(fleet, MANAGEMENT)
    first, _, more = said.message.partition("; ")
    assert first == "for cluster 'fleet/west': it does not take that name"
    assert more.startswith("for cluster 'fleet/east': ")
    assert said.retry_at


def test_an_object_of_another_profile_harms_no_other_cluster(fleet: Fleet) -> None:
    """An object that another profile owns is in conflict for one cluster only."""
    fleet.register("east", env="production", zone="taken")
    fleet.register("west", env="production", zone="free")
    mgmt = management(fleet, role="host")
    taker = profile("clusterSelector: {matchLabels: {role: host}}", name="first", more="tier: 50")
    fleet.deploy(join(taker, holder("first", config("taken", "v: first"))))

    fleet.deploy(join(local(), hosted(config(BY_ZONE))))

    assert names(mgmt) == {"taken", "free"}
    assert outcome(fleet, MANAGEMENT).reason == "Conflict"
    assert outcome(fleet, MANAGEMENT).message.startswith("for cluster 'fleet/east': ")


def test_what_one_cluster_lacks_ends_no_turn_for_good(fleet: Fleet) -> None:
    """The next turn deploys the rest, though something cannot be rendered."""
    for name in ("east", "c1", "c2", "c3"):
        fleet.register(name, env="production")
    management(fleet)
    mgmt = fleet.access.clusters[MANAGEMENT] = Slow(fleet.clock)
    fails = '{{ if eq .Cluster.metadata.name "east" }}{{ fail "no" }}{{ end }}'

    fleet.deploy(join(local(), hosted(config(EACH + fails))))

    assert names(mgmt) == {"about-c1", "about-c2", "about-c3"}
    assert outcome(fleet, MANAGEMENT).message.startswith("for cluster 'fleet/east': ")


def test_a_turn_in_which_all_is_refused_is_the_last_for_now(fleet: Fleet) -> None:
    """The rest waits for the next retry: no message asks for another turn at once."""
    for name in ("bad1", "bad2", "bad3", "good"):
        fleet.register(name, env="production")
    fleet.register("east")
    management(fleet)
    mgmt = fleet.access.clusters[MANAGEMENT] = Slow(fleet.clock)

    fleet.apply(join(local(), hosted(config(EACH))))
    fleet.pump(limit=100)

    assert len([each for each in mgmt.calls if each.verb == "apply"]) == 0
    assert outcome(fleet, MANAGEMENT).retry_at


class Ticking(FakeClock):
    """A clock that moves on whenever somebody reads it, once that is switched on."""

    step = timedelta(0)

    def now(self) -> datetime:
        self.advance(self.step)
        return super().now()


class Busy(FakeKube):
    """A cluster from one of whose answers on it is later each time, until something is applied."""

    def __init__(self, clock: Ticking, since: str) -> None:
        super().__init__(MANAGEMENT)
        self._clock = clock
        self._since = since

    def resource(self, gvk: GVK) -> Resource | None:
        self._clock.step = timedelta(0)
        return super().resource(gvk)

    def get(self, gvk: GVK, namespace: str, name: str) -> Manifest | None:
        if self._since and name.startswith(self._since):
            self._clock.step = timedelta(seconds=150)
        return super().get(gvk, namespace, name)

    def apply(self, *args: Any, **kwargs: Any) -> Any:
        self._clock.step, self._since = timedelta(0), ""
        return super().apply(*args, **kwargs)


@pytest.mark.parametrize(
    ("what", "since", "most", "deployed"), [("read", "of-c", 5, 4), ("render", "of-c9", 4, 4)]
)
def test_what_takes_too_long_is_deployed_for_the_first_clusters(
    tmp_path: Path, what: str, since: str, most: int, deployed: int
) -> None:
    """Each attempt ends: the status says how many clusters it had time for; they are done.

    Where reading was slow so is rendering, which then has time for one less.
    """
    clock = Ticking()
    fleet = Fleet(tmp_path, Settings(visibility=timedelta(hours=1)), clock)
    fleet.register("east")
    for number in range(10):
        fleet.register(f"c{number}", env="production")
    management(fleet)
    mgmt = fleet.access.clusters[MANAGEMENT] = Busy(clock, since)
    named = "{kind: Service, apiVersion: v1, name: 'of-{{ .Cluster.metadata.name }}'}"
    more = f"templateResourceRefs: [{{identifier: One, resource: {named}, optional: true}}]"
    fleet.apply(join(local(more), hosted(config(EACH))))
    fleet.stages["deploy"].handle(Resolve("own"))

    with pytest.raises(TemporaryError, match=f"it takes longer than 600 s to {what} it"):
        fleet.stages["deploy"].handle(Apply("", "", "own", MANAGEMENT))

    found = outcome(fleet, MANAGEMENT)
    assert found.message.startswith(
        f"cannot deploy what is Local of 'own' for more than {most} of its 10 clusters"
    )
    assert names(mgmt) == {f"about-c{number}" for number in range(deployed)}
    fleet.close()


def test_objects_beyond_the_size_limit_are_deployed_for_the_first_clusters(fleet: Fleet) -> None:
    """Clusters share the memory: beyond a size nothing more is rendered, and the status says so."""
    fleet.register("east", env="production")
    for number in range(6):
        fleet.register(f"c{number}", env="production")
    mgmt = management(fleet)
    large = config(EACH, 'v: "{{ repeat 8000000 "x" }}"')

    fleet.deploy(join(local(), hosted(large)))

    assert names(mgmt) == {f"about-c{number}" for number in range(5)}
    found = outcome(fleet, MANAGEMENT)
    assert found.message == (
        "cannot deploy what is Local of 'own' for more than 5 of its 7 clusters: together it is"
        " larger than 32 MiB; have less of it, or several profiles that each select some of them"
    )


@pytest.mark.parametrize("number", range(60, 90, 3))
def test_objects_deployed_while_their_host_is_registered_keep_their_owner(
    fleet: Fleet, number: int
) -> None:
    """A worker that read the host before its registration ended owns what it applies."""
    fleet.register("east", env="production")
    fleet.deploy(join(local(), hosted(config(EACH))))

    def meanwhile() -> None:
        another = rig.process(fleet)
        another.apply(hosted(config(f"new-{EACH}")))
        another.pump()

    fleet.access.clusters[MANAGEMENT] = FakeKube(MANAGEMENT)
    with interrupted(fleet.records, number, meanwhile):
        management(fleet)
    fleet.pump()

    owned = {key.name: owner.profile for key, owner in fleet.records.owners.of(MANAGEMENT)}
    brought = {key.name for each in fleet.records.inventories.of(MANAGEMENT) for key in each.held}
    assert owned == dict.fromkeys(brought, "own")
    assert len(owned) == 1
