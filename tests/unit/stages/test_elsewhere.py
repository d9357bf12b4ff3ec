"""What templates read in `mgmt/mgmt` is followed at once, as long as anybody reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from bellhop.core.gvk import GVK, Identity, ObjectKey, Resource
from bellhop.deploy.dependencies import TemplateDependencies
from bellhop.errors import BellhopError, StaleError
from bellhop.ports.queue import Delivery, Done
from bellhop.state.dependency_index import TemplateDependency
from bellhop.state.management_cluster import MANAGEMENT
from bellhop.state.messages import Apply, ReadBack, Resync
from bellhop.state.record import MOST_FOLLOWED, IngestPolicy
from tests.fakes import rig
from tests.fakes.fleet import Fleet, service
from tests.fakes.hosted import hosted, local
from tests.fakes.interrupted import interrupted
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, source, trigger
from tests.fakes.mortal import Fate, Killed, Mortal, kill_before_publishing
from tests.fakes.read import (
    CONFIG,
    TEMPLATE,
    WIDGET,
    drop,
    management,
    noted,
    reads,
    refs,
    ring,
    rings_for,
    said,
    widget,
    write,
)
from tests.fakes.share import SHARE

EAST, WEST = "fleet/east", "fleet/west"
READ = ObjectKey(WIDGET, "default", "read")
BY_CLUSTER = refs("of-{{ .Cluster.metadata.name }}")


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production")


@pytest.fixture
def mgmt(fleet: Fleet, east: FakeKube) -> FakeKube:
    """Register what is read, and a cluster that has what was rendered with it."""
    assert east
    kube = management(fleet)
    kube.put(widget("1"))
    # What it rings for from its registration on is nobody's merit here.
    fleet.pump()
    fleet.apply(reads())
    fleet.pump()
    return kube


def hand(fleet: Fleet, inbox: str) -> Sequence[Delivery]:
    """Take one message."""
    return fleet.queues[inbox].receive(1, wait=timedelta(0))


def sweep(fleet: Fleet, cluster: str = MANAGEMENT) -> None:
    fleet.publisher.publish([Resync(cluster)])
    fleet.pump()


def tire(fleet: Fleet) -> None:
    """Let what fails be tried until its next try is far away."""
    for _ in range(12):
        fleet.clock.advance(fleet.settings.retry_ceiling)
        fleet.pump()


def phase(fleet: Fleet) -> str:
    (outcome,) = fleet.records.outcomes.of(EAST)
    return outcome.phase


# What is followed ---------------------------------------------------------------------------------


def test_a_change_renders_anew_at_once(fleet: Fleet, mgmt: FakeKube, east: FakeKube) -> None:
    """The kind rings for everybody's objects, and who reads one is applied again."""
    assert said(east) == {"got-own": "1"}
    assert rings_for(mgmt) == ["widgets"]
    assert noted(fleet) == [("read", "own", EAST)]

    assert write(fleet, widget("2")) == 1
    fleet.pump()

    assert said(east) == {"got-own": "2"}


def test_what_renders_alike_is_not_written(fleet: Fleet, mgmt: FakeKube, east: FakeKube) -> None:
    """Whatever else of it has changed."""
    assert mgmt
    east.calls.clear()
    write(fleet, {**widget("1"), "status": {"ready": True}})
    fleet.pump()

    assert [call for call in east.calls if call.verb == "apply"] == []


@pytest.mark.usefixtures("mgmt")
def test_a_ring_that_concerns_nobody_costs_one_look(fleet: Fleet) -> None:
    """However many read other objects of its kind."""
    kube = fleet.access.clusters[MANAGEMENT]
    stored = kube.put(widget("1", "another"))
    before = fleet.store.counts.copy()
    assert ring(fleet, {"object": stored}).body["taken"] == 1
    first = fleet.store.counts - before
    for number in range(50):
        key = Identity("shop.io", "Widget", "default", f"read-{number}")
        fleet.records.readers.note(key, TemplateDependency("", "", "own", EAST))

    before = fleet.store.counts.copy()
    ring(fleet, {"object": kube.put(widget("2", "another"))})
    then = fleet.store.counts - before

    assert then["query"] == first["query"] == 1
    assert then["item"] == first["item"] == 0
    assert fleet.pump() == 0


