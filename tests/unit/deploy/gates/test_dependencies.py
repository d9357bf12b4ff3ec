"""Dependencies of profiles: when they are deployed and withdrawn, and how they are notified."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.api.kinds import DeclarationKey
from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import GVK, Identity
from bellhop.errors import InvalidError
from bellhop.state.messages import Apply, Resolve
from tests.fakes.fleet import EAST, Fleet, service
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)


def written(name: str, after: str = "", *, v: str = "1", more: str = "", **given: str) -> str:
    """Return a profile that deploys a ConfigMap of its name, and its manifest."""
    order = f"dependsOn: [{after}]\n  {more}" if after else more
    return join(
        profile(name=name, more=order, **given),
        holder(name, config(name, f"v: '{v}'"), namespace=given.get("namespace", "default")),
    )


def phase(fleet: Fleet, name: str) -> tuple[str, str]:
    found = fleet.status_of(name)
    return found.phase, found.reason


def record_acts(kube: FakeKube) -> list[str]:
    """Note from now on what is applied and deleted in a cluster, in order."""
    noted: list[str] = []
    apply, remove = kube.apply, kube.remove

    def applying(manifest: dict[str, Any], **how: Any) -> Any:
        noted.append(f"+{manifest['metadata']['name']}")
        return apply(manifest, **how)

    def deleting(gvk: GVK, namespace: str, name: str, **how: Any) -> Any:
        noted.append(f"-{name}")
        return remove(gvk, namespace, name, **how)

    kube.apply, kube.remove = applying, deleting  # type: ignore[method-assign]
    return noted


@pytest.mark.parametrize("together", [True, False])
def test_a_profile_comes_after_those_it_depends_on(
    fleet: Fleet, east: FakeKube, *, together: bool
) -> None:
    """Applied together with them, or long before."""
    noted = record_acts(east)
    apps = written("apps", "base, crds")
    if not together:
        fleet.deploy(apps)
        assert noted == []
        assert phase(fleet, "apps") == ("Provisioning", "Waiting")
        assert "'base', which is not there" in fleet.status_of("apps").message
    fleet.deploy(written("base", "crds"), written("crds"), *([apps] if together else []))

    assert noted == ["+crds", "+base", "+apps"]
    assert phase(fleet, "apps") == ("Provisioned", "")
    assert not list(fleet.store.query("waiting/fleet/east"))


def test_a_new_revision_comes_after_theirs(fleet: Fleet, east: FakeKube) -> None:
    """If all change at once, each waits for the present revision of its dependency."""
    fleet.deploy(written("apps", "base"), written("base"))
    noted = record_acts(east)
    fleet.deploy(written("apps", "base", v="2"), written("base", v="2"))

    assert noted == ["+base", "+apps"]


def test_a_new_revision_waits_for_theirs_whoever_is_asked_first(
    fleet: Fleet, east: FakeKube
) -> None:
    """The dependency's former revision does not count as the declared one."""
    fleet.deploy(written("apps", "base"), written("base"))
    noted, deploy = record_acts(east), fleet.stages["deploy"]
    fleet.apply(written("apps", "base", v="2"), written("base", v="2"))
    deploy.handle(Resolve("apps"))
    deploy.handle(Apply("", "", "apps", EAST))
    assert phase(fleet, "apps") == ("Provisioning", "Waiting")
    fleet.pump()

    assert noted == ["+base", "+apps"]


def test_it_waits_while_one_before_it_fails(fleet: Fleet, east: FakeKube) -> None:
    """That is no failure of its own, and it goes on as soon as the other is done."""
    end = east.refuse("base", InvalidError("no"))
    fleet.deploy(written("apps", "base", more="maxConsecutiveFailures: 1"), written("base"))
    for _ in range(3):
        fleet.publisher.publish([Apply("", "", "apps", EAST)])
        fleet.pump()
    waits = fleet.status_of("apps")
    assert (waits.phase, waits.reason, waits.failures) == ("Provisioning", "Waiting", 0)
    assert waits.retry_at is None
    assert (
        "waiting for ClusterProfile 'base' (dependsOn) to finish its current revision"
        in waits.message
    )
    assert east.names() == []

    end()
    fleet.wait(timedelta(minutes=1))
    assert east.names() == ["apps", "base"]


