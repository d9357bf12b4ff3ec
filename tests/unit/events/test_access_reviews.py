"""Access reviews: an EventSource with a service account matches what that may get and list."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from bellhop.api.kinds import InvalidDocuments
from bellhop.core.gvk import GVK
from bellhop.errors import DeniedError, UnreachableError
from bellhop.events.access_reviews import FRESH
from bellhop.settings import Settings
from bellhop.state.messages import Evaluate, ReviewAccess
from tests.fakes.fleet import Fleet, OpenFleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, source, trigger
from tests.unit.deploy.test_service_accounts import ANN, anns, names

SEES = ("get", "list")
BOB = "team/bob"
SERVICES = GVK("", "v1", "Service")


def bobs(manifest: str) -> str:
    """Return a rule that counts with the rights of the service account team/bob."""
    return anns(manifest).replace("name: ann", "name: bob")


def rules(name: str = "watched") -> str:
    """Return a source of Services that reads as team/ann, and a trigger of all rights on it."""
    made = holder(name, config("for-{{ .Resource.metadata.name }}"), annotations=INSTANTIATE)
    return join(anns(source(name=name)), trigger(name, origin=name), made)


def matched(fleet: Fleet, name: str = "watched") -> list[str]:
    """Return what matches a source, as namespace/name."""
    return sorted(
        f"{each.key.namespace}/{each.key.name}"
        for each in fleet.records.matches.of("fleet/east")
        if each.source == name and each.matching
    )


def resync(fleet: Fleet) -> None:
    """Resync as the schedule does, long after the last time."""
    fleet.clock.advance(timedelta(minutes=5))
    fleet.resync()


def there(fleet: Fleet, name: str, namespace: str = "default") -> None:
    """Create a Service, with its event."""
    fleet.write("east", service(name, namespace=namespace))


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    kube = fleet.register("east", env="production")
    for name in ("a", "b"):
        kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return kube


def test_matches_only_what_the_account_may_see(fleet: Fleet, east: FakeKube) -> None:
    """In the namespaces where it may get and list; one of the two is not enough."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    east.rbac.grant(ANN, "Service", "b", "get")
    fleet.deploy(rules())
    for namespace in ("a", "b", "default"):
        there(fleet, f"in-{namespace}", namespace)
    fleet.pump()

    assert matched(fleet) == ["a/in-a"]
    assert names(east) == {"for-in-a"}


def test_one_question_is_enough_where_it_may_list_all(fleet: Fleet, east: FakeKube) -> None:
    """No namespace is asked for, and for a minute nothing is."""
    east.rbac.grant(ANN, "Service", "", *SEES)
    fleet.deploy(rules())
    for name in ("one", "two"):
        there(fleet, name, "a")
        there(fleet, name, "b")
    fleet.pump()

    assert len(matched(fleet)) == 4
    assert [each.namespace for each in fleet.records.permits.of("fleet/east")] == [""]
    there(fleet, "three", "a")
    assert fleet.pump() == 3  # evaluate, instantiate, apply


def test_a_resync_finds_only_what_it_may_see(fleet: Fleet, east: FakeKube) -> None:
    """Objects that were there before, too."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    for namespace in ("a", "b"):
        east.put(service("old", namespace=namespace))
    fleet.deploy(rules())

    assert matched(fleet) == ["a/old"]


def test_changed_rights_are_found_by_resyncs(fleet: Fleet, east: FakeKube) -> None:
    """Matches that it may not see end as any other; objects that it may see now match."""
    for namespace in ("a", "b"):
        east.put(service("old", namespace=namespace))
    east.rbac.grant(ANN, "Service", "a", *SEES)
    fleet.deploy(rules())

    east.rbac.take(ANN, "Service", "a", *SEES)
    east.rbac.grant(ANN, "Service", "b", *SEES)
    resync(fleet)
    assert matched(fleet) == ["b/old"]

    east.rbac.grant(ANN, "Service", "", *SEES)
    resync(fleet)
    assert matched(fleet) == ["a/old", "b/old"]

    east.rbac.take(ANN, "Service", "", *SEES)
    resync(fleet)
    assert matched(fleet) == ["b/old"]


def test_many_objects_that_may_not_be_seen_any_more_are_held(open_fleet: OpenFleet) -> None:
    """A right that is removed by mistake removes a few add-ons, and given back it frees the others.

    Resyncs never confirm the others: they exist, and are only not visible.
    """
    fleet = open_fleet(Settings(hold_from=8, hold_share=0.25, hold_agreement=1))
    east = fleet.register("east", env="production")
    east.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    for number in range(10):
        east.put(service(f"old-{number}", namespace="a"))
    east.rbac.grant(ANN, "Service", "a", *SEES)
    fleet.deploy(rules())
    assert len(matched(fleet)) == 10

    east.rbac.take(ANN, "Service", "a", *SEES)
    for _ in range(6):
        resync(fleet)
    assert len(matched(fleet)) == 8
    [hold] = fleet.records.holds.all()
    assert hold.held_at

    east.rbac.grant(ANN, "Service", "a", *SEES)
    for _ in range(2):
        resync(fleet)
    assert len(matched(fleet)) == 10
    assert list(fleet.records.holds.all()) == []


def test_an_event_finds_out_within_a_minute(fleet: Fleet, east: FakeKube) -> None:
    """An answer counts so long; then the cluster is asked before anything new matches."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    fleet.apply(rules())
    there(fleet, "one", "a")
    fleet.pump()
    assert matched(fleet) == ["a/one"]

    east.rbac.take(ANN, "Service", "a", *SEES)
    fleet.clock.advance(FRESH + timedelta(seconds=1))
    there(fleet, "two", "a")
    fleet.pump()

    assert matched(fleet) == []


