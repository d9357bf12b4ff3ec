"""Dry-run profiles: what they would do is reported, and nothing of it is done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.deploy.object_diff import WITHHELD_DIFF
from bellhop.errors import MissingError, TemporaryError
from bellhop.operations.previews import list_dry_runs, preview_now
from bellhop.state.deployment import Change
from bellhop.state.messages import Apply
from tests.fakes import rig
from tests.fakes.fleet import EAST, Fleet, OpenFleet, service
from tests.fakes.hooks import after_next
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
from tests.fakes.mortal import Fate
from tests.fakes.share import SHARE

DRY = "syncMode: DryRun"
_NEVER = "function evaluate() return {healthy = false} end"
CHECKED = (
    "preDeleteChecks: [{name: never, featureID: Resources, group: '', version: v1, kind: ConfigMap,"
    f" script: '{_NEVER}'}}]"
)


def writes(kube: FakeKube) -> list[Any]:
    changing = ("apply", "merge", "remove")
    return [each for each in kube.calls if each.verb in changing and not each.dry_run]


def changes(fleet: Fleet) -> dict[str, Change]:
    found = list(list_dry_runs(fleet.installation(), EAST))
    return {each.change.key.name: each.change for each in found}


def actions(fleet: Fleet) -> dict[str, str]:
    return {name: each.action for name, each in changes(fleet).items()}


def outcome(fleet: Fleet) -> tuple[str, str]:
    found = fleet.status_of()
    return found.phase, found.message


def test_reports_what_it_would_do_and_does_it_once_it_is_no_dry_run(
    fleet: Fleet, east: FakeKube
) -> None:
    """All that may become of an object, by its cluster's own word; then the same is done."""
    fleet.deploy(join(profile(), holder("own", *(config(each, "v: '1'") for each in "abc"))))
    stored = fleet.records.inventories.get(EAST, "own")
    east.calls.clear()

    new = [config("a", "v: '1'"), config("b", "v: '2'"), config("d", namespace="shop")]
    fleet.deploy(join(profile(more=DRY), holder("own", *new)))

    assert actions(fleet) == {"a": "No Action", "b": "Update", "c": "Delete", "d": "Create"}
    assert changes(fleet)["b"].diff.splitlines()[5:7] == ["-  v: '1'", "+  v: '2'"]
    assert changes(fleet)["d"].message == "in namespace 'shop', which is made for it"
    assert outcome(fleet) == ("DryRun", "1 to create, 1 to update, 1 to delete")
    assert writes(east) == []
    assert fleet.records.inventories.get(EAST, "own") == stored

    fleet.deploy(profile())
    assert east.names() == ["a", "b", "d"]
    assert outcome(fleet) == ("Provisioned", "")
    assert fleet.records.previews.get(EAST, "own") is None


@pytest.mark.usefixtures("east")
def test_a_conflict_and_a_refused_object_are_reported(fleet: Fleet) -> None:
    """Neither keeps the others from being looked at, and no owner is written."""
    fleet.deploy(join(profile(name="first"), holder("first", config("a"))))
    fleet.deploy(
        join(
            profile(more=DRY),
            holder(
                "own",
                config("a"),
                config("b"),
                "apiVersion: x.io/v1\nkind: Odd\nmetadata: {name: c}",
            ),
        )
    )

    assert actions(fleet) == {"a": "Conflict", "b": "Create", "c": "Error"}
    assert "profile 'first' of tier 100 has it" in changes(fleet)["a"].message
    assert outcome(fleet)[1] == "1 to create, 1 in conflict, 1 refused"
    assert {owner.profile for _, owner in fleet.records.owners.of(EAST)} == {"first"}


@pytest.mark.usefixtures("east")
def test_a_kind_that_comes_with_its_definition_is_to_be_created(fleet: Fleet) -> None:
    """The cluster cannot be asked about it yet."""
    crd = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: odds.x.io}
spec:
  group: x.io
  scope: Namespaced
  names: {kind: Odd, plural: odds}
  versions: [{name: v1, served: true, storage: true}]
"""
    odd = "apiVersion: x.io/v1\nkind: Odd\nmetadata: {name: one}\n"
    fleet.deploy(join(profile(more=DRY), holder("own", odd, crd)))

    assert actions(fleet) == {"odds.x.io": "Create", "one": "Create"}


@pytest.mark.usefixtures("east")
def test_never_shows_what_a_secret_holds(fleet: Fleet) -> None:
    """A changed value is reported as changed; neither the old value nor the new one is shown."""
    secret = """\
