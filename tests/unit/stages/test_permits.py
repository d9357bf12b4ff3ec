"""What an EventSource with a service account matches, that account may get and list."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.api.kinds import InvalidDocuments
from bellhop.core.gvk import GVK
from bellhop.errors import DeniedError, UnreachableError
from bellhop.events.access_reviews import FRESH
from bellhop.settings import Settings
from bellhop.state.messages import Evaluate, Resync, ReviewAccess
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, source, trigger
from tests.unit.stages.test_service_accounts import ANN, anns, names

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


def sweep(fleet: Fleet) -> None:
    """Sweep as the schedule does, long after the last time."""
    fleet.clock.advance(timedelta(minutes=5))
    fleet.publisher.publish([Resync("fleet/east")])
    fleet.pump()


def there(fleet: Fleet, name: str, namespace: str = "default") -> None:
    """Have a Service ring."""
    fleet.write("east", service(name, namespace=namespace))


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    kube = fleet.register("east", env="production")
    for name in ("a", "b"):
        kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return kube


def test_matches_what_the_account_may_see_and_nothing_else(fleet: Fleet, east: FakeKube) -> None:
    """In the namespaces where it may get and list; one of the two is not enough."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    east.rbac.grant(ANN, "Service", "b", "get")
    fleet.apply(rules())
    fleet.pump()
    for namespace in ("a", "b", "default"):
        there(fleet, f"in-{namespace}", namespace)
    fleet.pump()

    assert matched(fleet) == ["a/in-a"]
    assert names(east) == {"for-in-a"}


def test_one_question_is_enough_where_it_may_list_all(fleet: Fleet, east: FakeKube) -> None:
    """No namespace is asked for, and for a minute nothing is."""
    east.rbac.grant(ANN, "Service", "", *SEES)
    fleet.apply(rules())
    fleet.pump()
    for name in ("one", "two"):
        there(fleet, name, "a")
        there(fleet, name, "b")
    fleet.pump()

    assert len(matched(fleet)) == 4
    assert [each.namespace for each in fleet.records.permits.of("fleet/east")] == [""]
    there(fleet, "three", "a")
    assert fleet.pump() == 3  # evaluate, instantiate, apply


