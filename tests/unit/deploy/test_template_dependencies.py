"""Dependencies of templates on `mgmt/mgmt`: followed at once, as long as a profile has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from bellhop.core.gvk import GVK, Identity, ObjectKey, Resource
from bellhop.deploy.dependencies import TemplateDependencies
from bellhop.errors import BellhopError, StaleError
from bellhop.ports.queue import Delivery, Done
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.deployment import TemplateDependency
from bellhop.state.ingest_policy import MOST_FOLLOWED, IngestPolicy
from bellhop.state.messages import Apply, ReadBack, Resync
from tests.fakes import rig
from tests.fakes.fleet import Fleet, OpenFleet, service
from tests.fakes.hosted import hosted, local
from tests.fakes.interrupted import interrupted
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, source, trigger
from tests.fakes.mortal import Killed, kill_before_publishing
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
    said,
    sent_resources,
    widget,
    write,
)
from tests.fakes.share import SHARE

EAST, WEST = "fleet/east", "fleet/west"
READ = ObjectKey(WIDGET, "default", "read")
BY_CLUSTER = refs("of-{{ .Cluster.metadata.name }}")


@pytest.fixture
def mgmt(fleet: Fleet, east: FakeKube) -> FakeKube:
    """Register what is read, and a cluster that has what was rendered with it."""
    assert east
    kube = management(fleet)
    kube.put(widget("1"))
    # What it rings for from its registration on is nobody's merit here.
    fleet.pump()
    fleet.deploy(reads())
    return kube


def take(fleet: Fleet, inbox: str) -> Sequence[Delivery]:
    """Take one message."""
    return fleet.queues[inbox].receive(1, wait=timedelta(0))


def exhaust_retries(fleet: Fleet) -> None:
    """Let what fails be tried until its next try is far away."""
    fleet.wait(fleet.settings.retry_ceiling, 12)


def phase(fleet: Fleet) -> str:
    (outcome,) = fleet.records.outcomes.of(EAST)
    return outcome.phase


# What is followed ---------------------------------------------------------------------------------


def test_a_change_renders_again_at_once(fleet: Fleet, mgmt: FakeKube, east: FakeKube) -> None:
    """The kind sends events for all, and the profiles that read the object are applied again."""
    assert said(east) == {"got-own": "1"}
    assert sent_resources(mgmt) == ["widgets"]
    assert noted(fleet) == [("read", "own", EAST)]

    assert write(fleet, widget("2")) == 1
    fleet.pump()

    assert said(east) == {"got-own": "2"}


def test_what_renders_alike_is_not_written(fleet: Fleet, mgmt: FakeKube, east: FakeKube) -> None:
    """Other fields of the object do not matter."""
    assert mgmt
    east.calls.clear()
    write(fleet, {**widget("1"), "status": {"ready": True}})
    fleet.pump()

    assert [call for call in east.calls if call.verb == "apply"] == []


@pytest.mark.usefixtures("mgmt")
def test_an_event_that_no_profile_reads_costs_one_query(fleet: Fleet) -> None:
    """The number of profiles that read other objects of its kind does not matter."""
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
    fleet.deploy(reads(refs(more=more)))
    assert said(east) == ({"got-own": "none"} if more else {})
    assert phase(fleet) == ("Provisioned" if more else "FailedNonRetriable")
    exhaust_retries(fleet)

    write(fleet, widget("1"))
    fleet.pump()
    assert said(east) == {"got-own": "1"}
    assert phase(fleet) == "Provisioned"

    drop(fleet, READ)
    fleet.pump()
    assert said(east) == {"got-own": "none" if more else "1"}
    exhaust_retries(fleet)
    write(fleet, widget("2"))
    fleet.pump()
    assert said(east) == {"got-own": "2"}


def test_each_destination_follows_what_it_reads(fleet: Fleet, east: FakeKube) -> None:
    """Names are templates, and a change concerns only those that read the object."""
    west = fleet.register("west", env="production")
    kube = management(fleet)
    for name in ("of-east", "of-west"):
        kube.put(widget(name, name))
    fleet.deploy(reads(BY_CLUSTER))
    assert noted(fleet) == [("of-east", "own", EAST), ("of-west", "own", WEST)]
    east.calls.clear()

    write(fleet, widget("2", "of-west"))
    fleet.pump()

    assert (said(east), said(west)) == ({"got-own": "of-east"}, {"got-own": "2"})
    assert east.calls == []


def test_another_label_reads_another_object(fleet: Fleet, east: FakeKube) -> None:
    """A former object of a target cluster no longer affects it."""
    kube = management(fleet)
    kube.put(widget("1", "a"))
    kube.put(widget("2", "b"))
    fleet.declare.label(EAST, {"env": "production", "zone": "a"})
    fleet.deploy(reads(refs("{{ .Cluster.metadata.labels.zone }}")))
    assert said(east) == {"got-own": "1"}

    fleet.declare.label(EAST, {"env": "production", "zone": "b"})
    fleet.pump()

    assert said(east) == {"got-own": "2"}
    assert noted(fleet) == [("b", "own", EAST)]


def test_a_cluster_scoped_object_is_followed_in_whatever_namespace_it_is_named(
    fleet: Fleet, east: FakeKube
) -> None:
    """Its ref may have any namespace, or none."""
    kube = management(fleet)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "read"}, "data": {}}
    kube.put({**space, "data": {"v": "1"}})
    fleet.deploy(reads(refs(kind=GVK("", "v1", "Namespace"))))
    assert said(east) == {"got-own": "1"}

    write(fleet, {**space, "data": {"v": "2"}})
    fleet.pump()

    assert said(east) == {"got-own": "2"}


def test_what_a_trigger_makes_follows_what_it_reads(fleet: Fleet, east: FakeKube) -> None:
    """Each object's profile reads its own; that of a deleted object reads none."""
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
    fleet.deploy(join(local(BY_CLUSTER), hosted(config("here", text))))
    write(fleet, widget("2", "of-east"))
    fleet.pump()

    assert said(kube)["here"] == "2"
    assert ("of-east", "own", MANAGEMENT) in noted(fleet)