apiVersion: v1
kind: Secret
metadata: {{name: s, namespace: default, annotations: {{note: '{0}'}}}}
data: {{same: c2FtZQ==, password: {0}}}
"""
    fleet.deploy(join(profile(), holder("own", secret.format("b2xk"))))
    fleet.deploy(join(profile(more=DRY), holder("own", secret.format("bmV3"))))

    diff = changes(fleet)["s"].diff
    assert "-  password: <hidden>\n+  password: <hidden, and another>\n   same: <hidden>" in diff
    assert not any(value in diff for value in ("b2xk", "bmV3", "c2FtZQ=="))


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize("first", ["Secret", "ConfigMap"])
def test_never_shows_what_was_rendered_from_a_secret(fleet: Fleet, first: str) -> None:
    """The preview says only that it changes, for the present object and for the next one."""
    plain = holder("own", config("a", "v: plain"))
    made = holder("own", config("a", "v: hunter2")).replace("ConfigMap", "Secret", 1)
    kind = "type: addons.projectsveltos.io/cluster-profile"
    made = made.replace("\ndata:", f"\n{kind}\nstringData:", 1)
    by_secret = profile().replace("kind: ConfigMap", "kind: Secret")
    both = {"ConfigMap": join(profile(), plain), "Secret": join(by_secret, made)}
    then = both["Secret" if first == "ConfigMap" else "ConfigMap"]
    fleet.deploy(both[first])
    fleet.deploy(then.replace("policyRefs:", f"{DRY}\n  policyRefs:", 1))

    found = changes(fleet)["a"]
    assert (found.action, found.message, found.diff) == ("Update", WITHHELD_DIFF, "")


def test_a_cluster_that_is_selected_no_more_keeps_all_until_it_is_meant(
    fleet: Fleet, east: FakeKube
) -> None:
    """It reports what would be deleted; a cluster that holds nothing of it is just left."""
    fleet.deploy(join(profile(), holder("own", config("a"))))
    fleet.deploy(profile(more=DRY))
    fleet.declare.label(EAST, {"env": "test"})
    fleet.pump()
    assert east.names() == ["a"]
    assert actions(fleet) == {"a": "Delete"}

    fleet.deploy(profile())
    assert east.names() == []
    assert list(fleet.records.outcomes.of(EAST)) == []
    assert fleet.records.previews.get(EAST, "own") is None


def forgotten(fleet: Fleet) -> bool:
    """Say whether no record is left of what a profile had in the cluster."""
    records = fleet.records
    left = [*records.outcomes.of(EAST), *fleet.store.query(f"owner/{EAST}")]
    return not left and not list(fleet.store.query(f"inventory/{EAST}"))


@pytest.mark.parametrize("more", ["", CHECKED])
def test_one_that_is_deleted_touches_no_cluster(fleet: Fleet, east: FakeKube, more: str) -> None:
    """Its objects stay, and nobody owns them any more; no check runs before or after."""
    fleet.deploy(join(profile(more=more), holder("own", config("a"))))
    before = east.objects(CONFIG)
    fleet.deploy(profile(more=f"{DRY}\n  {more}"))
    east.calls.clear()
    fleet.delete("ClusterProfile", "own")

    assert east.calls == []
    assert east.objects(CONFIG) == before
    assert list(fleet.records.profiles.of("")) == []
    assert fleet.records.previews.get(EAST, "own") is None
    assert forgotten(fleet)

    fleet.deploy(profile())
    fleet.delete("ClusterProfile", "own")
    assert east.names() == []


def test_one_that_never_was_more_than_tried_leaves_nothing(fleet: Fleet, east: FakeKube) -> None:
    """There is nothing to leave, and no record stays."""
    fleet.deploy(join(profile(more=DRY), holder("own", config("a"))))
    fleet.delete("ClusterProfile", "own")

    assert east.names() == []
    assert list(fleet.records.profiles.of("")) == []
    assert forgotten(fleet)


def test_what_a_trigger_makes_no_more_stays_until_it_is_meant(fleet: Fleet, east: FakeKube) -> None:
    """A trigger that is tried dry takes nothing away, not even when it is deleted."""
    rules = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
    fleet.apply(join(source(), trigger(), rules))
    kept = [fleet.write("east", service(each)) for each in "ab"]
    fleet.pump()
    fleet.deploy(trigger(more=DRY))
    fleet.drop("east", kept[0])
    fleet.pump()
    assert east.names() == ["for-a", "for-b"]
    assert actions(fleet) == {"for-a": "Delete", "for-b": "No Action"}

    fleet.delete("EventTrigger", "made")
    assert east.names() == ["for-a", "for-b"]
    assert list(fleet.records.profiles.of("made")) == []
    assert forgotten(fleet)


def test_what_a_trigger_made_no_more_goes_once_that_is_meant(fleet: Fleet, east: FakeKube) -> None:
    """It is declared as before: what ended meanwhile is withdrawn."""
    rules = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
    fleet.apply(join(source(), trigger(), rules))
    kept = [fleet.write("east", service(each)) for each in "ab"]
    fleet.pump()
    fleet.deploy(trigger(more=DRY))
    fleet.drop("east", kept[0])
    fleet.pump()
    fleet.deploy(trigger())

    assert east.names() == ["for-b"]


def test_each_resync_reads_again_and_writes_only_changes(fleet: Fleet, east: FakeKube) -> None:
    """No event comes when a cluster changes by itself."""
    fleet.deploy(join(profile(more=DRY), holder("own", config("a", "v: '1'"))))
    assert actions(fleet) == {"a": "Create"}
    before = fleet.records.previews.get(EAST, "own")
    fleet.publisher.publish([Apply("", "", "own", EAST)])
    fleet.pump()
    assert fleet.records.previews.get(EAST, "own") == before

    east.put(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    )
    fleet.wait(fleet.settings.sweep_interval + timedelta(minutes=1))

    assert actions(fleet) == {"a": "Conflict"}


def test_who_was_slow_to_look_takes_back_what_it_noted(fleet: Fleet, east: FakeKube) -> None:
    """It was meant meanwhile: what would have been done is shown to nobody."""
    fleet.apply(join(profile(more=DRY), holder("own", config("a"))))
    executor = fleet.reconciler._features[0]

    def slow() -> None:
        fleet.apply(profile())
        # The worker is so slow that its message is given to another.
        fleet.wait(fleet.settings.visibility + timedelta(seconds=1))
        assert east.names() == ["a"]

    after_next(executor, "preview", slow)
    fleet.pump()

    assert east.names() == ["a"]
    assert outcome(fleet) == ("Provisioned", "")
    assert fleet.records.previews.get(EAST, "own") is None


@pytest.mark.rest
def test_death_at_any_step_touches_no_cluster_and_blocks_nobody(open_fleet: OpenFleet) -> None:
    """A dry run that died is repeated; so is the deployment that follows."""
    for steps in range(1, 130, SHARE):
        fleet = open_fleet()
        east = fleet.register("east", env="production")
        both = [config(each, "v: '1'") for each in "ab"]
        fleet.deploy(join(profile(), holder("own", *both)))
        fate = rig.make_mortal(fleet)
        east.calls.clear()

        die(fleet, fate, steps, join(profile(more=DRY), holder("own", config("b", "v: '2'"))))
        assert writes(east) == []
        assert actions(fleet) == {"a": "Delete", "b": "Update"}
        assert outcome(fleet)[0] == "DryRun"

        die(fleet, fate, steps, profile())
        assert east.names() == ["b"]
        assert outcome(fleet) == ("Provisioned", "")
        assert actions(fleet) == {}


def die(fleet: Fleet, fate: Fate, steps: int, declared: str) -> None:
    """Declare something, die at a step of what follows, and let others go on."""
    fleet.apply(declared)
    rig.kill(fleet, fate, steps)
    rig.settle(fleet)


def test_a_diff_reports_what_would_change_and_writes_nothing(fleet: Fleet, east: FakeKube) -> None:
    """Of a profile that is applied: what others did to it since it holds is seen once unsure."""
    fleet.deploy(join(profile(), holder("own", config("a", "v: '1'"))))
    here = fleet.installation()
    assert [each.change.action for each in preview_now(here, "own")] == ["No Action"]

    fleet.records.inventories.doubt(EAST, "own", None)
    there = east.objects(CONFIG)[0]
    east.put({**there, "data": {"v": "by hand"}})
    east.calls.clear()
    before = {(each.partition, each.sort, each.token) for each in fleet.store.all()}
    (found,) = preview_now(here, "own")

    assert (found.change.action, found.change.message) == ("Update", "2 lines")
    assert writes(east) == []
    assert {(each.partition, each.sort, each.token) for each in fleet.store.all()} == before


def test_what_changed_hands_meanwhile_is_known_once_it_is_meant(
    fleet: Fleet, east: FakeKube
) -> None:
    """A profile that lost an object during its dry run knows it when it is deployed."""
    fleet.deploy(join(profile(), holder("own", config("a", "v: own"))))
    fleet.deploy(profile(more=DRY))
    fleet.deploy(
        join(profile(name="other", more="tier: 50"), holder("other", config("a", "v: other")))
    )
    assert actions(fleet) == {"a": "Conflict"}

    fleet.deploy(profile())

    assert outcome(fleet)[0] == "FailedNonRetriable"
    assert "profile 'other' of tier 50 has it" in outcome(fleet)[1]
    assert [each["data"] for each in east.objects(CONFIG)] == [{"v": "other"}]


def test_a_profile_that_was_just_applied_is_not_missing(fleet: Fleet) -> None:
    """It is asked for again in a moment; one of another name never is."""
    fleet.register("east", env="production")
    fleet.apply(join(profile(), holder("own", config("a"))))
    here = fleet.installation()

    with pytest.raises(TemporaryError, match="it was just applied, and no worker has read it"):
        list(preview_now(here, "own"))
    with pytest.raises(MissingError, match="no profile has this name"):
        list(preview_now(here, "other"))

    fleet.pump()
    assert [each.change.action for each in preview_now(here, "own")] == ["No Action"]