@pytest.mark.parametrize("more", ["", ", optional: true"])
def test_what_was_missing_is_rendered_when_it_comes(
    fleet: Fleet, east: FakeKube, more: str
) -> None:
    """Needed or optional; and what is optional goes, and comes again."""
    management(fleet)
    fleet.apply(reads(refs(more=more)))
    fleet.pump()
    assert said(east) == ({"got-own": "none"} if more else {})
    assert phase(fleet) == ("Provisioned" if more else "FailedNonRetriable")
    tire(fleet)

    write(fleet, widget("1"))
    fleet.pump()
    assert said(east) == {"got-own": "1"}
    assert phase(fleet) == "Provisioned"

    drop(fleet, READ)
    fleet.pump()
    assert said(east) == {"got-own": "none" if more else "1"}
    tire(fleet)
    write(fleet, widget("2"))
    fleet.pump()
    assert said(east) == {"got-own": "2"}


def test_each_destination_follows_what_it_reads(fleet: Fleet, east: FakeKube) -> None:
    """Names are templates, and a change concerns those alone that read the object."""
    west = fleet.register("west", env="production")
    kube = management(fleet)
    for name in ("of-east", "of-west"):
        kube.put(widget(name, name))
    fleet.apply(reads(BY_CLUSTER))
    fleet.pump()
    assert noted(fleet) == [("of-east", "own", EAST), ("of-west", "own", WEST)]
    east.calls.clear()

    write(fleet, widget("2", "of-west"))
    fleet.pump()

    assert (said(east), said(west)) == ({"got-own": "of-east"}, {"got-own": "2"})
    assert east.calls == []


def test_another_label_reads_another_object(fleet: Fleet, east: FakeKube) -> None:
    """What a destination reads no more concerns it no more."""
    kube = management(fleet)
    kube.put(widget("1", "a"))
    kube.put(widget("2", "b"))
    fleet.declare.label(EAST, {"env": "production", "zone": "a"})
    fleet.apply(reads(refs("{{ .Cluster.metadata.labels.zone }}")))
    fleet.pump()
    assert said(east) == {"got-own": "1"}

    fleet.declare.label(EAST, {"env": "production", "zone": "b"})
    fleet.pump()

    assert said(east) == {"got-own": "2"}
    assert noted(fleet) == [("b", "own", EAST)]


def test_a_cluster_scoped_object_is_followed_in_whatever_namespace_it_is_named(
    fleet: Fleet, east: FakeKube
) -> None:
    """Who names one writes any namespace, or none."""
    kube = management(fleet)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "read"}, "data": {}}
    kube.put({**space, "data": {"v": "1"}})
    fleet.apply(reads(refs(kind=GVK("", "v1", "Namespace"))))
    fleet.pump()
    assert said(east) == {"got-own": "1"}

    write(fleet, {**space, "data": {"v": "2"}})
    fleet.pump()

    assert said(east) == {"got-own": "2"}


def test_what_a_trigger_makes_follows_what_it_reads(fleet: Fleet, east: FakeKube) -> None:
    """Each object's profile its own, and no more of one whose object is gone."""
    both = f"{INSTANTIATE}, {TEMPLATE}"
    text = "v: '{{`{{ (getResource \"Read\").data.v }}`}}'"
    management(fleet).put(widget("1", "for-a"))
    fleet.apply(
        source(),
        trigger(more=refs("for-{{ .Resource.metadata.name }}")),
        holder("made", config("got-{{ .Resource.metadata.name }}", text), annotations=both),
    )
    stored = fleet.write("east", service("a"))
    fleet.pump()
    write(fleet, widget("2", "for-a"))
    fleet.pump()
    assert said(east) == {"got-a": "2"}

    fleet.drop("east", stored)
    fleet.pump()

    assert said(east) == {}
    assert noted(fleet) == []


def test_what_is_local_follows_what_it_reads_for_each_cluster(fleet: Fleet, east: FakeKube) -> None:
    """The one that hosts it is where it is rendered again."""
    assert east
    kube = management(fleet)
    kube.put(widget("1", "of-east"))
    text = "v: '{{ (getResource \"Read\").data.v }}'"
    fleet.apply(join(local(BY_CLUSTER), hosted(config("here", text))))
    fleet.pump()
    write(fleet, widget("2", "of-east"))
    fleet.pump()

    assert said(kube)["here"] == "2"
    assert ("of-east", "own", MANAGEMENT) in noted(fleet)