def test_what_bellhop_writes_itself_is_followed(
    fleet: Fleet, mgmt: FakeKube, east: FakeKube
) -> None:
    """Its own writes send no event: the writer notifies the profiles that read them."""
    mgmt.drop(*READ)
    fleet.resync()
    exhaust_retries(fleet)
    text = "apiVersion: shop.io/v1\nkind: Widget\nmetadata: {name: read, namespace: default}\n"
    own = profile("clusterRefs: [{namespace: mgmt, name: mgmt}]", name="its")
    for value in "23":
        fleet.deploy(join(own, holder("its", f"{text}data: {{v: '{value}'}}\n")))
        assert said(east) == {"got-own": value}


def test_a_kind_of_another_group_is_no_configmap(fleet: Fleet, east: FakeKube) -> None:
    """By its apiVersion it is known where it is, and that it is followed."""
    kind = GVK("shop.io", "v1", "Secret")
    kube = management(fleet)
    kube.serve(Resource(kind, "secrets", namespaced=True))
    thing = {**widget("1"), "kind": "Secret"}
    kube.put(thing)
    fleet.deploy(reads(refs(kind=kind)))
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
    fleet.deploy(reads(ref))
    assert said(east) == {"got-own": "one1"}
    assert sent_resources(kube) == [f"{kind.lower()}s"]

    assert write(fleet, plain("two2", kind)) == 1
    fleet.pump()
    assert said(east) == {"got-own": "two2"}

    fleet.deploy(yaml.safe_dump(plain("thr3", kind)))
    fleet.resync(MANAGEMENT)
    assert said(east) == {"got-own": "thr3"}
    assert noted(fleet) == []
    assert sent_resources(kube) == []

    fleet.delete(kind, "read", "default")
    assert said(east) == {"got-own": "two2"}
    assert sent_resources(kube) == [f"{kind.lower()}s"]


def test_a_configmap_that_a_trigger_deploys_to_the_management_cluster_is_followed(
    fleet: Fleet, east: FakeKube
) -> None:
    """It is missing before; Bellhop's own write of it sends no event, and renders again."""
    kube = management(fleet)
    fleet.deploy(reads(refs(kind=CONFIG)))
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
    """No event is sent for it, and no resync has it read again."""
    kube = management(fleet)
    fleet.deploy(reads(refs(kind=CONFIG)), config("read", "v: '1'"))
    kube.calls.clear()
    fleet.resync()

    assert said(east) == {"got-own": "1"}
    assert [call for call in kube.calls if call.gvk == CONFIG] == []
    (outcome,) = fleet.records.outcomes.of(EAST)
    assert not outcome.reads


