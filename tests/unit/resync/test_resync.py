"""Resyncs: missed events, their number, and answers that are not believed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.errors import DeniedError, TemporaryError, UnreachableError
from bellhop.ports.kube import Page
from bellhop.ports.queue import Message
from bellhop.settings import Settings
from bellhop.state.cluster import Tally, add_tally
from bellhop.state.messages import ReadBack
from tests.fakes.fleet import POLICY, SERVICE, Fleet, OpenFleet, service
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube

WEB = ObjectKey(SERVICE, "default", "web")
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """A cluster in which labelled Services get a policy."""
    kube = fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    return kube


def resync(fleet: Fleet, times: int = 1) -> None:
    for _ in range(times):
        fleet.clock.advance(timedelta(seconds=1))
        fleet.resync()


def test_finds_and_counts_missed_events(fleet: Fleet, east: FakeKube) -> None:
    """Objects that were created, changed or deleted without an event are corrected."""
    east.put(service("web"))
    east.put(service("other"))
    resync(fleet)
    assert east.names(POLICY) == ["front-other", "front-web"]
    assert fleet.records.health.get("fleet/east").value.missed == 2

    east.drop(*WEB)
    resync(fleet)
    assert east.names(POLICY) == ["front-other"]
    assert fleet.records.health.get("fleet/east").value.missed == 3

    resync(fleet)
    assert fleet.records.health.get("fleet/east").value.missed == 3


def test_an_object_that_cannot_be_read_is_left_out(fleet: Fleet, east: FakeKube) -> None:
    """Others come and go beside it; what was made of it stays, and the health names it."""
    for name in ("old", "known"):
        east.put(service(name))
    resync(fleet)
    east.unreadable = {("Service", "evil"), ("Service", "known")}
    for name in ("evil", "new"):
        east.put(service(name))
    east.drop(SERVICE, "default", "old")
    resync(fleet, 4)

    health = fleet.records.health.get("fleet/east").value
    assert east.names(POLICY) == ["front-known", "front-new"]
    assert (health.state, health.unseen) == ("Healthy", ())
    assert "Service 'default/evil' is left out: too large" in health.message
    assert "Service 'default/known' is left out: too large" in health.message

    east.unreadable = set()
    resync(fleet)
    east.unreadable = {("Service", "known")}
    east.drop(SERVICE, "default", "known")
    resync(fleet)

    assert east.names(POLICY) == ["front-evil", "front-new"]


def test_an_object_that_cannot_be_read_is_not_taken_for_deleted(
    fleet: Fleet, east: FakeKube
) -> None:
    """A list that leaves it out is not believed while a read says that it is there."""
    east.put(service("web"))
    resync(fleet)
    there = east.page

    def page(gvk: GVK, **options: Any) -> Page:
        return there(gvk, **options)._replace(unread=())

    east.unreadable = {("Service", "web")}
    east.page = page  # type: ignore[method-assign]
    resync(fleet, 4)

    assert east.names(POLICY) == ["front-web"]


def test_objects_from_before_are_not_missed_events(fleet: Fleet) -> None:
    """Neither before its cluster was registered, nor before a source asked for its kind."""
    kube = fleet.register("east", env="production")
    kube.put(service("before"))
    fleet.pump()
    fleet.apply_example("network-policy")
    fleet.pump()

    health = fleet.records.health.get("fleet/east").value
    assert kube.names(POLICY) == ["front-before"]
    assert (health.seen, health.missed) == (1, 0)
    kube.put(service("after"))
    resync(fleet)
    assert fleet.records.health.get("fleet/east").value.missed == 1


def test_counts_misses_for_a_day(fleet: Fleet, east: FakeKube) -> None:
    """A missed event is shown for twelve hours at least, and for a day at most, with its time."""
    begun = fleet.clock.now()
    east.put(service("web"))
    resync(fleet)
    fleet.clock.advance(timedelta(hours=13))
    resync(fleet)
    half = fleet.records.health.get("fleet/east").value
    fleet.clock.advance(timedelta(hours=12))
    resync(fleet)
    later = fleet.records.health.get("fleet/east").value

    assert half.missed == 1
    assert half.counted_since
    assert begun <= half.counted_since < begun + timedelta(minutes=1)
    assert (later.missed, later.seen) == (0, 4)
    assert later.counted_since
    assert later.counted_since > begun + timedelta(hours=13)


def test_a_clock_that_was_ahead_leaves_no_count() -> None:
    """A tally of the future would never end."""
    now = datetime(2026, 1, 2, tzinfo=UTC)
    ahead = add_tally((), now + timedelta(days=60), 5, 3)

    assert add_tally(ahead, now, 2, 1) == (Tally(now, 2, 1),)


def test_unchanged_objects_cost_nothing(fleet: Fleet, east: FakeKube) -> None:
    """A resync that finds nothing new reads the store as often for 5 objects as for 50."""
    costs = []
    for count in (5, 50):
        for number in range(count):
            east.put(service(f"s{number}"))
        resync(fleet, 2)
        fleet.store.counts.clear()
        resync(fleet)
        costs.append({kind: n for kind, n in fleet.store.counts.items() if kind != "item"})

    assert costs[0] == costs[1]


def test_withdraws_nothing_because_a_cluster_is_silent(fleet: Fleet, east: FakeKube) -> None:
    """An error is never an empty answer: what was there stays, and the cluster is Down."""
    fleet.write("east", service("web"))
    fleet.pump()
    east.fail_with(UnreachableError("cluster 'fleet/east' does not answer"), "list")
    east.drop(*WEB)

    resync(fleet)

    health = fleet.records.health.get("fleet/east").value
    assert (health.state, health.message) == ("Down", "cluster 'fleet/east' does not answer")
    assert east.names(POLICY) == ["front-web"]


def test_believes_a_missing_object_only_when_a_read_confirms_it(
    fleet: Fleet, east: FakeKube
) -> None:
    """A list that comes back short withdraws nothing as long as the object can be read."""
    fleet.write("east", service("web"))
    fleet.pump()
    whole = east.page
    east.page = lambda _gvk, **_: Page([])  # type: ignore[assignment, method-assign]
    resync(fleet)
    assert east.names(POLICY) == ["front-web"]

    east.page = whole  # type: ignore[method-assign]
    east.drop(*WEB)
    resync(fleet)
    assert east.names(POLICY) == []


@pytest.mark.parametrize("verb", ["page", "get"])
def test_an_event_during_a_list_is_not_undone_by_it(
    fleet: Fleet, east: FakeKube, verb: str
) -> None:
    """Nor where the clock of the process that takes events is three seconds behind."""
    stored = east.put(service("web"))
    real = getattr(east, verb)

    def slow(*args: Any, **more: Any) -> Any:
        found = real(*args, **more)
        if args[0] == SERVICE and east.objects(SERVICE):
            fleet.clock.advance(timedelta(seconds=1))
            with fleet.clock.behind(timedelta(seconds=3)):
                fleet.drop("east", stored)
        return found

    setattr(east, verb, slow)
    if verb == "page":
        resync(fleet)
    else:
        confirm(fleet, stored["metadata"]["uid"], before=1)

    assert east.objects(SERVICE) == []
    assert east.names(POLICY) == []


def _claim(number: int) -> dict[str, Any]:
    made = service(f"lie-{number}")
    made["metadata"] |= {"uid": f"u-{number}", "resourceVersion": "1"}
    return {"object": made}


def test_objects_that_a_sender_invented_are_deleted_by_the_next_resync(
    fleet: Fleet, east: FakeKube
) -> None:
    """However much it is: no guard against lying lists protects what no list has ever shown."""
    for number in range(5):
        fleet.write("east", service(f"real-{number}"))
    fleet.send("east", *map(_claim, range(30)))
    fleet.pump()
    assert len(east.names(POLICY)) == 35

    resync(fleet)

    assert east.names(POLICY) == [f"front-real-{number}" for number in range(5)]
    assert list(fleet.records.holds.all("fleet/east")) == []


def test_listed_objects_are_guarded_beside_invented_ones(fleet: Fleet, east: FakeKube) -> None:
    """If a list suddenly loses many, only objects that no list has shown are deleted."""
    for number in range(20):
        fleet.write("east", service(f"real-{number:02}"))
    fleet.pump()
    resync(fleet)
    fleet.send("east", *map(_claim, range(30)))
    fleet.send("east", {"object": dict(east.objects(SERVICE)[0])})
    fleet.pump()
    for each in east.objects(SERVICE):
        east.drop(SERVICE, "default", each["metadata"]["name"])

    resync(fleet)

    assert len(east.names(POLICY)) == 20
    assert not any("lie" in name for name in east.names(POLICY))
    assert "20 of 20 are missing" in fleet.records.health.get("fleet/east").value.message


def test_holds_a_deletion_of_suspiciously_much(open_fleet: OpenFleet) -> None:
    """More than half of many objects count as deleted only when three resyncs confirm it."""
    fleet = open_fleet(Settings(hold_share=0))
    east = fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    for number in range(20):
        fleet.write("east", service(f"s{number:02}"))
    fleet.pump()
    for number in range(18):
        east.drop(SERVICE, "default", f"s{number:02}")

    resync(fleet, 2)
    assert len(east.names(POLICY)) == 20
    assert [entry.what for entry in fleet.ledger()].count("held") == 2

    resync(fleet)
    assert east.names(POLICY) == ["front-s18", "front-s19"]


def test_a_kind_that_is_not_served_any_more_has_no_objects_once_confirmed(
    fleet: Fleet, east: FakeKube
) -> None:
    """Its definition deleted its objects; until three resyncs confirm it, they are held."""
    fleet.write("east", service("web"))
    fleet.pump()
    [served] = [east.resource(SERVICE)]
    assert served
    east.unserve(SERVICE)

    resync(fleet, 2)
    assert east.names(POLICY) == ["front-web"]
    assert "not served any more" in fleet.records.health.get("fleet/east").value.message
    resync(fleet)
    assert east.names(POLICY) == []
    assert list(fleet.records.matches.of("fleet/east")) == []

    east.serve(served)
    east.put(service("web"))
    resync(fleet)
    assert east.names(POLICY) == ["front-web"]
    assert fleet.records.health.get("fleet/east").value.message == ""


def test_a_kind_that_is_served_again_before_confirmation_has_lost_nothing(
    fleet: Fleet, east: FakeKube
) -> None:
    """Resyncs that list the kind in between restart the count."""
    fleet.write("east", service("web"))
    fleet.pump()
    served = east.resource(SERVICE)
    assert served
    for _ in range(3):
        east._resources.pop(SERVICE)
        resync(fleet, 2)
        east.serve(served)
        resync(fleet)

    assert east.names(POLICY) == ["front-web"]
    assert "remove" not in {call.verb for call in east.calls}


def test_a_version_that_is_not_served_any_more_says_nothing(fleet: Fleet, east: FakeKube) -> None:
    """The objects are there in another version; the cluster's message says which one to name."""
    fleet.write("east", service("web"))
    fleet.pump()
    east.serve(Resource(SERVICE._replace(version="v2"), "services", namespaced=True))
    east.unserve(SERVICE)

    resync(fleet, 4)

    assert east.names(POLICY) == ["front-web"]
    assert "serves Service as v2" in fleet.records.health.get("fleet/east").value.message


