"""Generated profiles by names that their triggers chose: shown, asked for, refused, waited for."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bellhop.cli.addons import Wanted, addons
from bellhop.cli.views.profiles import VIEWS
from bellhop.cli.views.view import Query
from bellhop.core.gvk import GVK
from bellhop.diagnosis.failures import failures
from bellhop.diagnosis.names import meant
from bellhop.operations.redeployment import redeploy
from bellhop.operations.rollback import history
from bellhop.profiles.records.profiles import place
from bellhop.state.record import Profile
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
from tests.fakes.mortal import Fate, Killed
from tests.fakes.share import SHARE
from tests.unit.stages.test_order import EAST, acts, outcome, phase, written
from tests.unit.stages.test_sets import mortal
from tests.unit.stages.test_titles import settle

CONFIG = GVK("", "v1", "ConfigMap")
SERVICE = GVK("", "v1", "Service")
BY_NAME = "'web-{{ .Resource.metadata.name }}'"


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    fleet.apply(source())
    return fleet.register("east", env="production")


def naming(name: str = "made", *, by: str = BY_NAME, makes: str = FOR_EACH) -> str:
    """Return a trigger that names its profiles, and what it brings for each object."""
    return join(
        trigger(name, more=f"profileNameFormat: {by}"),
        holder(name, config(makes), annotations=INSTANTIATE),
    )


def ring(fleet: Fleet, name: str) -> dict[str, Any]:
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
    """Lists have it, commands take it, the ledger tells it; ours still means the same."""
    fleet.apply(naming())
    ring(fleet, "a")
    here = fleet.installation()
    assert shown(fleet) == ["web-a"]
    assert [row["profiles"] for row in addons(here, Wanted())] == [["ClusterProfile/web-a"]]
    told = {each.context.get("profile") for each in fleet.ledger() if each.what == "applied"}
    assert told == {"web-a"}

    ours = only(fleet).name
    assert [meant(here, word) for word in ("web-a", ours, "web-b", "")] == [ours, ours, "web-b", ""]
    assert [each.profile for each in redeploy(here, meant(here, "web-a"))] == [ours]
    assert [each.number for each in history(here, meant(here, "web-a"))] == [1]
    assert names(east) == ["for-a"]


def test_another_name_moves_nothing(fleet: Fleet, east: FakeKube) -> None:
    """What is there stays, by the new name; the old one is free."""
    fleet.apply(naming())
    ring(fleet, "a")
    noted = acts(east)
    fleet.apply(trigger(more="profileNameFormat: 'new-{{ .Resource.metadata.name }}'"))
    fleet.pump()

    assert titles(fleet) == [("new-a", "")]
    assert noted == []
    assert fleet.records.titles.get("ClusterProfile", "web-a") is None

    fleet.apply(trigger())
    fleet.pump()
    assert titles(fleet) == [("", "")]
    assert shown(fleet) == [only(fleet).name]
    assert fleet.records.titles.get("ClusterProfile", "new-a") is None


def test_one_name_for_two_objects_is_refused(fleet: Fleet, east: FakeKube) -> None:
    """Who came first has it; when that goes, the other one is brought."""
    fleet.apply(naming(by="same"))
    first = ring(fleet, "a")
    ring(fleet, "b")
    refused = (
        "cannot generate ClusterProfile 'same': trigger 'made' has generated it for 'fleet/east';"
        " give one of the two another name"
    )
    assert titles(fleet) == [("", refused), ("same", "")]
    assert names(east) == ["for-a"]
    assert any("ClusterProfile 'same'" in each.sentence for each in failures(fleet.installation()))

    fleet.drop("east", first)
    fleet.pump()
    assert titles(fleet) == [("same", "")]
    assert names(east) == ["for-b"]


def test_a_name_that_users_gave_is_refused(fleet: Fleet, east: FakeKube) -> None:
    """As long as theirs is there; what was there before stays, by the name that it had."""
    fleet.apply(profile("clusterRefs: []", name="web-a"), naming())
    ring(fleet, "a")
    assert names(east) == []
    assert "one of that name was applied; delete it" in only(fleet).error

    rig.delete(fleet, ("ClusterProfile", "", "web-a"))
    fleet.pump()
    assert titles(fleet) == [("web-a", "")]
    assert names(east) == ["for-a"]

    fleet.apply(profile("clusterRefs: []", name="web-a"))
    fleet.pump()
    assert "one of that name was applied; delete it" in only(fleet).error
    assert (only(fleet).title, names(east)) == ("web-a", ["for-a"])


@pytest.mark.parametrize("wrong", ["Web_{{ .Resource.metadata.name }}", "a/b", "''"])
def test_what_is_no_name_is_refused(fleet: Fleet, east: FakeKube, wrong: str) -> None:
    """With the field, and nothing is brought; an empty one chooses nothing."""
    fleet.apply(naming(by=wrong if wrong == "''" else f"'{wrong}'"))
    ring(fleet, "a")

    if wrong == "''":
        assert titles(fleet) == [("", "")]
        return
    assert only(fleet).error.startswith("profileNameFormat: cannot name the ClusterProfile: '")
    assert names(east) == []


def test_others_come_after_it(fleet: Fleet, east: FakeKube) -> None:
    """By its name, once it is done; it is kept by nobody when its event is over."""
    noted = acts(east)
    fleet.apply(written("apps", "web-a"))
    fleet.pump()
    assert phase(fleet, "apps") == ("Provisioning", "Waiting")
    assert "'web-a', which is not there" in outcome(fleet, "apps").message

    fleet.apply(naming())
    first = ring(fleet, "a")
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


def test_it_counts_where_it_goes_alone(fleet: Fleet, east: FakeKube) -> None:
    """Who comes after it in a cluster that it does not select waits, and is told why."""
    west = fleet.register("west", env="staging")
    both = "clusterSelector: {matchExpressions: [{key: env, operator: Exists}]}"
    fleet.apply(naming(), written("apps", "web-a", selected=both))
    ring(fleet, "a")

    assert names(east) == ["apps", "for-a"]
    assert names(west) == []
    assert (
        "'web-a', which does not go to this cluster" in outcome(fleet, "apps", "fleet/west").message
    )


@pytest.mark.rest
@pytest.mark.parametrize("offset", [0, 50, 100][::SHARE])
def test_death_at_any_step_leaves_one_name_and_one_order(tmp_path: Path, offset: int) -> None:
    """Whoever names, brings, or lets go dies before each thing it does, and comes again.

    It takes seconds: each death is played in an installation of its own.
    """
    doom, died = offset, True
    while died:
        doom += 150
        fleet = Fleet(tmp_path / f"{doom}")
        east, fate = fleet.register("east", env="production"), Fate()
        fleet.apply(join(source(), naming(by="same"), written("apps", "same")))
        rig.interpose(fleet, partial(mortal, fate))
        fleet.access.clusters = {EAST: east}
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
        settle(fleet)

        assert [each for each in titles(fleet) if each[0]] == [("same", "")]
        (named,) = [each for each in fleet.records.profiles.of("made") if each.title]
        title = fleet.records.titles.get("ClusterProfile", "same")
        assert title
        assert title.value.profile == named.name == place(named).name
        assert names(east) == ["apps", "for-b"]
        fleet.close()