def test_an_event_shows_a_tenant_no_more_than_its_permissions(fleet: Fleet, east: FakeKube) -> None:
    """The profile is rendered again with the permissions of its account, which may have changed."""
    kube = management(fleet)
    kube.put(widget("1"))
    labels = "labels: {projectsveltos.io/serviceaccount-name: ann, "
    labels += "projectsveltos.io/serviceaccount-namespace: team}"
    fleet.apply(reads().replace("metadata: {name: own}", f"metadata: {{name: own, {labels}}}", 1))
    east.rbac.grant("team/ann", "ConfigMap", "default", "get", "create", "patch")
    fleet.pump()
    exhaust_retries(fleet)
    assert said(east) == {}

    write(fleet, widget("2"))
    fleet.pump()
    assert said(east) == {}
    kube.rbac.grant("team/ann", "Widget", "default", "get")
    exhaust_retries(fleet)
    assert said(east) == {"got-own": "2"}
    write(fleet, widget("3"))
    fleet.pump()

    assert said(east) == {"got-own": "3"}
    asked = {call.account for call in kube.calls if (call.verb, call.gvk) == ("get", WIDGET)}
    assert asked == {"team/ann"}


def hint(fleet: Fleet, uid: str = "", before: int = 0) -> None:
    """Have an API server send ingest a dry-run call of a write that is not stored yet."""
    event_at = fleet.clock.now().isoformat()
    message = ReadBack(MANAGEMENT, str(READ), uid=uid, before=before, drift=True, event_at=event_at)
    fleet.publisher.publish([message])
    fleet.pump()


def test_an_api_server_that_calls_ingest_itself_is_followed(
    fleet: Fleet, mgmt: FakeKube, east: FakeKube
) -> None:
    """A hint is read back before profiles are notified: a change, a deletion, a creation."""
    fleet.deploy(reads(refs(more=", optional: true")))
    (old,) = mgmt.objects(WIDGET)
    uid, before = old["metadata"]["uid"], int(old["metadata"]["resourceVersion"])
    hint(fleet, uid, before)
    mgmt.put(widget("2"))
    fleet.wait(timedelta(seconds=1))
    assert said(east) == {"got-own": "2"}

    (old,) = mgmt.objects(WIDGET)
    hint(fleet, uid, int(old["metadata"]["resourceVersion"]))
    mgmt.drop(*READ)
    fleet.wait(timedelta(seconds=1))
    assert said(east) == {"got-own": "none"}

    hint(fleet)
    mgmt.put(widget("3"))
    fleet.wait(timedelta(seconds=1))
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
def test_an_object_that_no_profile_reads_sends_no_events(
    fleet: Fleet, mgmt: FakeKube, how: str
) -> None:
    """No record is left, and a late event has no effect."""
    ENDS[how](fleet)
    fleet.pump()
    assert noted(fleet) == []
    assert list(fleet.records.store.query(f"reads/{EAST}")) == []
    fleet.resync(MANAGEMENT)

    assert sent_resources(mgmt) == []
    gate = value_of(fleet.records.gates.get(MANAGEMENT))
    assert gate
    assert gate.followed == ()
    assert write(fleet, widget("2")) == 0
    assert fleet.pump() == 0


def test_a_one_time_profile_follows_nothing_once_deployed(fleet: Fleet, east: FakeKube) -> None:
    """The first event after that finds it out, and is the last."""
    kube = management(fleet)
    kube.put(widget("1"))
    fleet.deploy(reads(f"{refs()}\n  syncMode: OneTime"))

    write(fleet, widget("2"))
    fleet.pump()

    assert said(east) == {"got-own": "1"}
    assert noted(fleet) == []


def test_a_resync_deletes_dependencies_of_missing_profiles(fleet: Fleet, mgmt: FakeKube) -> None:
    """A kind sends events as long as an existing profile reads one, wherever a worker died."""
    for number in range(3):
        key = Identity("", "Service", "default", f"read-{number}")
        fleet.records.readers.note(key, TemplateDependency("", "", f"gone-{number}", EAST))
    fleet.resync(MANAGEMENT)

    assert noted(fleet) == [("read", "own", EAST)]
    assert sent_resources(mgmt) == ["widgets"]


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
def test_a_death_while_a_dependency_is_deleted_leaves_none_that_counts(
    open_fleet: OpenFleet,
) -> None:
    """If the cluster is selected again it follows its objects; otherwise nothing is left.

    It takes seconds: it plays a share of 54 deaths, each in an installation of its own.
    """
    for steps in range(1, 80, 3 * SHARE):
        for again in (True, False):
            fleet = open_fleet()
            east = fleet.register("east", env="production")
            kube = management(fleet)
            kube.put(widget("1"))
            fleet.deploy(reads())
            fleet.declare.label(EAST, {"env": "test"})
            rig.kill(fleet, rig.make_mortal(fleet), steps)
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