@pytest.mark.parametrize("where", ["resource", "served"])
def test_a_kind_whose_api_is_away_has_not_lost_its_objects(
    fleet: Fleet, east: FakeKube, where: str
) -> None:
    """An aggregated API that does not answer is an error, however often, and harms only itself."""
    other = GVK("apps", "v1", "Deployment")
    fleet.apply(
        """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: sveltos-service}
spec:
  collectResources: true
  resourceSelectors:
  - {group: "", version: v1, kind: Service}
  - {group: apps, version: v1, kind: Deployment}
"""
    )
    fleet.write("east", service("web"))
    fleet.pump()
    if where == "served":
        east.unserve(SERVICE)
        east._resources.pop(SERVICE, None)
    real = getattr(east, where)

    def away(*args: Any) -> Any:
        if args in ((SERVICE,), ("", "Service")):
            raise UnreachableError("the API behind it does not answer")
        return real(*args)

    setattr(east, where, away)
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "robot"}}
    east.put(deployment)
    for _ in range(5):
        resync(fleet)
        for _ in range(6):
            fleet.wait(timedelta(minutes=1))

    health = fleet.records.health.get("fleet/east").value
    assert (health.state, health.message) == ("Healthy", "the API behind it does not answer")
    assert fleet.records.observations.head("fleet/east", ObjectKey(other, "default", "robot"))
    kept = fleet.records.observations.head("fleet/east", WEB)
    assert kept
    assert not kept.gone


