"""Objects that no profile made: adopted where that is asked for, and left in the end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import ObjectKey
from bellhop.operations.previews import list_dry_runs
from bellhop.settings import Settings
from bellhop.state.deployment import Change
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.hooks import before_next
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile

KEY = ObjectKey(CONFIG, "default", "web").identity
HELM = {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}
REFUSED = (
    "cannot apply ConfigMap 'default/web': it already exists, created by Helm release 'shop/web'"
    " (field manager 'helm') and not by a profile; to take it over, annotate it in ConfigMap"
    ' default/own with bellhop.dev/adopt: "true", or set force on that ref'
)


def theirs(kube: FakeKube, **data: str) -> dict[str, Any]:
    """Make the object as Helm does."""
    metadata = {
        "name": "web",
        "namespace": "default",
        "annotations": dict(HELM),
        "managedFields": [{"manager": "helm", "operation": "Update"}],
    }
    found = data or {"by": "helm", "kept": "yes"}
    return kube.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": found})


def ours(asked: str = "", value: str = "own") -> str:
    """Return the object as a profile wants it."""
    text = config("web", f"by: {value}")
    annotations = f", annotations: {{bellhop.dev/adopt: '{asked}'}}}}" if asked else "}"
    return text.replace("}", annotations, 1)


def there(kube: FakeKube) -> dict[str, Any]:
    """Return the object without what its server writes."""
    found = kube.get(CONFIG, "default", "web")
    assert found
    metadata = found["metadata"]
    marks = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return {"data": found["data"], "marks": marks, "uid": metadata["uid"]}


def outcome(fleet: Fleet, name: str = "own") -> tuple[str, str]:
    found = fleet.status_of(name)
    return found.reason, found.message


def changes(fleet: Fleet) -> dict[str, Change]:
    return {each.change.key.name: each.change for each in list_dry_runs(fleet.installation(), EAST)}


def adopt(fleet: Fleet, kube: FakeKube, asked: str = "true") -> dict[str, Any]:
    """Have a profile adopt the object of Helm; return that as it was before."""
    theirs(kube)
    before = there(kube)
    fleet.deploy(join(profile(), holder("own", ours(asked))))
    assert outcome(fleet) == ("", "")
    return before


def die(fleet: Fleet, kube: FakeKube, when: str, declared: str) -> None:
    """Kill the worker that applies the object; its message is worked on again."""
    apply = kube.apply

    def dies(*args: Any, **how: Any) -> Any:
        if when == "after it is written":
            apply(*args, **how)
        kube.apply = apply  # type: ignore[method-assign]
        raise KeyboardInterrupt

    kube.apply = dies  # type: ignore[method-assign]
    fleet.apply(declared)
    with pytest.raises(KeyboardInterrupt):
        fleet.pump()
    fleet.queues["apply"].release()
    fleet.clock.advance(fleet.settings.visibility * 2)


def test_what_others_made_stays_theirs(fleet: Fleet, east: FakeKube) -> None:
    """Nothing of it is written, nobody claims it, and it is said who made it."""
    theirs(east)
    before = there(east)

    fleet.deploy(join(profile(), holder("own", ours(), config("other"))))

    assert outcome(fleet) == ("Conflict", REFUSED)
    assert there(east) == before
    assert fleet.records.owners.get(EAST, KEY) is None
    (inventory,) = fleet.records.inventories.of(EAST)
    assert {key.name for key in inventory.held} == {"other"}
    fleet.delete("ClusterProfile", "own")
    assert there(east) == before


def test_what_sveltos_deploys_is_applied_once_it_is_released(fleet: Fleet, east: FakeKube) -> None:
    """Until then nothing of it is written; the conflict is tried again by itself."""
    owner = {f"projectsveltos.io/owner-{part}": "own" for part in ("kind", "name")}
    made = {
        "name": "web",
        "namespace": "default",
        "labels": {"projectsveltos.io/reason": "Resources"},
        "managedFields": [{"manager": "application/apply-patch", "operation": "Apply"}],
    }
    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"by": "sveltos"}}
    east.put({**body, "metadata": {**made, "annotations": owner}})
    before = there(east)
    fleet.deploy(join(profile(), holder("own", ours())))
    assert outcome(fleet)[0] == "Conflict"
    assert there(east) == before

    east.put({**body, "metadata": {**made, "uid": before["uid"]}})
    fleet.wait(fleet.settings.retry_ceiling * 2)

    assert outcome(fleet) == ("", "")
    assert there(east)["data"] == {"by": "own"}


def test_an_object_is_applied_once_its_maker_deletes_it(fleet: Fleet, east: FakeKube) -> None:
    """A conflict is tried again by itself."""
    theirs(east)
    fleet.deploy(join(profile(), holder("own", ours())))
    east.drop(CONFIG, "default", "web")

    fleet.wait(fleet.settings.retry_ceiling * 2)

    assert outcome(fleet) == ("", "")
    assert there(east)["data"] == {"by": "own"}


def test_an_adopted_object_keeps_what_nobody_names_and_stays_in_the_end(
    fleet: Fleet, east: FakeKube
) -> None:
    """In the life that it had; what is withdrawn bears no mark of ours, and is nobody's."""
    before = adopt(fleet, east)
    adopted = there(east)
    assert (adopted["uid"], adopted["data"]) == (before["uid"], {"by": "own", "kept": "yes"})
    assert adopted["marks"]["bellhop.dev/adopted"] == (
        "Helm release 'shop/web' (field manager 'helm')"
    )
    assert "bellhop.dev/adopt" not in adopted["marks"]

    fleet.delete("ClusterProfile", "own")

    left = there(east)
    assert (left["uid"], left["data"], left["marks"]) == (before["uid"], adopted["data"], HELM)
    managers = (east.get(CONFIG, "default", "web") or {})["metadata"]["managedFields"]
    assert [each["manager"] for each in managers] == ["helm"]
    assert list(fleet.records.inventories.of(EAST)) == []
    assert fleet.records.owners.get(EAST, KEY) is None