@pytest.mark.parametrize("number", range(4))
def test_a_settled_dependency_exists_wherever_its_deletion_dies(fleet: Fleet, number: int) -> None:
    """A worker that finds it settled need not look whether it is there."""
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
def test_a_dependency_noted_during_its_deletion_is_noted(fleet: Fleet, number: int) -> None:
    """In each order of the two it is noted and settled, or has to be done again."""
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
def test_a_dependency_settled_after_its_deletion_began_stays(fleet: Fleet, number: int) -> None:
    """The worker that deletes it yields to one that comes later, and is done before."""
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
def test_two_concurrent_deletions_leave_no_dependency(fleet: Fleet, number: int) -> None:
    """The second one comes in between at each call."""
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


def test_a_dependency_deleted_while_it_was_noted_does_not_stay(fleet: Fleet) -> None:
    """The worker that notes it finds that out when settling it, and begins again."""
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
    """As soon as the kind sends events for what is read there."""
    fleet.deploy(reads())
    exhaust_retries(fleet)
    assert said(east) == {}

    fleet.access.clusters[MANAGEMENT] = FakeKube(MANAGEMENT)
    kube = management(fleet)
    kube.put(widget("1"))
    fleet.pump()

    assert said(east) == {"got-own": "1"}
    assert sent_resources(kube) == ["widgets"]


@pytest.mark.parametrize("before", ["forgotten", "there"])
def test_another_cluster_of_that_name_is_followed(
    fleet: Fleet, mgmt: FakeKube, east: FakeKube, before: str
) -> None:
    """Registered again, or re-created under its name: it sends events, and is read again."""
    assert mgmt
    fleet.access.clusters[MANAGEMENT] = FakeKube(MANAGEMENT)
    if before == "forgotten":
        fleet.declare.deregister(MANAGEMENT)
        fleet.pump()
    kube = management(fleet, uid="other")
    kube.put(widget("2"))
    fleet.resync(MANAGEMENT)
    assert said(east) == {"got-own": "2"}
    assert sent_resources(kube) == ["widgets"]

    write(fleet, widget("3"))
    fleet.pump()

    assert said(east) == {"got-own": "3"}


def test_without_a_forwarder_resyncs_of_the_destination_follow(
    fleet: Fleet, east: FakeKube
) -> None:
    """And once there is one, it does."""
    kube = management(fleet, rings=False)
    kube.put(widget("1"))
    fleet.deploy(reads())
    kube.put(widget("2"))
    fleet.resync(MANAGEMENT)
    assert said(east) == {"got-own": "1"}
    fleet.resync()
    assert said(east) == {"got-own": "2"}
    kube.put(widget("3"))

    management(fleet)
    fleet.pump()

    assert said(east) == {"got-own": "3"}
    assert sent_resources(kube) == ["widgets"]


def test_a_kind_that_is_served_later_is_followed_from_the_next_resync_on(
    fleet: Fleet, east: FakeKube
) -> None:
    """No event reports a new definition; waiting profiles are notified then."""
    kube = management(fleet)
    kube.unserve(WIDGET)
    fleet.deploy(reads())
    exhaust_retries(fleet)
    assert (said(east), sent_resources(kube)) == ({}, [])

    management(fleet)
    kube.put(widget("1"))
    fleet.resync(MANAGEMENT)

    assert (said(east), sent_resources(kube)) == ({"got-own": "1"}, ["widgets"])


def test_a_declaration_keeps_it_ringing(fleet: Fleet, mgmt: FakeKube, east: FakeKube) -> None:
    """An ingest policy that is written without a resync still accepts it."""
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


def test_no_more_kinds_send_events_than_a_policy_holds(fleet: Fleet) -> None:
    """Resyncs follow the rest."""
    fleet.apply(reads())
    for number in range(MOST_FOLLOWED + 1):
        key = Identity("shop.io", f"Kind{number:04}", "default", "read")
        fleet.records.readers.note(key, TemplateDependency("", "", "own", EAST))
    elsewhere = TemplateDependencies(fleet.records, fleet.publisher, fleet.settings)
    elsewhere._reads = lambda *_: True  # type: ignore[method-assign]

    found = elsewhere.kinds()

    assert [found[0], found[-1]] == [("shop.io", "Kind0000"), ("shop.io", "Kind0255")]


def test_a_worker_without_time_to_note_all_deletes_no_dependency(
    fleet: Fleet, east: FakeKube
) -> None:
    """The dependencies of clusters that it did not read are unknown: resyncs follow them."""
    assert east
    management(fleet).put(widget("1", "of-east"))
    fleet.deploy(join(local(BY_CLUSTER), hosted(config("here", "v: '1'"))))
    before = noted(fleet)
    elsewhere = fleet.reconciler._dependencies

    elsewhere._patience = timedelta(seconds=-1)
    fleet.deploy(holder("here", config("here", "v: '2'"), annotations=TEMPLATE))

    assert ("of-east", "own", MANAGEMENT) in before
    assert noted(fleet) == before


