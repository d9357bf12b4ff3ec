"""A profile that others replace stays until they are deployed, and they take its objects over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.errors import InvalidError
from bellhop.state.messages import Apply, Resolve
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile
from tests.fakes.releases import chart, charts


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", stage="one")


def written(name: str, stage: str, *own: str, more: str = "") -> str:
    """Return a profile of a stage, which deploys the object `shared` and others of its own."""
    objects = [config(each, f"by: {name}") for each in ("shared", *own)]
    selected = f"clusterSelector: {{matchLabels: {{stage: {stage}}}}}"
    return join(profile(selected, name=name, more=more), holder(name, *objects))


def new(stage: str = "two", *, name: str = "new", more: str = "") -> str:
    return written(name, stage, f"{name}-own", more=f"transitionFrom: [old]\n  {more}")


def data(kube: FakeKube) -> dict[str, str]:
    """Return who made each object."""
    return {each["metadata"]["name"]: each["data"]["by"] for each in kube.objects(CONFIG)}


def uid(kube: FakeKube) -> str:
    return str(
        next(x for x in kube.objects(CONFIG) if x["metadata"]["name"] == "shared")["metadata"][
            "uid"
        ]
    )


def outcome(fleet: Fleet, name: str) -> tuple[str, str]:
    found = fleet.records.outcomes.get(EAST, name)
    return (found.value.reason, found.value.message) if found else ("", "")


def move(fleet: Fleet, stage: str = "two") -> None:
    fleet.declare.label(EAST, {"stage": stage})


@pytest.mark.parametrize("first", ["old", "new"])
@pytest.mark.parametrize("tier", [1, 100, 200])
def test_a_label_moves_a_cluster_and_common_objects_stay(
    fleet: Fleet, east: FakeKube, first: str, tier: int
) -> None:
    """The order of the profiles and their tiers do not matter; the rest is removed."""
    fleet.deploy(written("old", "one", "old-own"), new(more=f"tier: {tier}"))
    before = uid(east)

    move(fleet)
    fleet.stages["deploy"].handle(Apply("", "", first, EAST))
    fleet.pump()

    assert data(east) == {"shared": "new", "new-own": "new"}
    assert uid(east) == before
    assert fleet.records.inventories.get(EAST, "old") is None
    assert not list(fleet.store.query(f"waiting/{EAST}"))


def test_it_stays_while_its_successor_fails(fleet: Fleet, east: FakeKube) -> None:
    """The status names the successor; the removal follows without a further event."""
    fleet.deploy(written("old", "one", "old-own"), new())
    end = east.refuse("new-own", InvalidError("no"))
    move(fleet)
    fleet.pump()
    assert data(east)["old-own"] == "old"
    reason, message = outcome(fleet, "old")
    assert reason == "Waiting"
    assert "by transitionFrom ClusterProfile 'new' replaces it, and is not deployed" in message

    end()
    fleet.wait(timedelta(minutes=1))
    assert data(east) == {"shared": "new", "new-own": "new"}


def test_it_stays_until_all_successors_are_deployed(fleet: Fleet, east: FakeKube) -> None:
    """One profile may be split into several."""
    fleet.apply(written("old", "one", "old-own"), new())
    other = join(
        profile("clusterSelector: {matchLabels: {stage: two}}", name="half", more=_FROM_OLD),
        holder("half", config("half", "by: half")),
    )
    fleet.deploy(other)
    end = east.refuse("half", InvalidError("no"))
    move(fleet)
    fleet.pump()
    assert "'half' replaces it" in outcome(fleet, "old")[1]
    assert data(east) == {"shared": "new", "new-own": "new", "old-own": "old"}

    end()
    fleet.wait(timedelta(minutes=1))
    assert data(east) == {"shared": "new", "new-own": "new", "half": "half"}


_FROM_OLD = "transitionFrom: [old]"


@pytest.mark.parametrize("what", ["leaves", "goes", "asks no more"])
def test_a_successor_that_leaves_holds_nothing_back(
    fleet: Fleet, east: FakeKube, what: str
) -> None:
    """The removal follows at once, or a few minutes after the field is taken out."""
    fleet.deploy(written("old", "one", "old-own"), new())
    east.refuse("new-own", InvalidError("no"))
    move(fleet)
    fleet.pump()
    assert data(east)["old-own"] == "old"

    if what == "leaves":
        fleet.apply(new("three"))
    elif what == "goes":
        fleet.declare.delete([("ClusterProfile", "", "new")])
    else:
        fleet.apply(written("new", "two", "new-own"))
    fleet.release()
    fleet.pump()
    fleet.wait(timedelta(minutes=6) if what == "asks no more" else timedelta(seconds=5))
    assert "old-own" not in data(east)
    assert fleet.records.inventories.get(EAST, "old") is None


def test_a_deleted_profile_waits_for_its_successor(fleet: Fleet, east: FakeKube) -> None:
    fleet.deploy(written("old", "one", "old-own"))
    end = east.refuse("new-own", InvalidError("no"))
    fleet.apply(new("one"))
    fleet.declare.delete([("ClusterProfile", "", "old")])
    fleet.release()
    fleet.pump()
    assert data(east)["old-own"] == "old"

    end()
    fleet.wait(timedelta(minutes=1))
    assert data(east) == {"shared": "new", "new-own": "new"}


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("", id="names no profile"),
        pytest.param("transitionFrom: [old]\n  syncMode: DryRun", id="only tries"),
        pytest.param("transitionFrom: [another]", id="replaces another one"),
    ],
)
def test_others_hold_nothing_back(fleet: Fleet, east: FakeKube, more: str) -> None:
    fleet.deploy(written("old", "one", "old-own"), written("new", "two", "new-own", more=more))
    east.refuse("new-own", InvalidError("no"))
    move(fleet)
    fleet.pump()
    assert "old-own" not in data(east)


def test_a_profile_that_leaves_its_policies_waits_for_none(fleet: Fleet, east: FakeKube) -> None:
    """Its objects stay in any case."""
    fleet.deploy(
        written("old", "one", "old-own", more="stopMatchingBehavior: LeavePolicies"), new()
    )
    end = east.refuse("new-own", InvalidError("no"))
    move(fleet)
    fleet.pump()
    assert outcome(fleet, "old") == ("", "")
    end()
    assert data(east)["old-own"] == "old"


def test_where_both_are_the_successor_has_the_object(fleet: Fleet, east: FakeKube) -> None:
    """The former owner does not take it back by its tier, and has it again once it is free."""
    fleet.deploy(written("old", "one", more="tier: 1"))
    fleet.deploy(new("one"))
    assert data(east)["shared"] == "new"
    reason, message = outcome(fleet, "old")
    assert reason == "Conflict"
    assert "profile 'new' has it, and replaces 'old' by transitionFrom" in message
    assert "replaces 'old' by transitionFrom; have only one of the two select" in message

    fleet.deploy(written("new", "one", "new-own"))
    fleet.publisher.publish([Apply("", "", "old", EAST)])
    fleet.pump()
    assert data(east)["shared"] == "old"
    fleet.deploy(new("one"))
    fleet.apply(new("two"))
    fleet.release()
    fleet.pump()
    assert data(east) == {"shared": "old"}


def test_of_two_that_replace_each_other_the_owner_keeps_the_object(
    fleet: Fleet, east: FakeKube
) -> None:
    """Otherwise its owner would change without end."""
    fleet.deploy(written("old", "one", more="transitionFrom: [new]\n  tier: 200"))
    fleet.deploy(new("one"))
    assert data(east)["shared"] == "old"

    fleet.apply(new())
    move(fleet)
    fleet.pump()
    assert data(east) == {"shared": "new", "new-own": "new"}


def test_a_release_is_upgraded_by_the_successor(fleet: Fleet, east: FakeKube) -> None:
    """Helm never uninstalls what both have."""
    fleet.repositories.put("web", "1.0.0", "1.1.0")
    selected = "clusterSelector: {matchLabels: {env: production}}"
    old = charts("old").replace(selected, selected.replace("env: production", "stage: one"))
    of = chart(version="1.1.0")
    later = charts("new", of=of, more="transitionFrom: [old]")
    fleet.deploy(old, later.replace(selected, selected.replace("env: production", "stage: two")))
    move(fleet)
    fleet.pump()

    assert fleet.charts.removals == []
    (release,) = east.objects(CONFIG)
    assert release["data"]["chart"] == "web-1.1.0"
    assert fleet.records.inventories.get(EAST, "old") is None


def test_a_profile_of_a_namespace_replaces_those_of_its_own(fleet: Fleet, east: FakeKube) -> None:
    fleet.deploy(
        profile("clusterSelector: {matchLabels: {stage: one}}", name="old", namespace="fleet"),
        holder("old", config("shared", "by: old"), config("old-own", "by: old"), namespace="fleet"),
        profile(
            "clusterSelector: {matchLabels: {stage: two}}",
            name="new",
            namespace="fleet",
            more="transitionFrom: [old]",
        ),
        holder("new", config("shared", "by: new"), namespace="fleet"),
    )
    before = uid(east)
    move(fleet)
    fleet.pump()
    assert data(east) == {"shared": "new"}
    assert uid(east) == before


def test_one_change_moves_objects_from_the_former_profile_to_its_successor(
    fleet: Fleet, east: FakeKube
) -> None:
    """Though the former profile is processed first, and its successor is deployed as it was."""
    former, later = "a-old", "b-new"
    replaces = f"transitionFrom: [{former}]"
    fleet.apply(written(former, "one"))
    fleet.deploy(written(later, "one", more=replaces).replace("shared", "other"))
    before = uid(east)

    fleet.apply(written(later, "one", more=replaces), written(former, "nowhere"))
    fleet.stages["deploy"].handle(Resolve(former))
    fleet.stages["deploy"].handle(Apply("", "", former, EAST))
    fleet.pump()

    assert data(east) == {"shared": later}
    assert uid(east) == before


@pytest.mark.parametrize("first", ["old", "new"])
def test_a_label_that_is_corrected_gives_a_transition_up(
    fleet: Fleet, east: FakeKube, first: str
) -> None:
    """Common objects go back with their uid, whichever profile is processed first."""
    fleet.deploy(written("old", "one", "old-own"), new())
    before = uid(east)
    end = east.refuse("new-own", InvalidError("no"))
    move(fleet)
    fleet.pump()
    end()

    move(fleet, "one")
    fleet.stages["deploy"].handle(Resolve(first))
    fleet.stages["deploy"].handle(Apply("", "", first, EAST))
    fleet.pump()
    # What failed waits before it is tried again.
    fleet.wait(fleet.settings.retry_longest)

    assert data(east) == {"shared": "old", "old-own": "old"}
    assert uid(east) == before


def test_a_profile_comes_after_none_that_it_replaces(fleet: Fleet) -> None:
    """Each would wait for the other; so would one that comes after it by way of others."""
    both = "transitionFrom: [old]\n  dependsOn: [between]"
    with pytest.raises(InvalidError, match="it comes after 'old', and by transitionFrom"):
        fleet.apply(
            written("new", "two", more=both),
            written("between", "two", more="dependsOn: [old]").replace("shared", "other"),
        )


@pytest.mark.parametrize("name", ["fleet/old", "RoleRequest:old"])
def test_a_profile_of_another_kind_is_not_replaced(fleet: Fleet, name: str) -> None:
    with pytest.raises(InvalidError, match="a profile of the same kind is named"):
        fleet.apply(written("new", "two", more=f"transitionFrom: ['{name}']"))
