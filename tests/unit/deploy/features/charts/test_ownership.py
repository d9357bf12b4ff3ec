"""Releases that change owners, that others installed, or that are removed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.core.gvk import GVK, Identity
from bellhop.errors import (
    TemporaryError,
    UnreachableError,
)
from bellhop.ports.charts import DEPLOYED, Release
from tests.fakes.fleet import Fleet
from tests.fakes.kept import require_value
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile
from tests.fakes.releases import TWO, chart, charts, data, held, outcome

KEY = ("fleet/east", "apps", "web")
THEIRS = Release("web", "apps", 1, DEPLOYED, "web", "1.0.0")
"""It has the revision and the chart of the one that the profile deployed."""

TAKEN = {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "apps"}


def test_two_profiles_that_want_a_release_are_in_conflict(fleet: Fleet, east: FakeKube) -> None:
    fleet.deploy(charts())
    fleet.deploy(charts("q", of=chart(values="replicas: two")))
    phase, message = outcome(fleet, "q")
    assert message.startswith(
        "cannot apply Release 'apps/web' to 'fleet/east': profile 'p' of tier 100 has it;"
    ), phase
    assert data(east)["web-config"]["replicas"] == "one"

    fleet.deploy(charts("q", of=chart(values="replicas: two"), more="tier: 50"))
    assert data(east)["web-config"]["replicas"] == "two"
    assert outcome(fleet, "q")[0] == "Provisioned"
    assert "has it" in outcome(fleet, "p")[1]
    assert held(fleet, "p") == set()


@pytest.mark.usefixtures("east")
def test_a_release_is_handed_over_to_the_profile_that_waits_for_it(fleet: Fleet) -> None:
    """Renaming a profile keeps the data of its charts."""
    fleet.deploy(charts())
    fleet.deploy(charts("q"))
    fleet.apply(charts().replace("production", "nowhere"))
    assert list(fleet.records.removals.all()) == []
    fleet.pump()

    assert fleet.charts.removals == []
    assert held(fleet) == set()
    assert held(fleet, "q") == {"helm.sh/Release/apps/web", "/ConfigMap/apps/web-config"}
    assert outcome(fleet, "q") == ("Provisioned", "")

    fleet.apply(charts("q").replace("production", "nowhere"))
    fleet.release()
    fleet.pump()
    assert fleet.charts.releases == {}
    assert list(fleet.records.owners.of("fleet/east")) == []


@pytest.mark.usefixtures("east")
def test_a_profile_that_only_tries_to_have_a_release_has_it_not_deployed_again(
    fleet: Fleet,
) -> None:
    fleet.deploy(charts())
    fleet.apply(charts("q", of=chart(version="9.9.9"), more="tier: 50"))
    for _ in range(3):
        fleet.pump()
        fleet.clock.advance(timedelta(minutes=30))
    assert "cannot find chart" in outcome(fleet, "q")[1]
    assert outcome(fleet) == ("Provisioned", "")
    assert len(fleet.charts.deployed) == 1


def test_a_profile_that_only_tries_to_have_an_object_has_no_chart_deployed_again(
    fleet: Fleet, east: FakeKube
) -> None:
    fleet.deploy(charts())
    other = holder("b", config("web-config", 'v: "1"', namespace="apps"))
    fleet.apply(join(profile(name="b", more="tier: 50"), other))
    for _ in range(3):
        fleet.pump()
        fleet.clock.advance(timedelta(minutes=30))
    assert "it already exists" in outcome(fleet, "b")[1]
    assert len(fleet.charts.deployed) == 1

    force = "policyRefs: [{kind: ConfigMap, name: b, namespace: default, force: true}]"
    usual = "policyRefs: [{kind: ConfigMap, name: b, namespace: default}]"
    fleet.deploy(profile(name="b", more="tier: 50").replace(usual, force))
    assert outcome(fleet, "b") == ("Provisioned", "")
    assert data(east)["web-config"]["v"] == "1"
    assert len(fleet.charts.deployed) == 1

    fleet.declare.delete([("ClusterProfile", "", "b")])
    fleet.release()
    fleet.pump()
    assert len(fleet.charts.deployed) == 2
    key = Identity("", "ConfigMap", "apps", "web-config")
    owner = require_value(fleet.records.owners.get("fleet/east", key))
    assert owner.profile == "p"


@pytest.mark.usefixtures("east")
def test_a_foreign_release_is_taken_over_only_on_request(fleet: Fleet) -> None:
    theirs = Release("web", "apps", 4, DEPLOYED, "other", "0.1.0")
    fleet.charts.releases["fleet/east", "apps", "web"] = theirs
    fleet.deploy(charts())
    assert outcome(fleet)[1].startswith(
        "cannot deploy the release 'apps/web': it already exists, from other 0.1.0, and no profile"
        " made it; to take it over, set options.installOptions.takeOwnership in helmCharts[0]"
    )
    assert fleet.charts.releases["fleet/east", "apps", "web"] == theirs

    fleet.deploy(charts(of=chart("options: {installOptions: {takeOwnership: true}}")))
    assert outcome(fleet) == ("Provisioned", "")
    assert fleet.charts.releases["fleet/east", "apps", "web"].revision == 5


@pytest.mark.usefixtures("east")
def test_a_release_of_sveltos_is_upgraded_where_its_profile_takes_over(fleet: Fleet) -> None:
    """As `bellhop import sveltos --into-cluster` has it: no spec asks for it."""
    theirs = Release("web", "apps", 4, DEPLOYED, "web", "0.1.0")
    fleet.charts.releases["fleet/east", "apps", "web"] = theirs

    fleet.deploy(
        charts().replace("{name: p}", "{name: p, annotations: {bellhop.dev/adopt-from: x}}")
    )

    assert outcome(fleet) == ("Provisioned", "")
    assert fleet.charts.releases["fleet/east", "apps", "web"].revision == 5


@pytest.mark.usefixtures("east")
def test_a_foreign_release_stays_after_a_deployment_without_answer(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Release("web", "apps", 4, DEPLOYED, "other", "0.1.0")
    fleet.charts.releases["fleet/east", "apps", "web"] = theirs

    def silent(*_: object) -> None:
        raise UnreachableError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(fleet.charts, "release", silent)
        fleet.deploy(charts())
    fleet.wait(timedelta(minutes=20))
    assert "no profile made it" in outcome(fleet)[1]
    fleet.deploy(charts(of="policyRefs: []"))

    assert fleet.charts.releases["fleet/east", "apps", "web"] == theirs
    assert held(fleet) == set()


def test_a_chart_that_is_not_wanted_any_more_is_removed(fleet: Fleet, east: FakeKube) -> None:
    fleet.deploy(charts(of=TWO))
    assert set(data(east)) == {"web-config", "second-config"}
    assert [each.name for each in fleet.charts.deployed] == ["web", "second"]

    fleet.deploy(charts())
    assert set(data(east)) == {"web-config"}


@pytest.mark.usefixtures("east")
def test_a_release_is_removed_where_its_profile_asks_for_that(fleet: Fleet) -> None:
    fleet.charts.releases["fleet/east", "apps", "web"] = Release(
        "web", "apps", 1, DEPLOYED, "web", "0.9.0"
    )
    fleet.deploy(charts(of=chart("helmChartAction: Uninstall")))
    assert fleet.charts.releases == {}
    assert outcome(fleet) == ("Provisioned", "")

    fleet.pump()
    fleet.deploy(charts(of=chart("helmChartAction: Uninstall"), more="tier: 90"))
    assert len(fleet.charts.removals) == 1


def test_leave_policies_leaves_releases(fleet: Fleet, east: FakeKube) -> None:
    fleet.deploy(charts(more="stopMatchingBehavior: LeavePolicies"))
    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.release()
    fleet.pump()
    assert set(data(east)) == {"web-config"}
    assert held(fleet) == set()


@pytest.mark.usefixtures("east")
def test_a_profile_that_is_deleted_while_helm_waits_is_removed_at_once(fleet: Fleet) -> None:
    """Helm is asked to end, its worker removes what it began, and the profile may come again."""

    def delete() -> None:
        fleet.declare.delete([("ClusterProfile", "", "p")])
        fleet.release()
        fleet.pump()

    fleet.charts.meanwhile = [delete]
    fleet.deploy(charts())
    assert fleet.charts.cancelled == ["web"]
    assert fleet.charts.releases == {}
    assert held(fleet) == set()
    assert outcome(fleet) == ("", "")

    fleet.deploy(charts())
    assert outcome(fleet) == ("Provisioned", "")


def test_objects_without_a_record_of_helm_are_removed_by_a_later_try(
    fleet: Fleet, east: FakeKube
) -> None:
    """Helm knows nothing of them any more, so the inventory must not forget them before."""
    fleet.deploy(charts(of=TWO))
    del fleet.charts.releases["fleet/east", "apps", "web"]
    east.fail_with(TemporaryError("not now"), "remove")
    fleet.deploy(charts(of=chart(name="second")))
    assert "not now" in outcome(fleet)[1]

    east.fail_with(None)
    fleet.wait(timedelta(minutes=30))
    assert set(data(east)) == {"second-config"}
    assert outcome(fleet) == ("Provisioned", "")


@pytest.mark.usefixtures("east")
def test_a_release_that_somebody_installed_again_stays_when_its_profile_goes(fleet: Fleet) -> None:
    fleet.deploy(charts())
    fleet.charts.releases[KEY] = THEIRS

    fleet.declare.delete([("ClusterProfile", "", "p")])
    fleet.release()
    fleet.pump()
    assert fleet.charts.releases[KEY] == THEIRS
    assert fleet.charts.removals == []
    assert held(fleet) == set()


@pytest.mark.usefixtures("east")
def test_a_release_that_somebody_installed_again_is_not_upgraded(fleet: Fleet) -> None:
    """It is a conflict, as one that was there before, until the profile is to take it over."""
    fleet.deploy(charts())
    fleet.charts.releases[KEY] = THEIRS

    fleet.deploy(charts(of=chart(version="1.1.0"), more="syncMode: DryRun"))
    kept = require_value(fleet.records.previews.get("fleet/east", "p"))
    assert [each.action for each in kept.changes] == ["Conflict"]

    fleet.deploy(charts(of=chart(version="1.1.0")))
    assert "no profile made it" in outcome(fleet)[1]
    assert fleet.charts.releases[KEY] == THEIRS
    assert held(fleet) == set()

    more = "options: {installOptions: {takeOwnership: true}}"
    fleet.deploy(charts(of=chart(more, version="1.1.0")))
    assert outcome(fleet) == ("Provisioned", "")
    assert fleet.charts.releases[KEY].revision == 2


@pytest.mark.parametrize("taken", [False, True])
def test_the_objects_of_a_release_without_a_record_are_removed(
    fleet: Fleet, east: FakeKube, *, taken: bool
) -> None:
    """But for those that have become another release's."""
    fleet.deploy(charts())
    del fleet.charts.releases[KEY]
    if taken:
        there = east.get(GVK("", "v1", "ConfigMap"), "apps", "web-config")
        assert there
        east.put({**there, "metadata": {**there["metadata"], "annotations": TAKEN}})

    fleet.declare.delete([("ClusterProfile", "", "p")])
    fleet.release()
    fleet.pump()
    assert set(data(east)) == ({"web-config"} if taken else set())
    assert held(fleet) == set()
