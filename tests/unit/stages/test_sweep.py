"""What sweeps find, count, confirm, and do not believe."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.errors import DeniedError, TemporaryError, UnreachableError
from bellhop.ports.kube import Page
from bellhop.settings import Settings
from bellhop.state.messages import ReadBack, Resync
from bellhop.state.miss_rate import Tally, tallied
from tests.fakes.fleet import SERVICE, Fleet, service
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube

POLICY = GVK("networking.k8s.io", "v1", "NetworkPolicy")
WEB = ObjectKey(SERVICE, "default", "web")
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """A cluster in which labelled Services get a policy."""
    kube = fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    return kube


def sweep(fleet: Fleet, times: int = 1) -> None:
    for _ in range(times):
        fleet.clock.advance(timedelta(seconds=1))
        fleet.publisher.publish([Resync("fleet/east")])
        fleet.pump()


def policies(kube: FakeKube) -> list[str]:
    return [each["metadata"]["name"] for each in kube.objects(POLICY)]


def test_finds_what_the_push_missed_and_counts_it(fleet: Fleet, east: FakeKube) -> None:
    """Objects that came, changed and went without a ring are made good."""
    east.put(service("web"))
    east.put(service("other"))
    sweep(fleet)
    assert policies(east) == ["front-other", "front-web"]
    assert fleet.records.health.get("fleet/east").value.missed == 2

    east.drop(*WEB)
    sweep(fleet)
    assert policies(east) == ["front-other"]
    assert fleet.records.health.get("fleet/east").value.missed == 3

    sweep(fleet)
    assert fleet.records.health.get("fleet/east").value.missed == 3


def test_one_object_that_cannot_be_read_is_left_out_alone(fleet: Fleet, east: FakeKube) -> None:
    """Others come and go beside it; what was made of it stays, and the health names it."""
    for name in ("old", "known"):
        east.put(service(name))
    sweep(fleet)
    east.unreadable = {("Service", "evil"), ("Service", "known")}
    for name in ("evil", "new"):
        east.put(service(name))
    east.drop(SERVICE, "default", "old")
    sweep(fleet, 4)

    health = fleet.records.health.get("fleet/east").value
    assert policies(east) == ["front-known", "front-new"]
    assert (health.state, health.unseen) == ("Healthy", ())
    assert "Service 'default/evil' is left out: too large" in health.message
    assert "Service 'default/known' is left out: too large" in health.message

    east.unreadable = set()
    sweep(fleet)
    east.unreadable = {("Service", "known")}
    east.drop(SERVICE, "default", "known")
    sweep(fleet)

    assert policies(east) == ["front-evil", "front-new"]


def test_an_object_that_cannot_be_read_is_not_taken_for_deleted(
    fleet: Fleet, east: FakeKube
) -> None:
    """A list that leaves it out is not believed while a read says that it is there."""
    east.put(service("web"))
    sweep(fleet)
    there = east.page

    def page(gvk: GVK, **options: Any) -> Page:
        return there(gvk, **options)._replace(unread=())

    east.unreadable = {("Service", "web")}
    east.page = page  # type: ignore[method-assign]
    sweep(fleet, 4)

    assert policies(east) == ["front-web"]


def test_what_was_there_before_is_no_miss(fleet: Fleet) -> None:
    """Neither before its cluster was registered, nor before a source asked for its kind."""
    kube = fleet.register("east", env="production")
    kube.put(service("before"))
    fleet.pump()
    fleet.apply_example("network-policy")
    fleet.pump()

    health = fleet.records.health.get("fleet/east").value
    assert policies(kube) == ["front-before"]
    assert (health.seen, health.missed) == (1, 0)
    kube.put(service("after"))
    sweep(fleet)
    assert fleet.records.health.get("fleet/east").value.missed == 1


def test_counts_misses_for_a_day(fleet: Fleet, east: FakeKube) -> None:
    """A miss is told for twelve hours at least, and for a day at most, with since when."""
    begun = fleet.clock.now()
    east.put(service("web"))
    sweep(fleet)
    fleet.clock.advance(timedelta(hours=13))
    sweep(fleet)
    half = fleet.records.health.get("fleet/east").value
    fleet.clock.advance(timedelta(hours=12))
    sweep(fleet)
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
    ahead = tallied((), now + timedelta(days=60), 5, 3)

    assert tallied(ahead, now, 2, 1) == (Tally(now, 2, 1),)


def test_costs_the_same_where_much_is_as_it_was(fleet: Fleet, east: FakeKube) -> None:
    """A sweep that finds nothing new asks the store as often at 5 objects as at 50."""
    costs = []
    for count in (5, 50):
        for number in range(count):
            east.put(service(f"s{number}"))
        sweep(fleet, 2)
        fleet.store.counts.clear()
        sweep(fleet)
        costs.append({kind: n for kind, n in fleet.store.counts.items() if kind != "item"})

    assert costs[0] == costs[1]


def test_withdraws_nothing_because_a_cluster_is_silent(fleet: Fleet, east: FakeKube) -> None:
    """An error is never an empty answer: what was there stays, and the cluster is Down."""
    fleet.write("east", service("web"))
    fleet.pump()
    east.fail_with(UnreachableError("cluster 'fleet/east' does not answer"), "list")
    east.drop(*WEB)

    sweep(fleet)

    health = fleet.records.health.get("fleet/east").value
    assert (health.state, health.message) == ("Down", "cluster 'fleet/east' does not answer")
    assert policies(east) == ["front-web"]


def test_believes_a_missing_object_only_when_a_read_confirms_it(
    fleet: Fleet, east: FakeKube
) -> None:
    """A list that comes back short withdraws nothing as long as the object can be read."""
    fleet.write("east", service("web"))
    fleet.pump()
    whole = east.page
    east.page = lambda _gvk, **_: Page([])  # type: ignore[assignment, method-assign]
    sweep(fleet)
    assert policies(east) == ["front-web"]

    east.page = whole  # type: ignore[method-assign]
    east.drop(*WEB)
    sweep(fleet)
    assert policies(east) == []


@pytest.mark.parametrize("verb", ["page", "get"])
def test_what_comes_while_a_cluster_is_asked_is_not_undone_by_its_answer(
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
        sweep(fleet)
    else:
        confirm(fleet, stored["metadata"]["uid"], before=1)

    assert east.objects(SERVICE) == []
    assert policies(east) == []


def _claim(number: int) -> dict[str, Any]:
    made = service(f"lie-{number}")
    made["metadata"] |= {"uid": f"u-{number}", "resourceVersion": "1"}
    return {"object": made}


def test_what_a_sender_invents_goes_with_the_next_sweep(tmp_path: Path) -> None:
    """However much it is: no guard against lying lists protects what no list has ever shown."""
    fleet = Fleet(tmp_path)
    east = fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    for number in range(5):
        fleet.write("east", service(f"real-{number}"))
    fleet.send("east", *map(_claim, range(30)))
    fleet.pump()
    assert len(policies(east)) == 35

    sweep(fleet)

    assert policies(east) == [f"front-real-{number}" for number in range(5)]
    assert list(fleet.records.holds.all("fleet/east")) == []


def test_what_a_list_has_shown_once_is_guarded_beside_what_none_has(tmp_path: Path) -> None:
    """A list that loses all of a sudden takes only along what the sender alone has told of."""
    fleet = Fleet(tmp_path)
    east = fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    for number in range(20):
        fleet.write("east", service(f"real-{number:02}"))
    fleet.pump()
    sweep(fleet)
    fleet.send("east", *map(_claim, range(30)))
    fleet.send("east", {"object": dict(east.objects(SERVICE)[0])})
    fleet.pump()
    for each in east.objects(SERVICE):
        east.drop(SERVICE, "default", each["metadata"]["name"])

    sweep(fleet)

    assert len(policies(east)) == 20
    assert not any("lie" in name for name in policies(east))
    assert "20 of 20 are missing" in fleet.records.health.get("fleet/east").value.message


def test_holds_a_deletion_of_suspiciously_much(tmp_path: Path) -> None:
    """More than half of many objects gone at once is believed when three sweeps agree."""
    fleet = Fleet(tmp_path, Settings(hold_share=0))
    east = fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    for number in range(20):
        fleet.write("east", service(f"s{number:02}"))
    fleet.pump()
    for number in range(18):
        east.drop(SERVICE, "default", f"s{number:02}")

    sweep(fleet, 2)
    assert len(policies(east)) == 20
    assert [entry.what for entry in fleet.ledger()].count("held") == 2

    sweep(fleet)
    assert policies(east) == ["front-s18", "front-s19"]
    fleet.close()


def test_a_kind_that_is_not_served_any_more_has_no_objects_when_sweeps_agree(
    fleet: Fleet, east: FakeKube
) -> None:
    """With its definition went its objects; until three sweeps say so it is held, and told."""
    fleet.write("east", service("web"))
    fleet.pump()
    [served] = [east.resource(SERVICE)]
    assert served
    east.unserve(SERVICE)

    sweep(fleet, 2)
    assert policies(east) == ["front-web"]
    assert "not served any more" in fleet.records.health.get("fleet/east").value.message
    sweep(fleet)
    assert policies(east) == []
    assert list(fleet.records.matches.of("fleet/east")) == []

    east.serve(served)
    east.put(service("web"))
    sweep(fleet)
    assert policies(east) == ["front-web"]
    assert fleet.records.health.get("fleet/east").value.message == ""


def test_a_kind_that_is_served_again_before_sweeps_agree_has_lost_nothing(
    fleet: Fleet, east: FakeKube
) -> None:
    """Sweeps that see the kind between those that do not begin to count anew."""
    fleet.write("east", service("web"))
    fleet.pump()
    served = east.resource(SERVICE)
    assert served
    for _ in range(3):
        east._resources.pop(SERVICE)
        sweep(fleet, 2)
        east.serve(served)
        sweep(fleet)

    assert policies(east) == ["front-web"]
    assert "remove" not in {call.verb for call in east.calls}


def test_a_version_that_is_not_served_any_more_says_nothing(fleet: Fleet, east: FakeKube) -> None:
    """The objects are there in another version; the cluster's message says which one to name."""
    fleet.write("east", service("web"))
    fleet.pump()
    east.serve(Resource(SERVICE._replace(version="v2"), "services", namespaced=True))
    east.unserve(SERVICE)

    sweep(fleet, 4)

    assert policies(east) == ["front-web"]
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
        sweep(fleet)
        for _ in range(6):
            fleet.clock.advance(timedelta(minutes=1))
            fleet.pump()

    health = fleet.records.health.get("fleet/east").value
    assert (health.state, health.message) == ("Healthy", "the API behind it does not answer")
    assert fleet.records.observations.head("fleet/east", ObjectKey(other, "default", "robot"))
    kept = fleet.records.observations.head("fleet/east", WEB)
    assert kept
    assert not kept.gone


