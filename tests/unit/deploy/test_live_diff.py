"""Comparing what is deployed with the clusters themselves, which records cannot answer for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bellhop.deploy.object_diff import NOT_COMPARED
from bellhop.operations.previews import preview_now
from tests.fakes.fleet import Fleet
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile
from tests.fakes.releases import charts

Previewed = dict[str, tuple[str, str]]


def preview(fleet: Fleet, name: str = "own", *, live: bool) -> Previewed:
    found = list(preview_now(fleet.installation(), name, live=live))
    return {each.change.key.name: (each.change.action, each.change.message) for each in found}


def test_changes_by_hand_are_shown_only_live(fleet: Fleet, east: FakeKube) -> None:
    """An object that somebody changed, one that somebody deleted, and one as it was applied."""
    fleet.deploy(join(profile(), holder("own", *(config(each, "v: '1'") for each in "abc"))))
    (changed,) = (each for each in east.objects(CONFIG) if each["metadata"]["name"] == "a")
    east.put({**changed, "data": {"v": "by hand"}})
    east.drop(CONFIG, "default", "b")
    east.calls.clear()

    assert preview(fleet, live=False) == dict.fromkeys("abc", ("No Action", NOT_COMPARED))
    assert preview(fleet, live=True) == {
        "a": ("Update", "2 lines"),
        "b": ("Create", ""),
        "c": ("No Action", "it is as it is wanted"),
    }
    assert all(each.dry_run for each in east.calls if each.verb == "apply")


def test_a_profile_that_is_deployed_once_is_compared_live(fleet: Fleet, east: FakeKube) -> None:
    """Nothing reverts what others change of it but a redeployment, which this previews."""
    fleet.deploy(join(profile(more="syncMode: OneTime"), holder("own", config("a", "v: '1'"))))
    east.drop(CONFIG, "default", "a")

    assert preview(fleet, live=False) == {}
    assert preview(fleet, live=True) == {"a": ("Create", "")}


def test_objects_of_a_release_are_compared_live(fleet: Fleet, east: FakeKube) -> None:
    """As it was deployed, then with an object that somebody changed, then without that object."""
    fleet.repositories.put("web", "1.0.0")
    fleet.deploy(charts())
    assert preview(fleet, "p", live=False) == {"web": ("No Action", NOT_COMPARED)}
    assert preview(fleet, "p", live=True) == {"web": ("No Action", "it is as it was deployed")}

    (there,) = east.objects(CONFIG)
    east.put({**there, "data": {**there["data"], "chart": "by hand"}})
    assert preview(fleet, "p", live=True) == {
        "web": ("Update", "objects of it differ"),
        "web-config": ("Update", "2 lines"),
    }

    east.drop(CONFIG, "apps", "web-config")
    assert preview(fleet, "p", live=True) == {
        "web": ("Update", "objects of it differ"),
        "web-config": ("Create", "it is missing in the cluster"),
    }


@pytest.mark.usefixtures("east")
def test_a_release_that_somebody_removed_or_deployed_is_shown_live(fleet: Fleet) -> None:
    """Helm's own record says so, whatever Bellhop's records have."""
    fleet.repositories.put("web", "1.0.0")
    fleet.deploy(charts())
    releases = fleet.charts.releases
    (key, deployed), *_ = releases.items()
    releases[key] = replace(deployed, revision=2)
    assert preview(fleet, "p", live=True) == {
        "web": ("Update", "somebody deployed revision 2 after revision 1")
    }
    del releases[key]
    assert preview(fleet, "p", live=True) == {"web": ("Create", "somebody uninstalled it")}