def test_what_bellhop_writes_itself_is_followed(
    fleet: Fleet, mgmt: FakeKube, east: FakeKube
) -> None:
    """Its own writes do not ring: who writes them tells those that read them."""
    mgmt.drop(*READ)
    sweep(fleet, EAST)
    tire(fleet)
    text = "apiVersion: shop.io/v1\nkind: Widget\nmetadata: {name: read, namespace: default}\n"
    brought = profile("clusterRefs: [{namespace: mgmt, name: mgmt}]", name="its")
    for value in "23":
        fleet.apply(join(brought, holder("its", f"{text}data: {{v: '{value}'}}\n")))
        fleet.pump()
        assert said(east) == {"got-own": value}


def test_a_kind_of_another_group_is_no_configmap(fleet: Fleet, east: FakeKube) -> None:
    """By its apiVersion it is known where it is, and that it is followed."""
    kind = GVK("shop.io", "v1", "Secret")
    kube = management(fleet)
    kube.serve(Resource(kind, "secrets", namespaced=True))
    thing = {**widget("1"), "kind": "Secret"}
    kube.put(thing)
    fleet.apply(reads(refs(kind=kind)))
    fleet.pump()
    assert said(east) == {"got-own": "1"}

    write(fleet, {**thing, "data": {"v": "2"}})
    fleet.pump()

    assert said(east) == {"got-own": "2"}


def plain(value: str, kind: str = "ConfigMap") -> dict[str, Any]:
    """Return a ConfigMap or Secret for somebody to write in `mgmt/mgmt`."""
    metadata = {"name": "read", "namespace": "default"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {"v": value}}


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_a_configmap_or_secret_that_nobody_declared_is_read_in_the_management_cluster(
    fleet: Fleet, east: FakeKube, kind: str
) -> None:
    """By an entry without apiVersion, too; it is followed, and what is declared comes first."""
    kube = management(fleet)
    kube.put(plain("one1", kind))
    ref = refs(kind=GVK("", "v1", kind)).replace("apiVersion: v1, ", "")
    fleet.apply(reads(ref))
    fleet.pump()
    assert said(east) == {"got-own": "one1"}
    assert rings_for(kube) == [f"{kind.lower()}s"]

    assert write(fleet, plain("two2", kind)) == 1
    fleet.pump()
    assert said(east) == {"got-own": "two2"}

    fleet.apply(yaml.safe_dump(plain("thr3", kind)))
    fleet.pump()
    sweep(fleet)
    assert said(east) == {"got-own": "thr3"}
    assert noted(fleet) == []
    assert rings_for(kube) == []

    fleet.declare.delete([(kind, "default", "read")])
    fleet.pump()
    assert said(east) == {"got-own": "two2"}
    assert rings_for(kube) == [f"{kind.lower()}s"]


def test_a_configmap_that_a_trigger_deploys_to_the_management_cluster_is_followed(
    fleet: Fleet, east: FakeKube
) -> None:
    """It is missing before; Bellhop's own write of it sends no event, and renders again."""
    kube = management(fleet)
    fleet.apply(reads(refs(kind=CONFIG)))
    fleet.pump()
    assert said(east) == {}

    deployed = "destinationCluster: {namespace: mgmt, name: mgmt}"
    made = holder("made", config("read", "v: '{{ .Resource.spec.v }}'"), annotations=INSTANTIATE)
    fleet.apply(source(), trigger(more=deployed), made)
    for value in "12":
        fleet.write("east", {**service("a"), "spec": {"v": value}})
        fleet.pump()
        assert said(kube) == {"read": value}
        assert said(east) == {"got-own": value}


def test_what_was_declared_is_read_without_a_look_at_the_management_cluster(
    fleet: Fleet, east: FakeKube
) -> None:
    """No kind rings for it, and no sweep has it read again."""
    kube = management(fleet)
    fleet.apply(reads(refs(kind=CONFIG)), config("read", "v: '1'"))
    fleet.pump()
    kube.calls.clear()
    sweep(fleet, EAST)

    assert said(east) == {"got-own": "1"}
    assert [call for call in kube.calls if call.gvk == CONFIG] == []
    (outcome,) = fleet.records.outcomes.of(EAST)
    assert not outcome.reads


def test_a_tenant_sees_no_more_by_a_ring(fleet: Fleet, east: FakeKube) -> None:
    """It is rendered again with the rights of its account, which may have changed."""
    kube = management(fleet)
    kube.put(widget("1"))
    labels = "labels: {projectsveltos.io/serviceaccount-name: ann, "
    labels += "projectsveltos.io/serviceaccount-namespace: team}"
    fleet.apply(reads().replace("metadata: {name: own}", f"metadata: {{name: own, {labels}}}", 1))
    east.rbac.grant("team/ann", "ConfigMap", "default", "get", "create", "patch")
    fleet.pump()
    tire(fleet)
    assert said(east) == {}

    write(fleet, widget("2"))
    fleet.pump()
    assert said(east) == {}
    kube.rbac.grant("team/ann", "Widget", "default", "get")
    tire(fleet)
    assert said(east) == {"got-own": "2"}
    write(fleet, widget("3"))
    fleet.pump()

    assert said(east) == {"got-own": "3"}
    asked = {call.account for call in kube.calls if (call.verb, call.gvk) == ("get", WIDGET)}
    assert asked == {"team/ann"}