def test_an_object_adopted_for_good_goes_with_its_profile(fleet: Fleet, east: FakeKube) -> None:
    """It is asked for by another word, at once or later."""
    adopt(fleet, east)
    fleet.deploy(holder("own", ours("own")))
    assert "bellhop.dev/adopted" not in there(east)["marks"]

    fleet.delete("ClusterProfile", "own")

    assert east.get(CONFIG, "default", "web") is None


def test_an_adopted_object_is_adopted_though_nobody_asks_any_more(
    fleet: Fleet, east: FakeKube
) -> None:
    """Changed by a policy without the annotation, and left when that names it no more."""
    adopt(fleet, east)
    fleet.deploy(holder("own", ours(value="new")))
    assert there(east)["data"]["by"] == "new"

    fleet.deploy(holder("own", config("other")))

    assert there(east)["marks"] == HELM


@pytest.mark.parametrize("word", ["force: true", "extraAnnotations"])
def test_a_whole_ref_or_profile_is_asked_for_at_once(
    fleet: Fleet, east: FakeKube, word: str
) -> None:
    """By force on the ref, or by the annotation on all objects of a profile."""
    theirs(east)
    text = profile()
    if word == "force: true":
        text = text.replace("namespace: default}", "namespace: default, force: true}", 1)
    else:
        text = profile(more="extraAnnotations: {bellhop.dev/adopt: 'true'}")

    fleet.deploy(join(text, holder("own", ours())))

    assert outcome(fleet) == ("", "")
    assert there(east)["data"]["by"] == "own"
    assert "bellhop.dev/adopt" not in there(east)["marks"]


@pytest.fixture
def always(tmp_path: Path) -> Iterator[Fleet]:
    """An installation that does as Sveltos does."""
    one = Fleet(tmp_path / "always", Settings(adopt="always"))
    yield one
    one.close()