def test_applies_again_what_had_failed_for_a_while(fleet: Fleet, east: FakeKube) -> None:
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
    sweep(fleet)

    assert policies(east) == ["front-web"]


def test_makes_the_cluster_ring_for_the_kinds_that_count(fleet: Fleet) -> None:
    """The webhook configuration follows the sources: narrow, and empty without them."""
    from msgspec.structs import replace  # noqa: PLC0415 - one test's cluster

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

    fleet.declare.delete([("EventSource", "", "sveltos-service")])
    fleet.pump()
    assert kube.objects(WEBHOOK)[0]["webhooks"] == []


def confirm(
    fleet: Fleet, uid: str, before: int, age: timedelta = timedelta(0), *, creates: bool = False
) -> None:
    rang = (fleet.clock.now() - age).isoformat()
    message = ReadBack(
        "fleet/east", str(WEB), uid=uid, before=before, trace="t", rang=rang, creates=creates
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

    assert policies(east) == ["front-web"]


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
    assert policies(east) == []
    head = fleet.records.observations.head("fleet/east", WEB)
    assert head is None or (head.gone and head.uid != "u")
    stored = east.put(service("web"))

    confirm(fleet, stored["metadata"]["uid"], 0, creates=True)

    assert policies(east) == ["front-web"]


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
    assert policies(east) == []

    fleet.write("east", service("web", metadata={**metadata, "annotations": {"a": "b"}}))
    fleet.pump()

    assert policies(east) == ["front-web"]


def test_what_comes_late_does_not_bring_back_a_deleted_object(fleet: Fleet, east: FakeKube) -> None:
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
    assert policies(east) == []


def test_a_hint_in_one_version_rings_for_all_that_sources_name(fleet: Fleet) -> None:
    """An API server rings in the version that was written; it is the same object in each."""
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
    rang = ObjectKey(versions[1], "default", "web")
    hint = ReadBack("fleet/east", str(rang), uid=uid, before=0)

    fleet.stages["sweep"].handle(hint)
    fleet.pump()
    assert {each.key.gvk for each in fleet.records.matches.of("fleet/east")} == {*versions}

    kube.drop(*rang)
    fleet.stages["sweep"].handle(hint)
    fleet.pump()
    assert list(fleet.records.matches.of("fleet/east")) == []


def test_gives_up_a_message_nobody_sends(fleet: Fleet) -> None:
    """An unknown message goes to the dead letters at once, and is not tried for ever."""
    from bellhop.ports.queue import Message  # noqa: PLC0415 - one test's message

    for name in ("sweep", "deploy"):
        fleet.queues[name].publish([Message({"do": "dance"}, "g")])
    fleet.pump()
    fleet.clock.advance(timedelta(hours=1))

    fleet.pump()
    for name in ("sweep", "deploy"):
        assert [letter.attempts for letter in fleet.queues[name].list()] == [1]
    assert fleet.output.getvalue().count("Cannot read a message") == 2