def hint(fleet: Fleet, uid: str = "", before: int = 0) -> None:
    """Have an API server tell ingest itself of a write that is on its way."""
    rang = fleet.clock.now().isoformat()
    message = ReadBack(MANAGEMENT, str(READ), uid=uid, before=before, drift=True, rang=rang)
    fleet.publisher.publish([message])
    fleet.pump()


def test_an_api_server_that_calls_ingest_itself_is_followed(
    fleet: Fleet, mgmt: FakeKube, east: FakeKube
) -> None:
    """What it hints at is read back before anybody is told: a change, an end, a beginning."""
    fleet.apply(reads(refs(more=", optional: true")))
    fleet.pump()
    (old,) = mgmt.objects(WIDGET)
    uid, before = old["metadata"]["uid"], int(old["metadata"]["resourceVersion"])
    hint(fleet, uid, before)
    mgmt.put(widget("2"))
    fleet.clock.advance(timedelta(seconds=1))
    fleet.pump()
    assert said(east) == {"got-own": "2"}

    (old,) = mgmt.objects(WIDGET)
    hint(fleet, uid, int(old["metadata"]["resourceVersion"]))
    mgmt.drop(*READ)
    fleet.clock.advance(timedelta(seconds=1))
    fleet.pump()
    assert said(east) == {"got-own": "none"}

    hint(fleet)
    mgmt.put(widget("3"))
    fleet.clock.advance(timedelta(seconds=1))
    fleet.pump()
    assert said(east) == {"got-own": "3"}


# What is followed no more -------------------------------------------------------------------------

ENDS: dict[str, Callable[[Fleet], object]] = {
    "its profile is deleted": lambda fleet: fleet.declare.delete([("ClusterProfile", "", "own")]),
    "its profile reads nothing more": lambda fleet: fleet.apply(profile()),
    "its profile reads what was applied": lambda fleet: fleet.apply(
        config("read", "v: '1'"), profile(more=refs(kind=CONFIG))
    ),
    "its cluster is left": lambda fleet: fleet.declare.label(EAST, {"env": "test"}),
    "its cluster is forgotten": lambda fleet: fleet.declare.deregister(EAST),
}


@pytest.mark.parametrize("how", ENDS)
def test_what_is_read_no_more_rings_no_more(fleet: Fleet, mgmt: FakeKube, how: str) -> None:
    """No record is left, the kind rings no more, and a late ring is nobody's."""
    ENDS[how](fleet)
    fleet.pump()
    assert noted(fleet) == []
    assert list(fleet.records.store.query(f"reads/{EAST}")) == []
    sweep(fleet)

    assert rings_for(mgmt) == []
    gate = value_of(fleet.records.gates.get(MANAGEMENT))
    assert gate
    assert gate.followed == ()
    assert write(fleet, widget("2")) == 0
    assert fleet.pump() == 0


def test_what_is_brought_once_reads_nothing_more(fleet: Fleet, east: FakeKube) -> None:
    """The first ring after it finds that out, and is the last."""
    kube = management(fleet)
    kube.put(widget("1"))
    fleet.apply(reads(f"{refs()}\n  syncMode: OneTime"))
    fleet.pump()

    write(fleet, widget("2"))
    fleet.pump()

    assert said(east) == {"got-own": "1"}
    assert noted(fleet) == []


def test_who_was_left_over_is_struck_out_by_the_sweep(fleet: Fleet, mgmt: FakeKube) -> None:
    """A kind rings as long as one reads it that is there, whoever died before it was struck out."""
    for number in range(3):
        key = Identity("", "Service", "default", f"read-{number}")
        fleet.records.readers.note(key, TemplateDependency("", "", f"gone-{number}", EAST))
    sweep(fleet)

    assert noted(fleet) == [("read", "own", EAST)]
    assert rings_for(mgmt) == ["widgets"]