def test_applies_failed_profiles_again_after_an_outage(fleet: Fleet, east: FakeKube) -> None:
    """A cluster that answers again gets what it could not be given, before that is tried again."""
    east.fail_with(DeniedError("cluster 'fleet/east' refuses: no right to anything"))
    fleet.write("east", service("web"))
    for _ in range(10):
        fleet.pump()
        fleet.clock.advance(timedelta(minutes=5))
    fleet.pump()
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert outcome.reason == "Denied"
    assert outcome.retry_at
    assert outcome.retry_at > fleet.clock.now() + timedelta(minutes=1)

    east.fail_with(None)
    resync(fleet)

    assert east.names(POLICY) == ["front-web"]


def test_subscribes_to_the_kinds_of_sources(fleet: Fleet) -> None:
    """The webhook configuration follows the sources: narrow, and empty without them."""
    kube = fleet.register("east", env="production")
    kube.serve(Resource(WEBHOOK, "validatingwebhookconfigurations", namespaced=False))
    cluster = value_of(fleet.records.clusters.get("fleet/east"))
    assert cluster
    wired = {"url": "https://127.0.0.1:1", "ca": "PEM", "path": "/ring/x"}
    fleet.declare.register(replace(cluster, forwarder=wired))
    fleet.apply_example("network-policy")
    fleet.pump()

    webhook = kube.objects(WEBHOOK)[0]["webhooks"][0]
    assert webhook["clientConfig"]["url"] == "https://127.0.0.1:1/ring/x"
    assert webhook["failurePolicy"] == "Ignore"
    assert [rule["resources"] for rule in webhook["rules"]] == [["services", "services/status"]]

    fleet.delete("EventSource", "sveltos-service")
    assert kube.objects(WEBHOOK)[0]["webhooks"] == []