def test_the_setting_adopts_whatever_a_profile_names(always: Fleet) -> None:
    """As Sveltos takes it over; what was there before stays in the end all the same."""
    east = always.register("east", env="production")
    theirs(east)
    always.apply(join(profile(), holder("own", ours())))
    always.pump()
    assert there(east)["data"]["by"] == "own"

    always.declare.delete([("ClusterProfile", "", "own")])
    always.pump()

    assert there(east)["marks"] == HELM


def test_what_another_profile_has_is_not_adopted(fleet: Fleet, east: FakeKube) -> None:
    """Between profiles tiers decide; who takes an adopted object leaves it in the end, too."""
    adopt(fleet, east)
    mine = profile(name="second")
    fleet.deploy(join(mine, holder("second", ours("own", value="second"))))
    assert "profile 'own' of tier 100 has it" in outcome(fleet, "second")[1]
    assert there(east)["data"]["by"] == "own"

    fleet.apply(profile(name="second", more="tier: 10"))
    fleet.deploy(holder("second", ours(value="second")))
    assert there(east)["data"]["by"] == "second"
    assert outcome(fleet)[0] == "Conflict"

    fleet.declare.delete([("ClusterProfile", "", name) for name in ("own", "second")])
    fleet.pump()
    assert there(east)["marks"] == HELM


def test_a_refused_profile_keeps_the_object_from_no_other(fleet: Fleet, east: FakeKube) -> None:
    """The second profile asks to adopt it, and does."""
    theirs(east)
    fleet.deploy(join(profile(), holder("own", ours())))

    fleet.deploy(join(profile(name="second"), holder("second", ours("true", value="second"))))

    assert outcome(fleet, "second") == ("", "")
    assert there(east)["data"]["by"] == "second"


def test_an_object_recreated_by_others_between_plan_and_write_is_theirs(
    fleet: Fleet, east: FakeKube
) -> None:
    """A write is for the uid that was planned for, and for no other."""
    fleet.deploy(join(profile(), holder("own", ours())))

    def slow() -> None:
        east.drop(CONFIG, "default", "web")
        theirs(east)

    before_next(east, "apply", slow)
    fleet.deploy(holder("own", ours(value="new")))

    assert outcome(fleet) == ("Conflict", REFUSED)
    assert there(east)["data"]["by"] == "helm"
    assert list(fleet.records.inventories.of(EAST)) == []
    assert fleet.records.owners.get(EAST, KEY) is None


def test_what_is_removed_by_others_between_plan_and_write_is_made(
    fleet: Fleet, east: FakeKube
) -> None:
    """An object that was adopted then belongs only to Bellhop, and is deleted in the end."""
    adopt(fleet, east)
    east.drop(CONFIG, "default", "web")
    fleet.deploy(holder("own", ours(value="new")))
    assert there(east)["data"] == {"by": "new"}
    assert "bellhop.dev/adopted" not in there(east)["marks"]

    fleet.delete("ClusterProfile", "own")

    assert east.get(CONFIG, "default", "web") is None


def test_others_who_make_and_remove_it_all_the_time_are_waited_for(
    fleet: Fleet, east: FakeKube
) -> None:
    """It is tried again later, and nothing is held of it."""
    apply, get = east.apply, east.get

    def made_before(*args: Any, **how: Any) -> Any:
        theirs(east)
        return apply(*args, **how)

    def gone_before(*args: Any) -> Any:
        east.drop(CONFIG, "default", "web")
        return get(*args)

    east.apply, east.get = made_before, gone_before  # type: ignore[method-assign]
    fleet.deploy(join(profile(), holder("own", ours("true"))))
    assert outcome(fleet)[0] == "Temporary"

    east.apply, east.get = apply, get  # type: ignore[method-assign]
    fleet.wait(timedelta(minutes=1))
    assert there(east)["data"]["by"] == "own"


def test_what_is_being_deleted_is_waited_for(fleet: Fleet, east: FakeKube) -> None:
    """A terminating object would take its new fields along; it is re-created after that."""
    made = theirs(east)
    east.put({**made, "metadata": {**made["metadata"], "finalizers": ["shop.example/books"]}})
    east.remove(CONFIG, "default", "web")
    before = there(east)
    fleet.deploy(join(profile(), holder("own", ours("true"))))
    assert outcome(fleet)[0] == "Temporary"
    assert "is terminating" in outcome(fleet)[1]
    assert there(east) == before

    east.drop(CONFIG, "default", "web")
    fleet.wait(timedelta(minutes=1))
    assert outcome(fleet) == ("", "")
    assert there(east)["data"] == {"by": "own"}