@pytest.mark.usefixtures("mgmt")
def test_a_cluster_that_is_forgotten_takes_along_what_it_read(fleet: Fleet) -> None:
    """And no other's, nor anything of whose name begins like its own."""
    readers = fleet.records.readers
    key = Identity("rbac.authorization.k8s.io", "ClusterRole", "", "system:node")
    for cluster, name in ((EAST, "RoleRequest:r"), (f"{EAST}-2", "fleet/own"), (EAST, "fleet/own")):
        reader = TemplateDependency("", "", name, cluster)
        readers.settle(key, reader, expect=readers.note(key, reader))

    fleet.records.forget_traces(EAST)

    assert noted(fleet) == [("system:node", "fleet/own", f"{EAST}-2")]


@pytest.mark.rest
def test_who_dies_while_it_is_struck_out_leaves_nothing_that_counts(tmp_path: Path) -> None:
    """Chosen again, the cluster follows what it reads; else nothing is left of it.

    It takes seconds: it plays a share of 54 deaths, each in an installation of its own.
    """
    for steps in range(1, 80, 3 * SHARE):
        for again in (True, False):
            fleet = Fleet(tmp_path / f"{steps}-{again}")
            east = fleet.register("east", env="production")
            kube = management(fleet)
            kube.put(widget("1"))
            fleet.apply(reads())
            fleet.pump()
            fleet.declare.label(EAST, {"env": "test"})
            fate = Fate()
            rig.interpose(fleet, partial(Mortal, fate=fate))
            fleet.access.clusters = {EAST: east, MANAGEMENT: kube}
            fate.doom(steps)
            with suppress(Killed):
                fleet.pump()
            fate.revive()
            rig.release(fleet)
            fleet.reread()
            if again:
                fleet.declare.label(EAST, {"env": "production"})
            fleet.clock.advance(rig.VISIBILITY)
            rig.tick(fleet)
            fleet.pump()
            write(fleet, widget("2"))
            fleet.pump()

            assert said(east) == ({"got-own": "2"} if again else {}), steps
            assert noted(fleet) == ([("read", "own", EAST)] if again else []), steps
            assert bool(list(fleet.records.store.query(f"reads/{EAST}"))) is again, steps
            fleet.close()


@pytest.mark.parametrize("number", range(4))
def test_what_is_settled_is_there_wherever_he_dies_who_strikes_it_out(
    fleet: Fleet, number: int
) -> None:
    """Who finds it settled need not look whether it is there."""
    readers, key, reader = (
        fleet.records.readers,
        READ.identity,
        TemplateDependency("", "", "own", EAST),
    )
    readers.settle(key, reader, expect=readers.note(key, reader))

    def dies() -> None:
        raise Killed

    with suppress(Killed), interrupted(fleet.records, number, dies) as found:
        readers.delete(key, reader)

    (left,) = readers.read_for(EAST, "own").values()
    assert found.met
    assert not left.settled or list(readers.of(key)) == [reader]


@pytest.mark.parametrize("number", range(4))
def test_who_notes_what_is_struck_out_meanwhile_has_it_noted(fleet: Fleet, number: int) -> None:
    """Whatever of the two comes first, it is noted and settled, or to be done again."""
    readers, key, reader = (
        fleet.records.readers,
        READ.identity,
        TemplateDependency("", "", "own", EAST),
    )
    readers.settle(key, reader, expect=readers.note(key, reader))
    tokens: list[str] = []

    with interrupted(fleet.records, number, lambda: tokens.append(readers.note(key, reader))):
        readers.delete(key, reader)
    with suppress(StaleError):
        readers.settle(key, reader, expect=tokens[0])

    (found,) = readers.read_for(EAST, "own").values() or [reader]
    assert not found.settled or list(readers.of(key)) == [reader]


@pytest.mark.parametrize("number", range(4))
def test_what_was_settled_since_it_was_struck_out_stays(fleet: Fleet, number: int) -> None:
    """Who strikes it out gives way to another who comes later, and is done before."""
    readers, key, reader = (
        fleet.records.readers,
        READ.identity,
        TemplateDependency("", "", "own", EAST),
    )
    settled = replace(reader, settled=True)
    readers.settle(key, reader, expect=readers.note(key, reader))

    def comes_later() -> None:
        readers.settle(key, reader, expect=readers.note(key, reader))

    with interrupted(fleet.records, number, comes_later):
        readers.delete(key, reader)

    stays = number > 1
    assert list(readers.read_for(EAST, "own").values()) == [settled] * stays
    assert list(readers.of(key)) == [reader] * stays