def test_a_sweep_finds_what_it_may_see_alone(fleet: Fleet, east: FakeKube) -> None:
    """Objects that were there before, too."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    for namespace in ("a", "b"):
        east.put(service("old", namespace=namespace))
    fleet.apply(rules())
    fleet.pump()

    assert matched(fleet) == ["a/old"]


def test_rights_that_come_and_go_are_found_by_sweeps(fleet: Fleet, east: FakeKube) -> None:
    """What matched ends as any other match does; what may be seen now matches."""
    for namespace in ("a", "b"):
        east.put(service("old", namespace=namespace))
    east.rbac.grant(ANN, "Service", "a", *SEES)
    fleet.apply(rules())
    fleet.pump()

    east.rbac.take(ANN, "Service", "a", *SEES)
    east.rbac.grant(ANN, "Service", "b", *SEES)
    sweep(fleet)
    assert matched(fleet) == ["b/old"]

    east.rbac.grant(ANN, "Service", "", *SEES)
    sweep(fleet)
    assert matched(fleet) == ["a/old", "b/old"]

    east.rbac.take(ANN, "Service", "", *SEES)
    sweep(fleet)
    assert matched(fleet) == ["b/old"]


def test_much_that_may_be_seen_no_more_is_held(tmp_path: Path) -> None:
    """A right that is taken away by mistake takes a few add-ons, and given back it frees the rest.

    Sweeps never agree about the others: they are there still, and only not to be seen.
    """
    fleet = Fleet(tmp_path, Settings(hold_from=8, hold_share=0.25, hold_agreement=1))
    east = fleet.register("east", env="production")
    east.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    for number in range(10):
        east.put(service(f"old-{number}", namespace="a"))
    east.rbac.grant(ANN, "Service", "a", *SEES)
    fleet.apply(rules())
    fleet.pump()
    assert len(matched(fleet)) == 10

    east.rbac.take(ANN, "Service", "a", *SEES)
    for _ in range(6):
        sweep(fleet)
    assert len(matched(fleet)) == 8
    [hold] = fleet.records.holds.all()
    assert hold.held_at

    east.rbac.grant(ANN, "Service", "a", *SEES)
    for _ in range(2):
        sweep(fleet)
    assert len(matched(fleet)) == 10
    assert list(fleet.records.holds.all()) == []
    fleet.close()


def test_a_ring_finds_out_within_a_minute(fleet: Fleet, east: FakeKube) -> None:
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


def test_without_an_answer_nothing_new_matches_and_what_did_stays(
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
        # Nobody keeps messages for as long as a cluster may be away.
        for delivery in queue.receive(100, wait=timedelta(0)):
            queue.settle(delivery, None)
    east.fail_with(None)
    sweep(fleet)
    sweep(fleet)
    assert matched(fleet) == ["a/one", "a/two"]


def test_what_is_gone_ends_without_a_question(fleet: Fleet, east: FakeKube) -> None:
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


def test_a_cluster_where_nobody_may_act_for_others_shows_nothing(
    fleet: Fleet, east: FakeKube
) -> None:
    """It is noted why, and asked again by each sweep."""
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
    sweep(fleet)
    sweep(fleet)
    assert matched(fleet) == ["a/one"]


def test_two_sources_of_one_kind_see_what_their_accounts_may(fleet: Fleet, east: FakeKube) -> None:
    """And one without an account all of it."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    east.rbac.grant(BOB, "Service", "b", *SEES)
    his = rules("his").replace("name: ann", "name: bob")
    ours = join(source(name="ours"), trigger("ours", origin="ours"), holder("ours"))
    fleet.apply(join(rules("hers"), his, ours))
    fleet.pump()
    for namespace in ("a", "b"):
        there(fleet, "web", namespace)
    fleet.pump()

    assert matched(fleet, "hers") == ["a/web"]
    assert matched(fleet, "his") == ["b/web"]
    assert matched(fleet, "ours") == ["a/web", "b/web"]


def test_a_source_that_changes_hands_is_judged_anew(fleet: Fleet, east: FakeKube) -> None:
    """The label alone decides: what its former account saw ends."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    east.rbac.grant(BOB, "Service", "b", *SEES)
    for namespace in ("a", "b"):
        east.put(service("web", namespace=namespace))
    fleet.apply(source(), trigger(), holder("made"))
    fleet.pump()
    assert matched(fleet) == ["a/web", "b/web"]

    fleet.apply(anns(source()))
    fleet.pump()
    assert matched(fleet) == ["a/web"]

    fleet.apply(bobs(source()))
    fleet.pump()
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


def test_a_tenant_is_shown_what_its_own_source_reads(fleet: Fleet, east: FakeKube) -> None:
    """With the same labels on both, and the rights for both ends."""
    east.rbac.grant(ANN, "ConfigMap", "default")
    east.rbac.grant(ANN, "Service", "a", *SEES)
    made = holder("made", config("for-{{ .Resource.metadata.name }}"), annotations=INSTANTIATE)
    fleet.apply(join(anns(source()), anns(trigger()), made))
    for namespace in ("a", "b"):
        there(fleet, f"in-{namespace}", namespace)
    fleet.pump()

    assert names(east) == {"for-in-a"}


def test_permits_of_namespaces_that_are_empty_are_forgotten(fleet: Fleet, east: FakeKube) -> None:
    """Nothing grows with the namespaces that once were."""
    east.rbac.grant(ANN, "Service", "a", *SEES)
    fleet.apply(rules())
    written = fleet.write("east", service("one", namespace="a"))
    fleet.pump()
    fleet.drop("east", written)
    fleet.pump()
    sweep(fleet)

    assert [each.namespace for each in fleet.records.permits.of("fleet/east")] == [""]


def test_who_comes_after_a_death_tells_what_changed(fleet: Fleet, east: FakeKube) -> None:
    """A permit that was written and not told is told by whoever finds it."""
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
    """What was asked for then counts no more: the cluster is asked again."""
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