def test_it_is_withdrawn_before_those_it_depends_on(fleet: Fleet, east: FakeKube) -> None:
    """In each order of their messages; then no record of the order is left."""
    fleet.deploy(written("apps", "base"), written("base"))
    noted = record_acts(east)
    fleet.declare.delete([("ClusterProfile", "", each) for each in ("apps", "base")])
    fleet.queues["apply"].publish([Apply("", "", "base", EAST).message()])
    fleet.pump()

    assert noted == ["-apps", "-base"]
    assert list(fleet.records.outcomes.of(EAST)) == []
    assert list(fleet.records.profiles.of("")) == []
    assert followers(fleet) == []


def followers(fleet: Fleet) -> list[str]:
    """Return who is noted as coming after others."""
    partitions = (f"{sort}/{EAST}" for sort in ("waiting", "needing"))
    return [item.sort for each in partitions for item in fleet.store.query(each)]


@pytest.mark.parametrize("how", ["withdrawn", "independent", "left"])
def test_a_profile_that_others_depend_on_stays(fleet: Fleet, east: FakeKube, how: str) -> None:
    """It is removed once the others are withdrawn, or no longer depend on it."""
    fleet.deploy(written("apps", "base"), written("base"))
    fleet.delete("ClusterProfile", "base")

    assert east.names() == ["apps", "base"]
    waits = fleet.status_of("base")
    assert (waits.phase, waits.reason) == ("Provisioning", "Waiting")
    assert "by dependsOn 'apps' depend on it there" in waits.message
    match how:
        case "withdrawn":
            fleet.declare.delete([("ClusterProfile", "", "apps")])
        case "independent":
            fleet.apply(written("apps"))
        case _:
            fleet.apply(written("apps", "base", selected="clusterSelector: {}"))
    fleet.pump()

    assert east.names() == (["apps"] if how == "independent" else [])
    assert fleet.records.outcomes.get(EAST, "base") is None


def test_who_depends_on_it_no_more_keeps_it_no_longer(fleet: Fleet, east: FakeKube) -> None:
    """It is removed as soon as that is declared, though the other cannot be deployed again."""
    fleet.deploy(written("apps", "base"), written("base"))
    east.refuse("apps", InvalidError("no"))
    fleet.apply(written("apps", v="2"))
    fleet.declare.delete([("ClusterProfile", "", "base")])
    for name in ("base", "apps"):
        fleet.stages["deploy"].handle(Resolve(name))
    fleet.pump()

    assert phase(fleet, "apps")[0] == "Failed"
    assert east.names() == ["apps"]


def test_it_waits_while_what_comes_first_is_in_doubt(fleet: Fleet, east: FakeKube) -> None:
    """A cluster that was created again has nothing of it, whatever its outcome was."""
    fleet.deploy(written("apps", "base"), written("base"))
    noted = record_acts(east)
    for name in ("apps", "base"):
        fleet.records.inventories.doubt(EAST, name, None)
    fleet.publisher.publish([Apply("", "", "apps", EAST)])
    fleet.pump()
    assert phase(fleet, "apps")[1] == "Waiting"
    fleet.publisher.publish([Apply("", "", "base", EAST)])
    fleet.pump()

    assert list(dict.fromkeys(noted)) == ["+base", "+apps"]
    assert noted == sorted(noted, reverse=True)


def test_a_profile_is_removed_before_a_dependent_is_deployed(fleet: Fleet, east: FakeKube) -> None:
    """A profile that has nothing in a cluster needs nothing there, and waits for its dependency."""
    fleet.deploy(written("base"))
    fleet.deploy(written("apps", "base, crds"))
    assert phase(fleet, "apps")[1] == "Waiting"
    fleet.delete("ClusterProfile", "base")

    assert east.names() == []
    assert fleet.records.outcomes.get(EAST, "base") is None


def test_what_leaves_its_objects_waits_for_nobody(fleet: Fleet, east: FakeKube) -> None:
    """No object is removed that others depend on."""
    fleet.apply(written("apps", "base"))
    fleet.deploy(written("base", more="stopMatchingBehavior: LeavePolicies"))
    fleet.delete("ClusterProfile", "base")

    assert east.names() == ["apps", "base"]
    assert fleet.records.outcomes.get(EAST, "base") is None