def test_without_an_answer_nothing_new_matches_and_matches_stay(
    fleet: Fleet, east: FakeKube
) -> None:
    """Once the cluster answers again, what waited is evaluated."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    fleet.apply(rules())
    there(fleet, "one", "a")
    fleet.pump()
    fleet.clock.advance(FRESH + timedelta(seconds=1))

    east.fail_with(UnreachableError("The API server does not answer."), "rights")
    there(fleet, "two", "a")
    fleet.pump()
    assert matched(fleet) == ["a/one"]
    (owed,) = [each for each in fleet.records.permits.of("fleet/east") if not each.told]
    assert owed.namespace == "a"

    for queue in fleet.queues.values():
        # No queue keeps messages for as long as a cluster may be away.
        for delivery in queue.receive(100, wait=timedelta(0)):
            queue.settle(delivery, None)
    east.fail_with(None)
    resync(fleet)
    resync(fleet)
    assert matched(fleet) == ["a/one", "a/two"]


def test_the_match_of_a_deleted_object_ends_without_a_review(fleet: Fleet, east: FakeKube) -> None:
    """A deleted object needs no right to match no more."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    fleet.apply(rules())
    written = fleet.write("east", service("one", namespace="a"))
    fleet.pump()
    fleet.clock.advance(timedelta(minutes=5))
    east.fail_with(DeniedError("no"), "rights")
    fleet.drop("east", written)
    fleet.pump()

    assert matched(fleet) == []


def test_a_cluster_without_impersonation_shows_nothing(fleet: Fleet, east: FakeKube) -> None:
    """The reason is recorded, and each resync requests the review again."""
    east.rbac.grant(ANN, "Service", "", *SEES)
    east.rbac.impersonates = False
    fleet.apply(rules())
    there(fleet, "one", "a")
    fleet.pump()
    assert matched(fleet) == []
    assert {each.error for each in fleet.records.permits.of("fleet/east")} == {
        "cannot rights: Bellhop's credentials may not act for 'team/ann'"
    }

    east.rbac.impersonates = True
    resync(fleet)
    resync(fleet)
    assert matched(fleet) == ["a/one"]


def test_two_sources_of_one_kind_see_what_their_accounts_may(fleet: Fleet, east: FakeKube) -> None:
    """And one without an account all of it."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    east.rbac.grant(BOB, "Service", "b", *SEES)
    his = rules("his").replace("name: ann", "name: bob")
    ours = join(source(name="ours"), trigger("ours", origin="ours"), holder("ours"))
    fleet.deploy(join(rules("hers"), his, ours))
    for namespace in ("a", "b"):
        there(fleet, "web", namespace)
    fleet.pump()

    assert matched(fleet, "hers") == ["a/web"]
    assert matched(fleet, "his") == ["b/web"]
    assert matched(fleet, "ours") == ["a/web", "b/web"]


def test_a_source_of_another_account_is_evaluated_again(fleet: Fleet, east: FakeKube) -> None:
    """The label decides: matches that only its former account may see end."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    east.rbac.grant(BOB, "Service", "b", *SEES)
    for namespace in ("a", "b"):
        east.put(service("web", namespace=namespace))
    fleet.deploy(source(), trigger(), holder("made"))
    assert matched(fleet) == ["a/web", "b/web"]

    fleet.deploy(anns(source()))
    assert matched(fleet) == ["a/web"]

    fleet.deploy(bobs(source()))
    assert matched(fleet) == ["b/web"]
    accounts = {each.account for each in fleet.records.permits.of("fleet/east")}
    assert accounts == {BOB}