def test_who_died_between_adoption_and_its_note_leaves_it_in_the_end(
    fleet: Fleet, east: FakeKube
) -> None:
    """The object says by itself that it was adopted, and from whom."""
    theirs(east)
    die(fleet, east, "after it is written", join(profile(), holder("own", ours("true"))))
    fleet.delete("ClusterProfile", "own")

    assert there(east)["marks"] == HELM
    assert list(fleet.records.inventories.of(EAST)) == []


def test_a_death_after_recreating_an_adopted_object_has_it_removed_in_the_end(
    fleet: Fleet, east: FakeKube
) -> None:
    """The inventory has it as adopted, but nobody else has made the present one."""
    adopt(fleet, east)
    east.drop(CONFIG, "default", "web")
    die(fleet, east, "after it is written", holder("own", ours(value="new")))
    assert there(east)["data"] == {"by": "new"}

    fleet.delete("ClusterProfile", "own")

    assert east.get(CONFIG, "default", "web") is None


def test_an_object_recreated_after_a_death_is_not_marked_as_adopted(
    fleet: Fleet, east: FakeKube
) -> None:
    """Others delete an adopted object whose write may or may not have succeeded."""
    adopt(fleet, east)
    die(fleet, east, "before it is written", holder("own", ours(value="new")))
    east.drop(CONFIG, "default", "web")

    fleet.pump()

    assert there(east)["data"] == {"by": "new"}
    assert "bellhop.dev/adopted" not in there(east)["marks"]


@pytest.mark.parametrize(
    ("asked", "action", "said"),
    [
        ("", "Conflict", REFUSED),
        (
            "true",
            "Adopt",
            "from Helm release 'shop/web' (field manager 'helm'); what changes: 2 lines",
        ),
    ],
)
def test_a_dry_run_reports_what_would_be_adopted(
    fleet: Fleet, east: FakeKube, asked: str, action: str, said: str
) -> None:
    """It names the maker and the changes, or has the sentence that would refuse it."""
    theirs(east)
    before = there(east)

    fleet.deploy(join(profile(more="syncMode: DryRun"), holder("own", ours(asked))))

    change = changes(fleet)["web"]
    assert (change.action, change.message) == (action, said)
    assert ("-  by: helm\n+  by: own\n" in change.diff) == (action == "Adopt")
    assert outcome(fleet)[1] == {"Adopt": "1 to adopt", "Conflict": "1 in conflict"}[action]
    assert there(east) == before


def test_a_dry_run_reports_adopted_objects_that_would_be_left(fleet: Fleet, east: FakeKube) -> None:
    """An adopted object is not deleted."""
    adopt(fleet, east)

    fleet.deploy(join(profile(more="syncMode: DryRun"), holder("own", config("other"))))

    change = changes(fleet)["web"]
    assert (change.action, change.message) == (
        "Update",
        "it stays, without Bellhop's labels and annotations",
    )


def test_a_namespace_that_was_made_for_an_object_is_ours(fleet: Fleet) -> None:
    """A profile that names it has nothing to adopt."""
    fleet.register("east", env="production")
    fleet.deploy(join(profile(), holder("own", config("web", namespace="shop"))))

    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
    fleet.deploy(join(profile(name="second"), holder("second", space)))

    assert outcome(fleet, "second") == ("", "")


def test_a_word_that_nobody_knows_is_refused(fleet: Fleet) -> None:
    """With the line, before anything is taken to a cluster."""
    fleet.register("east", env="production")
    fleet.deploy(join(profile(), holder("own", ours("yes"))))

    (found,) = fleet.records.profiles.of("")
    assert 'bellhop.dev/adopt of the ConfigMap must be one of "true", "own", "false"' in found.error