def test_those_before_it_go_where_it_goes(fleet: Fleet, east: FakeKube) -> None:
    """As in Sveltos, though they do not select the cluster; and no longer than it does."""
    west = fleet.register("west", env="test")
    nowhere = "clusterSelector: {matchLabels: {env: nowhere}}"
    fleet.deploy(
        written("apps", "base"),
        written("base", "crds", selected=nowhere),
        written("crds", selected=nowhere),
    )
    assert (east.names(), west.names()) == (["apps", "base", "crds"], [])

    fleet.declare.label("fleet/west", {"env": "production"})
    fleet.declare.label(EAST, {"env": "test"})
    # They are all that the cluster has.
    fleet.release()
    fleet.pump()
    assert (east.names(), west.names()) == ([], ["apps", "base", "crds"])

    fleet.delete("ClusterProfile", "apps")
    assert west.names() == []


def test_profiles_come_after_profiles_of_their_namespace(fleet: Fleet, east: FakeKube) -> None:
    """A ClusterProfile of that name is another one."""
    noted = record_acts(east)
    fleet.deploy(written("base"), written("apps", "base", namespace="fleet"))
    assert noted == ["+base"]
    assert "Profile 'fleet/base', which is not there" in fleet.status_of("fleet/apps").message

    fleet.deploy(
        profile(name="base", namespace="fleet"), holder("base", config("own"), namespace="fleet")
    )
    assert noted == ["+base", "+own", "+apps"]


def test_what_triggers_make_comes_after_profiles(fleet: Fleet, east: FakeKube) -> None:
    """It waits by the event, says for whom, and is withdrawn before it."""
    made = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
    fleet.deploy(join(source(), trigger(more="dependsOn: [base]"), made))
    web = fleet.write("east", service("web"))
    fleet.pump()
    (waits,) = fleet.records.outcomes.of(EAST)
    assert (waits.reason, east.names()) == ("Waiting", [])
    assert "'base', which is not there: apply it" in waits.message

    fleet.deploy(written("base", selected="clusterSelector: {}"))
    (waits,) = fleet.records.outcomes.of(EAST)
    assert "'base', which does not go to this cluster" in waits.message

    noted = record_acts(east)
    fleet.deploy(written("base"))
    assert noted == ["+base", "+for-web"]

    fleet.delete("ClusterProfile", "base")
    assert noted == ["+base", "+for-web"]
    fleet.drop("east", web)
    fleet.pump()
    assert noted == ["+base", "+for-web", "-for-web", "-base"]
    assert followers(fleet) == []


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        pytest.param([written("a", "a")], "'a' after 'a'", id="of one"),
        pytest.param(
            [written("a", "b"), written("b", "c"), written("c", "x, a")],
            "'a' after 'b' after 'c' after 'a'",
            id="of three",
        ),
    ],
)
def test_a_cycle_is_refused(fleet: Fleet, texts: list[str], said: str) -> None:
    """Nothing is applied, and the way round is named, whether it comes at once or later."""
    with pytest.raises(InvalidError, match=f"cannot deploy 'a' in order: by dependsOn {said};"):
        fleet.apply(*texts)
    assert fleet.catalogs.known().profiles == {}

    *first, last = texts
    fleet.apply(*first)
    with pytest.raises(InvalidError, match="cannot deploy"):
        fleet.apply(last)
    assert len(fleet.catalogs.known().profiles) == len(first)


def test_a_cycle_of_two_concurrent_applies_is_reported(fleet: Fleet, east: FakeKube) -> None:
    """Both profiles report it and keep their objects; a correction of one of them ends it."""
    fleet.deploy(written("a"), written("b"))
    known = fleet.catalogs.known
    fleet.catalogs.known = lambda *a: _without(known(*a), "b")  # type: ignore[method-assign]
    fleet.apply(written("b", "a"))
    fleet.apply(written("a", "b"))
    fleet.catalogs.known = known  # type: ignore[method-assign]
    fleet.pump()

    for name in ("a", "b"):
        found = fleet.status_of(name)
        assert (found.phase, found.reason) == ("FailedNonRetriable", "Invalid")
        assert "by dependsOn '" in found.message
    assert east.names() == ["a", "b"]

    fleet.deploy(written("b"))
    assert phase(fleet, "a") == phase(fleet, "b") == ("Provisioned", "")