@pytest.mark.parametrize("number", range(4))
def test_two_who_strike_out_the_same_leave_nothing(fleet: Fleet, number: int) -> None:
    """Wherever the second one comes in between."""
    readers, key, reader = (
        fleet.records.readers,
        READ.identity,
        TemplateDependency("", "", "own", EAST),
    )
    readers.settle(key, reader, expect=readers.note(key, reader))

    with interrupted(fleet.records, number, lambda: readers.delete(key, reader)) as found:
        readers.delete(key, reader)

    assert found.met
    assert readers.read_for(EAST, "own") == {}
    assert list(readers.of(key)) == []


def test_what_was_struck_out_while_it_was_noted_does_not_stay(fleet: Fleet) -> None:
    """Who notes it finds that out when settling it, and begins again."""
    readers, key, reader = (
        fleet.records.readers,
        READ.identity,
        TemplateDependency("", "", "own", EAST),
    )

    with interrupted(fleet.records, 1, lambda: readers.delete(key, reader)) as found:
        token = readers.note(key, reader)
    with pytest.raises(StaleError):
        readers.settle(key, reader, expect=token)

    assert found.met
    assert readers.read_for(EAST, "own") == {}
    assert list(readers.of(key)) == []


# When the cluster comes ---------------------------------------------------------------------------


def test_who_waited_for_the_cluster_is_applied_when_it_comes(fleet: Fleet, east: FakeKube) -> None:
    """As soon as it rings for what is read there."""
    fleet.apply(reads())
    fleet.pump()
    tire(fleet)
    assert said(east) == {}

    fleet.access.clusters[MANAGEMENT] = FakeKube(MANAGEMENT)
    kube = management(fleet)
    kube.put(widget("1"))
    fleet.pump()

    assert said(east) == {"got-own": "1"}
    assert rings_for(kube) == ["widgets"]


@pytest.mark.parametrize("before", ["forgotten", "there"])
def test_another_cluster_of_that_name_is_followed(
    fleet: Fleet, mgmt: FakeKube, east: FakeKube, before: str
) -> None:
    """Registered anew, or made anew under its name: it rings, and is read again."""
    assert mgmt
    fleet.access.clusters[MANAGEMENT] = FakeKube(MANAGEMENT)
    if before == "forgotten":
        fleet.declare.deregister(MANAGEMENT)
        fleet.pump()
    kube = management(fleet, uid="other")
    kube.put(widget("2"))
    sweep(fleet)
    assert said(east) == {"got-own": "2"}
    assert rings_for(kube) == ["widgets"]

    write(fleet, widget("3"))
    fleet.pump()

    assert said(east) == {"got-own": "3"}


def test_without_a_forwarder_sweeps_of_the_destination_follow(fleet: Fleet, east: FakeKube) -> None:
    """And once there is one, it does."""
    kube = management(fleet, rings=False)
    kube.put(widget("1"))
    fleet.apply(reads())
    fleet.pump()
    kube.put(widget("2"))
    sweep(fleet)
    assert said(east) == {"got-own": "1"}
    sweep(fleet, EAST)
    assert said(east) == {"got-own": "2"}
    kube.put(widget("3"))

    management(fleet)
    fleet.pump()

    assert said(east) == {"got-own": "3"}
    assert rings_for(kube) == ["widgets"]


def test_a_kind_that_is_served_later_is_followed_from_the_next_sweep_on(
    fleet: Fleet, east: FakeKube
) -> None:
    """Nobody tells that a definition came; whoever waits for an object of it is told then."""
    kube = management(fleet)
    kube.unserve(WIDGET)
    fleet.apply(reads())
    fleet.pump()
    tire(fleet)
    assert (said(east), rings_for(kube)) == ({}, [])

    management(fleet)
    kube.put(widget("1"))
    sweep(fleet)

    assert (said(east), rings_for(kube)) == ({"got-own": "1"}, ["widgets"])


def test_a_declaration_keeps_it_ringing(fleet: Fleet, mgmt: FakeKube, east: FakeKube) -> None:
    """A gate that is written without a sweep still lets it in."""
    assert mgmt
    fleet.declare.label(MANAGEMENT, {"zone": "read"})
    fleet.pump()
    selecting = trigger().replace("env: production", "zone: read")
    fleet.apply(join(source(), selecting, holder("made", config("made"))))
    gate = value_of(fleet.records.gates.get(MANAGEMENT))
    assert gate
    assert [each.gvk.kind for each in gate.kinds] == ["Service"]

    assert write(fleet, widget("2")) == 1
    fleet.pump()

    assert said(east) == {"got-own": "2"}