@pytest.mark.parametrize(
    ("own", "whose"),
    [
        pytest.param(source(), "all rights", id="everybody's"),
        pytest.param(bobs(source()), "those of 'team/bob'", id="another's"),
    ],
)
def test_a_tenant_is_shown_nothing_that_others_read(
    fleet: Fleet, east: FakeKube, own: str, whose: str
) -> None:
    """A trigger with an account is given what a source of the same account matches, and no more."""
    east.rbac.grant(ANN, "ConfigMap")
    east.rbac.grant(BOB, "Service", "", *SEES)
    made = holder("made", config("for-{{ .Resource.metadata.name }}"), annotations=INSTANTIATE)
    fleet.apply(join(own, anns(trigger()), made))
    there(fleet, "web", "a")
    fleet.pump()

    assert names(east) == set()
    (profile,) = fleet.records.profiles.of("made")
    assert profile.error == (
        "cannot show EventTrigger 'made', which counts with the rights of 'team/ann', what"
        f" EventSource 'watched' reads with {whose}; give both the same labels"
    )


def test_a_tenant_sees_what_its_own_source_reads(fleet: Fleet, east: FakeKube) -> None:
    """With the same labels on both, and the rights for both ends."""
    east.rbac.grant(ANN, "ConfigMap", "default")
    east.rbac.grant(ANN, "Service", "a", *SEES)
    made = holder("made", config("for-{{ .Resource.metadata.name }}"), annotations=INSTANTIATE)
    fleet.apply(join(anns(source()), anns(trigger()), made))
    for namespace in ("a", "b"):
        there(fleet, f"in-{namespace}", namespace)
    fleet.pump()

    assert names(east) == {"for-in-a"}


def test_reviews_of_empty_namespaces_are_deleted(fleet: Fleet, east: FakeKube) -> None:
    """Nothing grows with the namespaces that once were."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    fleet.apply(rules())
    written = fleet.write("east", service("one", namespace="a"))
    fleet.pump()
    fleet.drop("east", written)
    fleet.pump()
    resync(fleet)

    assert [each.namespace for each in fleet.records.permits.of("fleet/east")] == [""]


def test_a_change_is_published_after_a_death(fleet: Fleet, east: FakeKube) -> None:
    """A review that was written and not published is published by the next reader."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    fleet.apply(rules())
    there(fleet, "one", "a")
    fleet.pump()
    east.rbac.take(ANN, "Service", "a", *SEES)
    kept = fleet.records.permits.get("fleet/east", ANN, SERVICES, "a")
    assert kept
    # So it is left by one who dies once the answer is written.
    left = replace(kept.value, allowed=False, told=False)
    fleet.records.permits.put(left, expect=kept.token)
    fleet.pump()
    assert matched(fleet) == ["a/one"]

    fleet.publisher.publish([ReviewAccess("fleet/east", ANN, "v1/Service", "a")])
    fleet.pump()
    assert matched(fleet) == []
    assert all(each.told for each in fleet.records.permits.of("fleet/east"))


def test_a_message_of_last_week_matches_nothing(fleet: Fleet, east: FakeKube) -> None:
    """Its review is too old: the cluster is asked again."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    fleet.apply(rules())
    there(fleet, "one", "a")
    fleet.pump()
    fleet.clock.advance(timedelta(days=7))
    east.rbac.take(ANN, "Service", "a", *SEES)
    fleet.publisher.publish([Evaluate("fleet/east", "/v1/Service/a/one", asked=True)])
    fleet.pump()

    assert matched(fleet) == []


def test_cloudevents_and_an_account_are_refused_together(fleet: Fleet) -> None:
    """No right in a cluster says who may see an event."""
    both = anns(source()).replace("spec:", "spec:\n  messagingMatchCriteria: [{}]")
    with pytest.raises(InvalidDocuments) as caught:
        fleet.apply(both)

    assert "no right in a cluster says which CloudEvents it may see" in str(caught.value)
