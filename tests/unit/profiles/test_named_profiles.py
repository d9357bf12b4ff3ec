"""Generated profiles by names that their triggers chose: shown, asked for, refused, waited for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bellhop.cli.deployed import AddOnFilter, list_addons
from bellhop.cli.views.profiles import VIEWS
from bellhop.cli.views.view import Query
from bellhop.diagnosis.failures import list_failures
from bellhop.diagnosis.names import resolve_profile
from bellhop.operations.redeployment import redeploy
from bellhop.operations.rollback import list_revisions
from bellhop.profiles.records import place
from bellhop.state.profile import Profile
from tests.fakes import rig
from tests.fakes.fleet import SERVICE, Fleet, service
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
from tests.fakes.mortal import Killed
from tests.fakes.share import SHARE
from tests.unit.deploy.gates.test_dependencies import phase, record_acts, written

BY_NAME = "'web-{{ .Resource.metadata.name }}'"


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    fleet.apply(source())
    return fleet.register("east", env="production")


def naming(name: str = "made", *, by: str = BY_NAME, makes: str = FOR_EACH) -> str:
    """Return a trigger that names its profiles, and the add-ons for each object."""
    return join(
        trigger(name, more=f"profileNameFormat: {by}"),
        holder(name, config(makes), annotations=INSTANTIATE),
    )


def add_service(fleet: Fleet, name: str) -> dict[str, Any]:
    made = fleet.write("east", service(name))
    fleet.pump()
    return made


def titles(fleet: Fleet, name: str = "made") -> list[tuple[str, str]]:
    """Return the titles of a trigger's profiles, each with what it was refused for."""
    return sorted((each.title, each.error) for each in fleet.records.profiles.of(name))


def shown(fleet: Fleet) -> list[str]:
    rows = VIEWS["clusterprofile"].rows(fleet.installation(), Query())
    return sorted(str(row["name"]) for row in rows)


def _name(manifest: dict[str, Any]) -> str:
    return str(manifest["metadata"]["name"])


def names(kube: FakeKube) -> list[str]:
    return sorted(map(_name, kube.objects(CONFIG)))


def only(fleet: Fleet) -> Profile:
    (found,) = fleet.records.profiles.of("made")
    return found


def test_people_know_it_by_its_name(fleet: Fleet, east: FakeKube) -> None:
    """Lists, commands and the event log have it; the generated name still means the same."""
    fleet.apply(naming())
    add_service(fleet, "a")
    here = fleet.installation()
    assert shown(fleet) == ["web-a"]
    assert [row["profiles"] for row in list_addons(here, AddOnFilter())] == [
        ["ClusterProfile/web-a"]
    ]
    logged = {each.context.get("profile") for each in fleet.ledger() if each.what == "applied"}
    assert logged == {"web-a"}

    ours = only(fleet).name
    assert [resolve_profile(here, word) for word in ("web-a", ours, "web-b", "")] == [
        ours,
        ours,
        "web-b",
        "",
    ]
    assert [each.profile for each in redeploy(here, resolve_profile(here, "web-a"))] == [ours]
    assert [each.number for each in list_revisions(here, resolve_profile(here, "web-a"))] == [1]
    assert names(east) == ["for-a"]


def test_another_name_moves_nothing(fleet: Fleet, east: FakeKube) -> None:
    """The add-ons stay, by the new name; the old one is free."""
    fleet.apply(naming())
    add_service(fleet, "a")
    noted = record_acts(east)
    fleet.deploy(trigger(more="profileNameFormat: 'new-{{ .Resource.metadata.name }}'"))

    assert titles(fleet) == [("new-a", "")]
    assert noted == []
    assert fleet.records.titles.get("ClusterProfile", "web-a") is None

    fleet.deploy(trigger())
    assert titles(fleet) == [("", "")]
    assert shown(fleet) == [only(fleet).name]
    assert fleet.records.titles.get("ClusterProfile", "new-a") is None


def test_one_name_for_two_objects_is_refused(fleet: Fleet, east: FakeKube) -> None:
    """The first profile has it; when that is deleted, the other one is deployed."""
    fleet.apply(naming(by="same"))
    first = add_service(fleet, "a")
    add_service(fleet, "b")
    refused = (
        "cannot generate ClusterProfile 'same': trigger 'made' has generated it for 'fleet/east';"
        " give one of the two another name"
    )
    assert titles(fleet) == [("", refused), ("same", "")]
    assert names(east) == ["for-a"]
    assert any(
        "ClusterProfile 'same'" in each.message for each in list_failures(fleet.installation())
    )

    fleet.drop("east", first)
    fleet.pump()
    assert titles(fleet) == [("same", "")]
    assert names(east) == ["for-b"]