def test_no_more_kinds_ring_than_a_cluster_may_be_asked_for(fleet: Fleet) -> None:
    """Sweeps follow the rest."""
    fleet.apply(reads())
    for number in range(MOST_FOLLOWED + 1):
        key = Identity("shop.io", f"Kind{number:04}", "default", "read")
        fleet.records.readers.note(key, TemplateDependency("", "", "own", EAST))
    elsewhere = TemplateDependencies(fleet.records, fleet.publisher, fleet.settings)
    elsewhere._reads = lambda *_: True  # type: ignore[method-assign]

    found = elsewhere.kinds()

    assert [found[0], found[-1]] == [("shop.io", "Kind0000"), ("shop.io", "Kind0255")]


def test_who_has_no_time_to_note_all_strikes_nothing_out(fleet: Fleet, east: FakeKube) -> None:
    """Of clusters that were not looked at nobody knows what is read for them: sweeps follow it."""
    assert east
    management(fleet).put(widget("1", "of-east"))
    fleet.apply(join(local(BY_CLUSTER), hosted(config("here", "v: '1'"))))
    fleet.pump()
    before = noted(fleet)
    elsewhere = fleet.stages["deploy"]._execute._elsewhere  # type: ignore[attr-defined]

    elsewhere._patience = timedelta(seconds=-1)
    fleet.apply(holder("here", config("here", "v: '2'"), annotations=TEMPLATE))
    fleet.pump()

    assert ("of-east", "own", MANAGEMENT) in before
    assert noted(fleet) == before


def test_a_gate_of_a_later_catalog_is_written_again(fleet: Fleet, east: FakeKube) -> None:
    """Whatever was declared while the sweep was at it, what rings is let in."""
    kube = management(fleet)
    kube.put(widget("1"))
    fleet.pump()
    fleet.apply(reads())
    real, left = fleet.records.gates.put, ["once"]

    def later(key: str, gate: IngestPolicy) -> None:
        if gate.followed and left:
            left.pop()
            # Who knows of a later catalog wrote it first, of what he knew.
            real(key, replace(gate, followed=(), revision=gate.revision + 1))
            fleet.apply(source(name="another"), source(name="one-more"))
        real(key, gate)

    fleet.records.gates.put = later  # type: ignore[method-assign]
    fleet.pump()

    assert write(fleet, widget("2")) == 1
    fleet.pump()
    assert said(east) == {"got-own": "2"}


def test_what_is_held_there_as_well_is_followed(
    fleet: Fleet, mgmt: FakeKube, east: FakeKube
) -> None:
    """One ring has it put back, and read as it is then."""
    mgmt.drop(*READ)
    text = "apiVersion: shop.io/v1\nkind: Widget\nmetadata: {name: read, namespace: default}\n"
    more = "syncMode: ContinuousWithDriftDetection"
    brought = profile("clusterRefs: [{namespace: mgmt, name: mgmt}]", name="its", more=more)
    fleet.apply(join(brought, holder("its", f"{text}data: {{v: '7'}}\n")))
    fleet.pump()
    assert said(east) == {"got-own": "7"}
    (there,) = mgmt.objects(WIDGET)

    write(fleet, {**there, "status": {"v": "8"}, "data": {"v": "7", "w": "9"}})
    asked = [each.message.body for each in fleet.queues["apply"].receive(9, wait=timedelta(0))]

    told = {(each["profile"], each["destination"], "touched" in each) for each in asked}
    assert told == {("its", MANAGEMENT, True), ("own", EAST, False)}


@pytest.mark.usefixtures("east")
def test_many_that_read_at_once_ask_for_few_sweeps(fleet: Fleet) -> None:
    """A roll-out to a fleet of hundreds does not sweep the cluster hundreds of times.

    Whoever is the first of those that are noted asks, and hardly any later one comes before it.
    """
    for number in range(20):
        fleet.register(f"more-{number}", env="production")
    management(fleet).put(widget("1"))
    fleet.pump()
    fleet.apply(reads())
    asked = 0
    for _ in range(200):
        for inbox in ("deploy", "apply"):
            fleet.work(inbox, hand(fleet, inbox))
        for each in hand(fleet, "sweep"):
            # Out of the way of the next one, which is not to be taken for the same.
            asked += each.message.body == Resync(MANAGEMENT).message().body
            fleet.queues["sweep"].settle(each, Done())

    assert len(noted(fleet)) == 21
    assert 1 <= asked < 10


# Between reading and writing ----------------------------------------------------------------------