def confirm(
    fleet: Fleet, uid: str, before: int, age: timedelta = timedelta(0), *, creates: bool = False
) -> None:
    event_at = (fleet.clock.now() - age).isoformat()
    message = ReadBack(
        "fleet/east",
        str(WEB),
        uid=uid,
        before=before,
        trace="t",
        event_at=event_at,
        creates=creates,
    )
    fleet.stages["sweep"].handle(message)
    fleet.pump()


def test_waits_for_a_hinted_change_to_be_stored(fleet: Fleet, east: FakeKube) -> None:
    """The object as it was before the hint says that the change is still to come."""
    stored = east.put(service("web"))
    uid, version = stored["metadata"]["uid"], int(stored["metadata"]["resourceVersion"])
    with pytest.raises(TemporaryError, match="not to be seen yet"):
        confirm(fleet, uid, version)
    east.put(service("web", spec={"selector": {"app": "new"}, "ports": [{"port": 1}]}))

    confirm(fleet, uid, version)

    assert east.names(POLICY) == ["front-web"]


def test_forgets_a_hint_of_a_creation_that_never_was(fleet: Fleet, east: FakeKube) -> None:
    """A creation that was denied leaves nothing behind."""
    with pytest.raises(TemporaryError):
        confirm(fleet, "u", 0)

    confirm(fleet, "u", 0, age=timedelta(seconds=11))

    assert fleet.records.observations.get("fleet/east", WEB) is None
    assert east.objects(POLICY) == []


@pytest.mark.parametrize("former", ["none", "deleted", "deleted unnoticed"])
def test_a_creation_that_is_not_stored_yet_is_not_recorded_as_deleted(
    fleet: Fleet, east: FakeKube, former: str
) -> None:
    """Whatever had its name before: it is read again until it is there, and then matches."""
    if former != "none":
        old = fleet.write("east", service("web"))
        fleet.pump()
        if former == "deleted":
            fleet.drop("east", old)
        else:
            east.drop(*WEB)
    with pytest.raises(TemporaryError, match="not to be seen yet"):
        confirm(fleet, "u", 0, creates=True)
    fleet.pump()
    assert east.names(POLICY) == []
    head = fleet.records.observations.head("fleet/east", WEB)
    assert head is None or (head.gone and head.uid != "u")
    stored = east.put(service("web"))

    confirm(fleet, stored["metadata"]["uid"], 0, creates=True)

    assert east.names(POLICY) == ["front-web"]