def test_a_gate_of_a_later_catalog_is_written_again(fleet: Fleet, east: FakeKube) -> None:
    """The policy lets events in, whatever was declared during the resync."""
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
    """One event has its drift corrected, and the corrected object read."""
    mgmt.drop(*READ)
    text = "apiVersion: shop.io/v1\nkind: Widget\nmetadata: {name: read, namespace: default}\n"
    more = "syncMode: ContinuousWithDriftDetection"
    own = profile("clusterRefs: [{namespace: mgmt, name: mgmt}]", name="its", more=more)
    fleet.deploy(join(own, holder("its", f"{text}data: {{v: '7'}}\n")))
    assert said(east) == {"got-own": "7"}
    (there,) = mgmt.objects(WIDGET)

    write(fleet, {**there, "status": {"v": "8"}, "data": {"v": "7", "w": "9"}})
    asked = [each.message.body for each in fleet.queues["apply"].receive(9, wait=timedelta(0))]

    told = {(each["profile"], each["destination"], "touched" in each) for each in asked}
    assert told == {("its", MANAGEMENT, True), ("own", EAST, False)}


@pytest.mark.usefixtures("east")
def test_many_concurrent_readers_request_few_resyncs(fleet: Fleet) -> None:
    """A roll-out to a fleet of hundreds does not resync the cluster hundreds of times.

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
            fleet.work(inbox, take(fleet, inbox))
        for each in take(fleet, "sweep"):
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
def test_a_death_before_a_kind_sends_events_leaves_it_unsettled(
    fleet: Fleet, east: FakeKube
) -> None:
    """The message comes again, and requests the resync that has the kind's events sent."""
    management(fleet).put(widget("1"))
    fleet.pump()
    fleet.apply(reads())

    kill_before_publishing(fleet.publisher, lambda each: isinstance(each, Resync), fleet.pump)
    rig.release(fleet)
    fleet.wait(rig.VISIBILITY)
    write(fleet, widget("2"))
    fleet.pump()

    assert said(east)["got-own"] == "2"


def test_a_death_leaves_it_followed(open_fleet: OpenFleet) -> None:
    """A later change is rendered by its event alone, at whichever step the worker dies.

    It takes long: it plays a share of 45 deaths, each in an installation of its own.
    """
    found = set()
    for steps in range(1, 90, 2 * SHARE):
        fleet = open_fleet()
        east = fleet.register("east", env="production")
        kube = management(fleet)
        kube.put(widget("1"))
        fleet.pump()
        fleet.apply(reads())
        rig.kill(fleet, rig.make_mortal(fleet), steps)
        fleet.clock.advance(rig.VISIBILITY)
        rig.tick(fleet)
        fleet.pump()
        write(fleet, widget("2"))
        fleet.pump()
        found.add((said(east)["got-own"], *noted(fleet)))

    assert found == {("2", ("read", "own", EAST))}


@pytest.mark.parametrize("number", [*range(8), *range(8, 40, 2)])
def test_a_profile_that_reads_again_while_a_resync_deletes_its_dependency_is_followed(
    fleet: Fleet, mgmt: FakeKube, east: FakeKube, number: int
) -> None:
    """Of the worker that drops the kind and the one that reads it, one sees the other."""
    assert mgmt
    # What somebody left over who died after he had noted what is read no more.
    key, reader = READ.identity, TemplateDependency("", "", "own", EAST)
    fleet.deploy(profile(), holder("own", config("got-own", "v: 'alone'")))
    token = fleet.records.readers.note(key, reader)
    fleet.records.readers.settle(key, reader, expect=token)

    def comes() -> None:
        fleet.apply(reads())
        fleet.work("deploy", take(fleet, "deploy"))
        fleet.work("apply", take(fleet, "apply"))

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


def test_a_late_message_of_a_deleted_profile_notes_nothing(fleet: Fleet, mgmt: FakeKube) -> None:
    """It may come a week later, and twice."""
    assert mgmt
    fleet.delete("ClusterProfile", "own")
    reader = TemplateDependency("", "", "own", EAST)
    token = fleet.records.readers.note(READ.identity, reader)
    fleet.records.readers.settle(READ.identity, reader, expect=token)

    for _ in range(2):
        fleet.publisher.publish([Apply("", "", "own", EAST)])
        fleet.pump()

    assert noted(fleet) == []
