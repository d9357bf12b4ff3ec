"""Profiles that are tried dry: what they would do is told, and nothing of it is done."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.deploy.object_diff import WITHHELD_DIFF
from bellhop.errors import MissingError, TemporaryError
from bellhop.operations.previews import noted, now
from bellhop.state.messages import Apply
from bellhop.state.record import Change
from tests.fakes import rig
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube
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
from tests.fakes.mortal import Fate, Killed, Mortal

CONFIG = GVK("", "v1", "ConfigMap")
EAST = "fleet/east"
DRY = "syncMode: DryRun"
_NEVER = "function evaluate() return {healthy = false} end"
CHECKED = (
    "preDeleteChecks: [{name: never, featureID: Resources, group: '', version: v1, kind: ConfigMap,"
    f" script: '{_NEVER}'}}]"
)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production")


def names(kube: FakeKube) -> list[str]:
    return [each["metadata"]["name"] for each in kube.objects(CONFIG)]


def writes(kube: FakeKube) -> list[Any]:
    changing = ("apply", "merge", "remove")
    return [each for each in kube.calls if each.verb in changing and not each.dry_run]


def changes(fleet: Fleet) -> dict[str, Change]:
    found = list(noted(fleet.installation(), EAST))
    return {each.change.key.name: each.change for each in found}


def told(fleet: Fleet) -> dict[str, str]:
    return {name: each.action for name, each in changes(fleet).items()}


def outcome(fleet: Fleet) -> tuple[str, str]:
    found = fleet.records.outcomes.get(EAST, "own")
    assert found
    return found.value.phase, found.value.message


def test_tells_what_it_would_do_and_does_it_once_it_is_meant(fleet: Fleet, east: FakeKube) -> None:
    """All that may become of an object, by its cluster's own word; then the same is done."""
    fleet.apply(join(profile(), holder("own", *(config(each, "v: '1'") for each in "abc"))))
    fleet.pump()
    stored = fleet.records.inventories.get(EAST, "own")
    east.calls.clear()

    new = [config("a", "v: '1'"), config("b", "v: '2'"), config("d", namespace="shop")]
    fleet.apply(join(profile(more=DRY), holder("own", *new)))
    fleet.pump()

    assert told(fleet) == {"a": "No Action", "b": "Update", "c": "Delete", "d": "Create"}
    assert changes(fleet)["b"].diff.splitlines()[5:7] == ["-  v: '1'", "+  v: '2'"]
    assert changes(fleet)["d"].message == "in namespace 'shop', which is made for it"
    assert outcome(fleet) == ("DryRun", "1 to create, 1 to update, 1 to delete")
    assert writes(east) == []
    assert fleet.records.inventories.get(EAST, "own") == stored

    fleet.apply(profile())
    fleet.pump()
    assert names(east) == ["a", "b", "d"]
    assert outcome(fleet) == ("Provisioned", "")
    assert fleet.records.previews.get(EAST, "own") is None