@pytest.mark.parametrize(
    ("more", "done"),
    [
        ("syncMode: OneTime", True),
        ("syncMode: DryRun", False),
        ("syncMode: ContinuousWithDriftDetection", True),
    ],
)
def test_how_the_one_before_it_is_kept(
    fleet: Fleet, east: FakeKube, more: str, *, done: bool
) -> None:
    """OneTime is done once deployed; a dry run never is."""
    fleet.deploy(written("base", more=more))
    fleet.deploy(written("apps", "base"))
    assert ("apps" in east.names()) is done
    if not done:
        fleet.deploy(written("base"))

    assert east.names() == ["apps", "base"]


def test_what_is_tried_dry_waits_for_nobody(fleet: Fleet, east: FakeKube) -> None:
    """It touches nothing, and says what it would do."""
    fleet.deploy(written("apps", "base", more="syncMode: DryRun"))

    assert (phase(fleet, "apps"), east.names()) == (("DryRun", ""), [])


def test_deployed_objects_are_kept_while_the_dependency_changes(
    fleet: Fleet, east: FakeKube
) -> None:
    """A resync restores a deleted object, whatever the dependency's state."""
    fleet.deploy(written("apps", "base"), written("base"))
    east.refuse("base", InvalidError("no"))
    fleet.deploy(written("base", v="2"))
    assert phase(fleet, "base")[0] == "Failed"
    east.drop(CONFIG, "default", "apps")
    apps = Identity("", "ConfigMap", "default", "apps")
    fleet.publisher.publish([Apply("", "", "apps", EAST, contested=str(apps))])
    fleet.wait(timedelta(seconds=1))

    assert "apps" in east.names()


def test_a_contested_object_is_remembered_while_a_profile_waits(
    fleet: Fleet, east: FakeKube
) -> None:
    """An object that was taken meanwhile is applied again with the rest."""
    fleet.deploy(written("apps", "base"), written("base"))
    end = east.refuse("base", InvalidError("no"))
    fleet.deploy(
        written("base", v="2"),
        profile(name="apps", more="dependsOn: [base]\n  continueOnConflict: true"),
    )
    assert phase(fleet, "apps")[1] == "Waiting"
    east.drop(CONFIG, "default", "apps")
    apps = Identity("", "ConfigMap", "default", "apps")
    fleet.publisher.publish([Apply("", "", "apps", EAST, contested=str(apps))])
    fleet.pump()
    assert east.names() == ["base"]

    end()
    fleet.wait(timedelta(minutes=1))
    assert east.names() == ["apps", "base"]


def test_who_waits_is_found_without_looking_at_others(fleet: Fleet) -> None:
    """Notifying one that waits costs no more among many profiles that do not."""
    fleet.register("east", env="production")
    fleet.deploy(written("apps", "base"), written("base"))

    def takes(v: str) -> int:
        fleet.apply(written("base", v=v), written("apps", "base", v=v))
        before = fleet.store.counts.total()
        fleet.pump()
        return fleet.store.counts.total() - before

    # Until as many renderings are kept as ever are, each change costs one item more.
    for v in range(2, 2 + fleet.settings.revisions):
        takes(str(v))
    few = [takes("7"), takes("8")]
    fleet.deploy(*(written(f"other-{number}") for number in range(20)))
    assert takes("9") in few


def _without(catalog: Catalog, place: str) -> Catalog:
    """Return what somebody knows who has not heard of a profile yet."""
    key = DeclarationKey("ClusterProfile", "", place)
    return catalog.with_rules(catalog.revision, catalog.clusters.values(), {key: None})


@pytest.mark.parametrize("more", ["", "syncMode: OneTime"])
@pytest.mark.parametrize("waits", [True, False])
def test_who_depends_on_others_no_more_leaves_no_trace_of_it(
    fleet: Fleet, more: str, *, waits: bool
) -> None:
    """Deployed or still waiting; other dependencies stay recorded."""
    fleet.register("east", env="production")
    fleet.apply(written("other"), written("apps", "base, other", more=more))
    fleet.deploy(*([] if waits else [written("base")]))
    assert noted(fleet, "base") == ({"waiting", "needing"} if waits else {"needing"})

    fleet.deploy(written("apps", "other", v="2", more=more))

    assert phase(fleet, "apps") == ("Provisioned", "")
    assert noted(fleet, "base") == set()
    assert noted(fleet, "other") == {"needing"}


def noted(fleet: Fleet, first: str) -> set[str]:
    """Return in which ways somebody is noted as coming after a profile."""
    sorts = {"waiting": fleet.records.waiting, "needing": fleet.records.needing}
    return {sort for sort, records in sorts.items() if list(records.of(EAST, first))}