@pytest.mark.rest
def test_a_change_in_between_is_not_lost(tmp_path: Path) -> None:
    """Whenever somebody writes while it is noted and read for the first time, it is rendered.

    It takes seconds: it plays once for a share of the calls of the store.
    """
    met, number, found = True, 0, set()
    while met:
        fleet = Fleet(tmp_path / str(number))
        east = fleet.register("east", env="production")
        kube = management(fleet)
        kube.put(widget("1"))
        fleet.pump()
        fleet.apply(reads())

        def changes(fleet: Fleet = fleet) -> None:
            with suppress(BellhopError):
                write(fleet, widget("2"))

        with interrupted(fleet.records, number, changes) as point:
            fleet.pump()
        met, number = point.met, number + 3 * SHARE
        fleet.pump()
        if met:
            found.add(said(east).get("got-own"))
        fleet.close()

    assert found == {"2"}


@pytest.mark.rest
def test_a_death_before_a_kind_rings_leaves_it_unsettled(fleet: Fleet, east: FakeKube) -> None:
    """The message comes again, and asks again for the resync that makes the kind ring."""
    management(fleet).put(widget("1"))
    fleet.pump()
    fleet.apply(reads())

    kill_before_publishing(fleet.publisher, lambda each: isinstance(each, Resync), fleet.pump)
    rig.release(fleet)
    fleet.clock.advance(rig.VISIBILITY)
    fleet.pump()
    write(fleet, widget("2"))
    fleet.pump()

    assert said(east)["got-own"] == "2"


def test_a_death_leaves_it_followed(tmp_path: Path) -> None:
    """Wherever it dies while it is noted and read, a later change is rendered by its ring alone.

    It takes long: it plays a share of 45 deaths, each in an installation of its own.
    """
    found = set()
    for steps in range(1, 90, 2 * SHARE):
        fleet = Fleet(tmp_path / str(steps))
        east = fleet.register("east", env="production")
        kube = management(fleet)
        kube.put(widget("1"))
        fleet.pump()
        fleet.apply(reads())
        fate = Fate()
        rig.interpose(fleet, partial(Mortal, fate=fate))
        fleet.access.clusters = {EAST: east, MANAGEMENT: kube}
        fate.doom(steps)
        with suppress(Killed):
            fleet.pump()
        fate.revive()
        rig.release(fleet)
        fleet.reread()
        fleet.clock.advance(rig.VISIBILITY)
        rig.tick(fleet)
        fleet.pump()
        write(fleet, widget("2"))
        fleet.pump()
        found.add((said(east)["got-own"], *noted(fleet)))
        fleet.close()

    assert found == {("2", ("read", "own", EAST))}


@pytest.mark.parametrize("number", [*range(8), *range(8, 40, 2)])
def test_who_reads_again_while_a_sweep_strikes_it_out_is_followed(
    fleet: Fleet, mgmt: FakeKube, east: FakeKube, number: int
) -> None:
    """Of the one that lets go of the kind and the one that reads it, one sees the other."""
    assert mgmt
    # What somebody left over who died after he had noted what is read no more.
    key, reader = READ.identity, TemplateDependency("", "", "own", EAST)
    fleet.apply(profile(), holder("own", config("got-own", "v: 'alone'")))
    fleet.pump()
    token = fleet.records.readers.note(key, reader)
    fleet.records.readers.settle(key, reader, expect=token)

    def comes() -> None:
        fleet.apply(reads())
        fleet.work("deploy", hand(fleet, "deploy"))
        fleet.work("apply", hand(fleet, "apply"))

    with interrupted(fleet.records, number, comes) as found:
        # At first that look alone, so that each of its calls is met.
        TemplateDependencies(fleet.records, fleet.publisher, fleet.settings).kinds()
        fleet.stages["sweep"].handle(Resync(MANAGEMENT))
    if not found.met:
        comes()
    fleet.pump()
    assert said(east) == {"got-own": "1"}

    write(fleet, widget("2"))
    fleet.pump()

    assert said(east) == {"got-own": "2"}


def test_a_late_message_of_a_profile_that_is_gone_notes_nothing(
    fleet: Fleet, mgmt: FakeKube
) -> None:
    """It may come a week later, and twice."""
    assert mgmt
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    reader = TemplateDependency("", "", "own", EAST)
    token = fleet.records.readers.note(READ.identity, reader)
    fleet.records.readers.settle(READ.identity, reader, expect=token)

    for _ in range(2):
        fleet.publisher.publish([Apply("", "", "own", EAST)])
        fleet.pump()

    assert noted(fleet) == []