@pytest.mark.usefixtures("east")
def test_what_another_has_and_what_is_refused_is_told(fleet: Fleet) -> None:
    """Neither keeps the others from being looked at, and no owner is written."""
    fleet.apply(join(profile(name="first"), holder("first", config("a"))))
    fleet.pump()
    fleet.apply(
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
    fleet.pump()

    assert told(fleet) == {"a": "Conflict", "b": "Create", "c": "Error"}
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
    fleet.apply(join(profile(more=DRY), holder("own", odd, crd)))
    fleet.pump()

    assert told(fleet) == {"odds.x.io": "Create", "one": "Create"}


@pytest.mark.usefixtures("east")
def test_never_tells_what_a_secret_holds(fleet: Fleet) -> None:
    """That a value changes is told, and no value, neither the old one nor the new."""
    secret = """\
apiVersion: v1
kind: Secret
metadata: {{name: s, namespace: default, annotations: {{note: '{0}'}}}}
data: {{same: c2FtZQ==, password: {0}}}
"""
    fleet.apply(join(profile(), holder("own", secret.format("b2xk"))))
    fleet.pump()
    fleet.apply(join(profile(more=DRY), holder("own", secret.format("bmV3"))))
    fleet.pump()

    diff = changes(fleet)["s"].diff
    assert "-  password: <hidden>\n+  password: <hidden, and another>\n   same: <hidden>" in diff
    assert not any(value in diff for value in ("b2xk", "bmV3", "c2FtZQ=="))


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize("first", ["Secret", "ConfigMap"])
def test_never_tells_what_was_made_of_a_secret(fleet: Fleet, first: str) -> None:
    """Be it what is there or what is to take its place: that it changes is all that is told."""
    plain = holder("own", config("a", "v: plain"))
    made = holder("own", config("a", "v: hunter2")).replace("ConfigMap", "Secret", 1)
    kind = "type: addons.projectsveltos.io/cluster-profile"
    made = made.replace("\ndata:", f"\n{kind}\nstringData:", 1)
    by_secret = profile().replace("kind: ConfigMap", "kind: Secret")
    both = {"ConfigMap": join(profile(), plain), "Secret": join(by_secret, made)}
    then = both["Secret" if first == "ConfigMap" else "ConfigMap"]
    fleet.apply(both[first])
    fleet.pump()
    fleet.apply(then.replace("policyRefs:", f"{DRY}\n  policyRefs:", 1))
    fleet.pump()

    found = changes(fleet)["a"]
    assert (found.action, found.message, found.diff) == ("Update", WITHHELD_DIFF, "")


def test_a_cluster_that_is_selected_no_more_keeps_all_until_it_is_meant(
    fleet: Fleet, east: FakeKube
) -> None:
    """It is told what would be deleted; one that holds nothing of it is just left."""
    fleet.apply(join(profile(), holder("own", config("a"))))
    fleet.pump()
    fleet.apply(profile(more=DRY))
    fleet.pump()
    fleet.declare.label(EAST, {"env": "test"})
    fleet.pump()
    assert names(east) == ["a"]
    assert told(fleet) == {"a": "Delete"}

    fleet.apply(profile())
    fleet.pump()
    assert names(east) == []
    assert list(fleet.records.outcomes.of(EAST)) == []
    assert fleet.records.previews.get(EAST, "own") is None


def forgotten(fleet: Fleet) -> bool:
    """Say whether no record is left of what a profile had in the cluster."""
    records = fleet.records
    left = [*records.outcomes.of(EAST), *fleet.store.query(f"owner/{EAST}")]
    return not left and not list(fleet.store.query(f"inventory/{EAST}"))


@pytest.mark.parametrize("more", ["", CHECKED])
def test_one_that_is_deleted_touches_no_cluster(fleet: Fleet, east: FakeKube, more: str) -> None:
    """What it had stays as it is, and is owned no more; no check is asked before or after."""
    fleet.apply(join(profile(more=more), holder("own", config("a"))))
    fleet.pump()
    before = east.objects(CONFIG)
    fleet.apply(profile(more=f"{DRY}\n  {more}"))
    fleet.pump()
    east.calls.clear()
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert east.calls == []
    assert east.objects(CONFIG) == before
    assert list(fleet.records.profiles.of("")) == []
    assert fleet.records.previews.get(EAST, "own") is None
    assert forgotten(fleet)

    fleet.apply(profile())
    fleet.pump()
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    assert names(east) == []


def test_one_that_never_was_more_than_tried_leaves_nothing(fleet: Fleet, east: FakeKube) -> None:
    """There is nothing to leave, and no record stays."""
    fleet.apply(join(profile(more=DRY), holder("own", config("a"))))
    fleet.pump()
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert names(east) == []
    assert list(fleet.records.profiles.of("")) == []
    assert forgotten(fleet)


def test_what_a_trigger_makes_no_more_stays_until_it_is_meant(fleet: Fleet, east: FakeKube) -> None:
    """A trigger that is tried dry takes nothing away, not even when it is deleted."""
    rules = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
    fleet.apply(join(source(), trigger(), rules))
    kept = [fleet.write("east", service(each)) for each in "ab"]
    fleet.pump()
    fleet.apply(trigger(more=DRY))
    fleet.pump()
    fleet.drop("east", kept[0])
    fleet.pump()
    assert names(east) == ["for-a", "for-b"]
    assert told(fleet) == {"for-a": "Delete", "for-b": "No Action"}

    fleet.declare.delete([("EventTrigger", "", "made")])
    fleet.pump()
    assert names(east) == ["for-a", "for-b"]
    assert list(fleet.records.profiles.of("made")) == []
    assert forgotten(fleet)


def test_what_a_trigger_made_no_more_goes_once_that_is_meant(fleet: Fleet, east: FakeKube) -> None:
    """It is declared as before: what ended meanwhile is withdrawn."""
    rules = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
    fleet.apply(join(source(), trigger(), rules))
    kept = [fleet.write("east", service(each)) for each in "ab"]
    fleet.pump()
    fleet.apply(trigger(more=DRY))
    fleet.pump()
    fleet.drop("east", kept[0])
    fleet.pump()
    fleet.apply(trigger())
    fleet.pump()

    assert names(east) == ["for-b"]


def test_each_sweep_looks_again_and_writes_only_what_is_new(fleet: Fleet, east: FakeKube) -> None:
    """Nobody tells when a cluster changes by itself."""
    fleet.apply(join(profile(more=DRY), holder("own", config("a", "v: '1'"))))
    fleet.pump()
    assert told(fleet) == {"a": "Create"}
    before = fleet.records.previews.get(EAST, "own")
    fleet.publisher.publish([Apply("", "", "own", EAST)])
    fleet.pump()
    assert fleet.records.previews.get(EAST, "own") == before

    east.put(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    )
    fleet.clock.advance(fleet.settings.sweep_interval + timedelta(minutes=1))
    fleet.pump()

    assert told(fleet) == {"a": "Conflict"}


def test_who_was_slow_to_look_takes_back_what_it_noted(fleet: Fleet, east: FakeKube) -> None:
    """It was meant meanwhile: what would have been done is shown to nobody."""
    fleet.apply(join(profile(more=DRY), holder("own", config("a"))))
    executor = fleet.stages["deploy"]._execute._features[0]
    real = executor.preview

    def slow(*args: Any) -> Any:
        executor.preview = real
        found = real(*args)
        fleet.apply(profile())
        # Whoever looks is so slow that its message is given to another.
        fleet.clock.advance(fleet.settings.visibility + timedelta(seconds=1))
        fleet.pump()
        assert names(east) == ["a"]
        return found

    executor.preview = slow
    fleet.pump()

    assert names(east) == ["a"]
    assert outcome(fleet) == ("Provisioned", "")
    assert fleet.records.previews.get(EAST, "own") is None


@pytest.mark.rest
@pytest.mark.parametrize("offset", range(2))
def test_death_at_any_step_touches_no_cluster_and_blocks_nobody(
    tmp_path: Path, offset: int
) -> None:
    """Whoever died while it looked comes again; so does who died once it was meant."""
    for steps in range(1 + offset, 130, 18):
        fleet = one_that_holds(tmp_path / f"{offset}-{steps}")
        east, fate = fleet.access.clusters[EAST], Fate()
        rig.interpose(fleet, lambda name, port, fate=fate: Mortal(name, port, fate))
        fleet.access.clusters = {EAST: east}
        east.calls.clear()

        die(fleet, fate, steps, join(profile(more=DRY), holder("own", config("b", "v: '2'"))))
        assert writes(east) == []
        assert told(fleet) == {"a": "Delete", "b": "Update"}
        assert outcome(fleet)[0] == "DryRun"

        die(fleet, fate, steps, profile())
        assert names(east) == ["b"]
        assert outcome(fleet) == ("Provisioned", "")
        assert told(fleet) == {}
        fleet.close()


def one_that_holds(folder: Path) -> Fleet:
    """Return an installation of which a profile has two objects in a cluster."""
    folder.mkdir()
    fleet = Fleet(folder)
    fleet.register("east", env="production")
    both = [config(each, "v: '1'") for each in "ab"]
    fleet.apply(join(profile(), holder("own", *both)))
    fleet.pump()
    return fleet


def die(fleet: Fleet, fate: Fate, steps: int, declared: str) -> None:
    """Declare something, die at a step of what follows, and let others go on."""
    fleet.apply(declared)
    fate.doom(steps)
    with suppress(Killed):
        fleet.pump()
    fate.revive()
    fleet.reread()
    rig.release(fleet)
    for _ in range(3):
        fleet.clock.advance(timedelta(seconds=130))
        rig.tick(fleet)
        fleet.pump()


def test_what_would_change_now_is_told_and_written_nowhere(fleet: Fleet, east: FakeKube) -> None:
    """Of a profile that is applied: what others did to it since it holds is seen once unsure."""
    fleet.apply(join(profile(), holder("own", config("a", "v: '1'"))))
    fleet.pump()
    here = fleet.installation()
    assert [each.change.action for each in now(here, "own")] == ["No Action"]

    fleet.records.inventories.doubt(EAST, "own", None)
    there = east.objects(CONFIG)[0]
    east.put({**there, "data": {"v": "by hand"}})
    east.calls.clear()
    before = {(each.partition, each.sort, each.token) for each in fleet.store.all()}
    (found,) = now(here, "own")

    assert (found.change.action, found.change.message) == ("Update", "2 lines")
    assert writes(east) == []
    assert {(each.partition, each.sort, each.token) for each in fleet.store.all()} == before


def test_what_changed_hands_meanwhile_is_known_once_it_is_meant(
    fleet: Fleet, east: FakeKube
) -> None:
    """Who lost an object while it was tried dry does not go on as if it had it."""
    fleet.apply(join(profile(), holder("own", config("a", "v: own"))))
    fleet.pump()
    fleet.apply(profile(more=DRY))
    fleet.pump()
    fleet.apply(
        join(profile(name="other", more="tier: 50"), holder("other", config("a", "v: other")))
    )
    fleet.pump()
    assert told(fleet) == {"a": "Conflict"}

    fleet.apply(profile())
    fleet.pump()

    assert outcome(fleet)[0] == "FailedNonRetriable"
    assert "profile 'other' of tier 50 has it" in outcome(fleet)[1]
    assert [each["data"] for each in east.objects(CONFIG)] == [{"v": "other"}]


def test_a_profile_that_was_just_applied_is_not_missing(fleet: Fleet) -> None:
    """It is asked for again in a moment; one of another name never is."""
    fleet.register("east", env="production")
    fleet.apply(join(profile(), holder("own", config("a"))))
    here = fleet.installation()

    with pytest.raises(TemporaryError, match="it was just applied, and no worker has read it"):
        list(now(here, "own"))
    with pytest.raises(MissingError, match="no profile has this name"):
        list(now(here, "other"))

    fleet.pump()
    assert [each.change.action for each in now(here, "own")] == ["No Action"]