def test_a_name_that_users_gave_is_refused(fleet: Fleet, east: FakeKube) -> None:
    """As long as theirs is there; what was there before stays, by the name that it had."""
    fleet.apply(profile("clusterRefs: []", name="web-a"), naming())
    add_service(fleet, "a")
    assert names(east) == []
    assert "one of that name was applied; delete it" in only(fleet).error

    rig.delete(fleet, ("ClusterProfile", "", "web-a"))
    fleet.pump()
    assert titles(fleet) == [("web-a", "")]
    assert names(east) == ["for-a"]

    fleet.deploy(profile("clusterRefs: []", name="web-a"))
    assert "one of that name was applied; delete it" in only(fleet).error
    assert (only(fleet).title, names(east)) == ("web-a", ["for-a"])


@pytest.mark.parametrize("wrong", ["Web_{{ .Resource.metadata.name }}", "a/b", "''"])
def test_an_invalid_name_is_refused(fleet: Fleet, east: FakeKube, wrong: str) -> None:
    """With the field, and nothing is deployed; an empty one selects nothing."""
    fleet.apply(naming(by=wrong if wrong == "''" else f"'{wrong}'"))
    add_service(fleet, "a")

    if wrong == "''":
        assert titles(fleet) == [("", "")]
        return
    assert only(fleet).error.startswith("profileNameFormat: cannot name the ClusterProfile: '")
    assert names(east) == []


def test_others_come_after_it(fleet: Fleet, east: FakeKube) -> None:
    """By its name, once it is done; it does not stay after its event."""
    noted = record_acts(east)
    fleet.deploy(written("apps", "web-a"))
    assert phase(fleet, "apps") == ("Provisioning", "Waiting")
    assert "'web-a', which is not there" in fleet.status_of("apps").message

    fleet.apply(naming())
    first = add_service(fleet, "a")
    assert noted == ["+for-a", "+apps"]
    assert phase(fleet, "apps") == ("Provisioned", "")

    fleet.drop("east", first)
    fleet.pump()
    assert noted == ["+for-a", "+apps", "-for-a"]
    assert phase(fleet, "apps") == ("Provisioned", "")

    rig.delete(fleet, ("ClusterProfile", "", "apps"))
    fleet.pump()
    assert noted == ["+for-a", "+apps", "-for-a", "-apps"]
    assert not list(fleet.store.query("waiting/fleet/east"))
    assert not list(fleet.store.query("needing/fleet/east"))


def test_it_counts_only_where_it_is_deployed(fleet: Fleet, east: FakeKube) -> None:
    """A dependent in a cluster that it does not select waits, and says why."""
    west = fleet.register("west", env="staging")
    both = "clusterSelector: {matchExpressions: [{key: env, operator: Exists}]}"
    fleet.apply(naming(), written("apps", "web-a", selected=both))
    add_service(fleet, "a")

    assert names(east) == ["apps", "for-a"]
    assert names(west) == []
    assert (
        "'web-a', which does not go to this cluster"
        in fleet.status_of("apps", "fleet/west").message
    )


@pytest.mark.rest
@pytest.mark.parametrize("offset", [0, 50, 100][::SHARE])
def test_death_at_any_step_leaves_one_name_and_one_order(tmp_path: Path, offset: int) -> None:
    """A worker dies before each step of it, and its message comes again."""
    doom, died = offset, True
    while died:
        doom += 150
        fleet = Fleet(tmp_path / f"{doom}")
        east = fleet.register("east", env="production")
        fleet.apply(join(source(), naming(by="same"), written("apps", "same")))
        fate = rig.make_mortal(fleet)
        fate.doom(doom)
        died = False
        first = service("a")
        for act, given in ((fleet.write, first), (fleet.write, service("b")), (fleet.drop, first)):
            if act == fleet.drop:
                first |= next(each for each in east.objects(SERVICE) if _name(each) == "a")
            try:
                act("east", given)
                fleet.pump()
            except Killed:
                died = True
                fate.revive()
                fleet.reread()
                act("east", given)
        fate.revive()
        rig.settle(fleet, 4)

        assert [each for each in titles(fleet) if each[0]] == [("same", "")]
        (named,) = [each for each in fleet.records.profiles.of("made") if each.title]
        title = fleet.records.titles.get("ClusterProfile", "same")
        assert title
        assert title.value.profile == named.name == place(named).name
        assert names(east) == ["apps", "for-b"]
        fleet.close()