def test_waits_for_a_creation_while_a_former_object_is_still_there(
    fleet: Fleet, east: FakeKube
) -> None:
    """It is stored once that one is deleted; after ten seconds, it was refused."""
    stored = east.put(service("web"))
    with pytest.raises(TemporaryError, match="not to be seen yet"):
        confirm(fleet, "u", 0, creates=True)

    confirm(fleet, "u", 0, age=timedelta(seconds=11), creates=True)

    head = fleet.records.observations.head("fleet/east", WEB)
    assert head
    assert head.uid == stored["metadata"]["uid"]


def test_an_object_that_lives_is_read_again_where_it_is_recorded_as_deleted(
    fleet: Fleet, east: FakeKube
) -> None:
    """No uid comes back, so the record was wrong: the next that is sent of it puts it right."""
    stored = fleet.write("east", service("web"))
    fleet.pump()
    metadata = stored["metadata"]
    gone = {"key": str(WEB), "uid": metadata["uid"], "version": int(metadata["resourceVersion"])}
    assert fleet.send("east", {"gone": gone}).status == 200
    fleet.pump()
    assert east.names(POLICY) == []

    fleet.write("east", service("web", metadata={**metadata, "annotations": {"a": "b"}}))
    fleet.pump()

    assert east.names(POLICY) == ["front-web"]


def test_a_late_event_does_not_restore_a_deleted_object(fleet: Fleet, east: FakeKube) -> None:
    """The cluster is asked, and has none."""
    stored = fleet.write("east", service("web"))
    fleet.drop("east", stored)
    fleet.pump()
    later = {**stored["metadata"], "resourceVersion": "999"}

    assert fleet.send("east", {"object": {**stored, "metadata": later}}).status == 200
    fleet.pump()

    head = fleet.records.observations.head("fleet/east", WEB)
    assert head
    assert head.gone
    assert east.names(POLICY) == []


def test_a_hint_in_one_version_counts_for_all_versions_of_sources(fleet: Fleet) -> None:
    """An API server sends the version that was written; it is the same object in each."""
    kube = fleet.register("east", env="production")
    versions = [GVK("autoscaling", each, "HorizontalPodAutoscaler") for each in ("v1", "v2")]
    for gvk in versions:
        kube.serve(Resource(gvk, "horizontalpodautoscalers", namespaced=True))
    for gvk in versions:
        fleet.apply(
            f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: {gvk.version}}}
spec:
  resourceSelectors: [{{group: autoscaling, version: {gvk.version}, kind: {gvk.kind}}}]
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {{name: {gvk.version}}}
spec:
  sourceClusterSelector: {{matchLabels: {{env: production}}}}
  eventSourceName: {gvk.version}
"""
        )
    fleet.pump()
    metadata = {"name": "web", "namespace": "default"}
    stored = kube.put(
        {"apiVersion": "autoscaling/v2", "kind": versions[1].kind, "metadata": metadata}
    )
    uid = stored["metadata"]["uid"]
    changed = ObjectKey(versions[1], "default", "web")
    hint = ReadBack("fleet/east", str(changed), uid=uid, before=0)

    fleet.stages["sweep"].handle(hint)
    fleet.pump()
    assert {each.key.gvk for each in fleet.records.matches.of("fleet/east")} == {*versions}

    kube.drop(*changed)
    fleet.stages["sweep"].handle(hint)
    fleet.pump()
    assert list(fleet.records.matches.of("fleet/east")) == []


def test_an_unknown_message_is_dead_lettered(fleet: Fleet) -> None:
    """An unknown message goes to the dead letters at once, and is not tried for ever."""
    for name in ("sweep", "deploy"):
        fleet.queues[name].publish([Message({"do": "dance"}, "g")])
    fleet.pump()
    fleet.clock.advance(timedelta(hours=1))

    fleet.pump()
    for name in ("sweep", "deploy"):
        assert [letter.attempts for letter in fleet.queues[name].list()] == [1]
    assert fleet.output.getvalue().count("Cannot read a message") == 2
