"""Mirrors: what Bellhop writes beside users' objects, under the names of Sveltos."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from bellhop.configuration import reports
from bellhop.configuration.limits import TRUNCATED
from bellhop.configuration.mirrors import list_mirrors
from bellhop.errors import DeniedError, UnreachableError
from tests.fakes.fleet import Fleet, service
from tests.fakes.health import Watched, cluster_check, health_check
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
from tests.fakes.releases import charts
from tests.unit.configuration.test_status import CLASSIFIER, truths

OWN = join(profile(), holder("own", config("a", 'v: "1"'), config("b")))
EVENTS = join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "login", "namespace": "default"},
    "data": {"password": base64.b64encode(b"hunter2").decode()},
}


def mirrors(fleet: Fleet, kind: str, name: str, **more: Any) -> list[dict[str, Any]]:
    namespace = more.pop("namespace", "")
    return list(list_mirrors(fleet.installation(), kind, namespace, name, **more))


def kinds(found: Sequence[dict[str, Any]]) -> list[str]:
    return [each["kind"] for each in found]


def features(summary: dict[str, Any]) -> dict[str, str]:
    return {x["featureID"]: x["status"] for x in summary["status"]["featureSummaries"]}


# Profiles -----------------------------------------------------------------------------------------


def test_a_summary_has_the_name_labels_and_owner_of_sveltos(fleet: Fleet, east: FakeKube) -> None:
    """And the specification as it was written."""
    assert east.version()
    fleet.deploy(OWN)

    [summary] = mirrors(fleet, "ClusterProfile", "own", owner_uid="u-1")

    assert summary["kind"] == "ClusterSummary"
    assert summary["metadata"] == {
        "name": "own-sveltos-east",
        "namespace": "fleet",
        "labels": {
            "projectsveltos.io/cluster-profile-name": "own",
            "projectsveltos.io/cluster-name": "east",
            "projectsveltos.io/cluster-type": "Sveltos",
        },
        "ownerReferences": [
            {
                "apiVersion": "config.projectsveltos.io/v1beta1",
                "kind": "ClusterProfile",
                "name": "own",
                "uid": "u-1",
            }
        ],
    }
    spec = summary["spec"]
    assert (spec["clusterNamespace"], spec["clusterName"]) == ("fleet", "east")
    assert spec["clusterType"] == "Sveltos"
    assert spec["clusterProfileSpec"]["clusterSelector"] == {"matchLabels": {"env": "production"}}


def test_a_summary_of_a_profile_of_a_namespace_has_a_prefix(fleet: Fleet, east: FakeKube) -> None:
    """So that it meets none of a ClusterProfile."""
    assert east.version()
    text = profile(namespace="fleet").replace("namespace: default}]", "namespace: fleet}]")
    fleet.deploy(join(text, holder("own", config("a"), namespace="fleet")))

    [summary] = mirrors(fleet, "Profile", "own", namespace="fleet")

    assert summary["metadata"]["name"] == "p--own-sveltos-east"
    assert summary["metadata"]["labels"]["projectsveltos.io/profile-name"] == "own"


def test_a_provisioned_feature_has_its_kinds_and_time(fleet: Fleet, east: FakeKube) -> None:
    """There is no message of a failure."""
    assert east.version()
    fleet.deploy(OWN)

    [summary] = mirrors(fleet, "ClusterProfile", "own")

    [feature] = summary["status"]["featureSummaries"]
    assert (feature["featureID"], feature["status"]) == ("Resources", "Provisioned")
    assert feature["deployedGroupVersionKind"] == ["ConfigMap.v1."]
    assert feature["lastAppliedTime"].endswith("Z")
    assert feature["hash"]
    assert "failureMessage" not in feature
    assert "failureMessage" not in summary["status"]


def test_a_failed_feature_has_its_message_and_failures(fleet: Fleet, east: FakeKube) -> None:
    """And the time of the next attempt."""
    east.fail_with(UnreachableError("no route"), "apply")
    fleet.deploy(OWN)

    [summary] = mirrors(fleet, "ClusterProfile", "own")

    [feature] = summary["status"]["featureSummaries"]
    assert feature["status"] == "Failed"
    assert "no route" in feature["failureMessage"]
    assert feature["consecutiveFailures"] == fleet.status_of().failures
    assert summary["status"]["nextReconcileTime"].endswith("Z")


def test_a_template_that_fails_is_not_retriable(fleet: Fleet, east: FakeKube) -> None:
    """Until an input changes."""
    assert east.version()
    broken = holder("own", config("{{ .Nothing }}"), annotations="projectsveltos.io/template: ok")
    fleet.deploy(join(profile(), broken))

    [summary] = mirrors(fleet, "ClusterProfile", "own")

    assert features(summary) == {"Resources": "FailedNonRetriable"}


def test_a_profile_that_leaves_a_cluster_is_removed_there(fleet: Fleet, east: FakeKube) -> None:
    """Its summary stays until nothing is left."""
    fleet.deploy(OWN)
    east.fail_with(DeniedError("denied"), "remove")
    fleet.apply(profile("clusterRefs: []"))
    fleet.pump()

    leaving = mirrors(fleet, "ClusterProfile", "own")
    east.fail_with(None)
    fleet.wait(timedelta(hours=2))

    assert [each["metadata"]["name"] for each in leaving] == ["own-sveltos-east"]
    assert set(features(leaving[0]).values()) <= {"Removing", "Failed"}
    assert mirrors(fleet, "ClusterProfile", "own") == []


def test_a_profile_that_waits_for_another_names_it(fleet: Fleet, east: FakeKube) -> None:
    """In the field that Sveltos has for it."""
    east.fail_with(UnreachableError("no route"), "apply")
    first = join(profile(name="first"), holder("first", config("f")))
    fleet.deploy(first, join(profile(more="dependsOn: [first]"), holder("own", config("a"))))

    [summary] = mirrors(fleet, "ClusterProfile", "own")

    assert "first" in summary["status"]["dependencies"]


def test_a_release_is_managed_by_its_profile(fleet: Fleet, east: FakeKube) -> None:
    """One that another profile has is a conflict."""
    assert east.version()
    fleet.repositories.put("web", "1.0.0")
    fleet.deploy(charts("p"))
    fleet.deploy(charts("q"))

    [mine] = mirrors(fleet, "ClusterProfile", "p")
    [other] = mirrors(fleet, "ClusterProfile", "q")

    [release] = mine["status"]["helmReleaseSummaries"]
    assert (release["releaseNamespace"], release["releaseName"]) == ("apps", "web")
    assert (release["status"], release["chartVersion"]) == ("Managing", "1.0.0")
    assert release["repoURL"] == "https://charts.example.com"
    assert features(mine) == {"Helm": "Provisioned"}
    [release] = other["status"]["helmReleaseSummaries"]
    assert release["status"] == "Conflict"
    assert "ClusterProfile/p" in release["conflictMessage"]


def test_a_dry_run_has_a_report_beside_its_summary(fleet: Fleet, east: FakeKube) -> None:
    """With one action for each object."""
    assert east.version()
    fleet.deploy(join(profile(more="syncMode: DryRun"), holder("own", config("a"), config("b"))))

    found = mirrors(fleet, "ClusterProfile", "own")

    assert kinds(found) == ["ClusterSummary", "ClusterReport"]
    summary, report = found
    assert features(summary) == {"Resources": "Provisioning"}
    assert report["metadata"]["name"] == "own--sveltos--east"
    assert report["spec"] == {"clusterNamespace": "fleet", "clusterName": "east"}
    changes = report["status"]["resourceReports"]
    assert [(x["resource"]["name"], x["action"]) for x in changes] == [
        ("a", "Create"),
        ("b", "Create"),
    ]


def test_a_dry_run_of_a_chart_is_a_report_of_a_release(fleet: Fleet, east: FakeKube) -> None:
    """An API server refuses one without the name of its chart."""
    assert east.version()
    fleet.repositories.put("web", "1.0.0")
    fleet.deploy(charts("p", more="syncMode: DryRun"))

    _, report = mirrors(fleet, "ClusterProfile", "p")

    [release] = report["status"]["releaseReports"]
    assert (release["chartName"], release["action"]) == ("web", "Install")


# Generated profiles -------------------------------------------------------------------------------


def test_a_generated_profile_is_a_cluster_profile(fleet: Fleet, east: FakeKube) -> None:
    """It is found by its name, and by its trigger."""
    assert east.version()
    fleet.deploy(EVENTS)
    fleet.write("east", service("a"))
    fleet.pump()

    of_trigger = mirrors(fleet, "EventTrigger", "made")
    name = of_trigger[1]["metadata"]["name"]
    of_name = mirrors(fleet, "ClusterProfile", name)

    assert of_trigger == of_name
    assert kinds(of_name) == ["ConfigMap", "ClusterProfile", "ClusterSummary"]
    _, made, summary = of_name
    labels = made["metadata"]["labels"]
    assert labels["eventtrigger.lib.projectsveltos.io/eventtriggername"] == "made"
    assert made["spec"]["clusterRefs"][0]["name"] == "east"
    assert truths(made["status"])["Ready"] == "True"
    assert summary["spec"]["clusterProfileSpec"] == made["spec"]


def test_a_name_from_a_format_is_the_name_of_the_object(fleet: Fleet, east: FakeKube) -> None:
    """The stored name is of no use to users."""
    assert east.version()
    named = trigger(more="profileNameFormat: 'for-{{ .Resource.metadata.name }}'")
    fleet.deploy(join(source(), named, holder("made", config(FOR_EACH), annotations=INSTANTIATE)))
    fleet.write("east", service("a"))
    fleet.pump()

    _, made, summary = mirrors(fleet, "ClusterProfile", "for-a")

    assert made["metadata"]["name"] == "for-a"
    assert summary["metadata"]["name"] == "for-a-sveltos-east"


def test_a_profile_that_cannot_be_rendered_is_in_the_report(fleet: Fleet, east: FakeKube) -> None:
    """It has no object, and the message ends once it is rendered."""
    assert east.version()
    broken = holder("made", config("{{ .Resource.nothing }}"), annotations=INSTANTIATE)
    fleet.deploy(join(source(), trigger(), broken))
    fleet.write("east", service("a"))
    fleet.pump()

    assert mirrors(fleet, "EventTrigger", "made") == []
    [report] = mirrors(fleet, "EventSource", "watched")
    assert "nothing" in report["status"]["failureMessage"]

    fleet.deploy(holder("made", config(FOR_EACH), annotations=INSTANTIATE))

    [report] = mirrors(fleet, "EventSource", "watched")
    assert "failureMessage" not in report["status"]
    found = kinds(mirrors(fleet, "EventTrigger", "made"))
    assert found == ["ConfigMap", "ClusterProfile", "ClusterSummary"]


def test_a_profile_whose_object_is_deleted_has_no_object(fleet: Fleet, east: FakeKube) -> None:
    """Once nothing of it is left."""
    assert east.version()
    fleet.deploy(EVENTS)
    stored = fleet.write("east", service("a"))
    fleet.pump()
    fleet.drop("east", stored)
    fleet.wait(timedelta(minutes=5))

    assert mirrors(fleet, "EventTrigger", "made") == []


# Reports ------------------------------------------------------------------------------------------


def test_a_report_has_its_three_labels_and_its_objects(fleet: Fleet, east: FakeKube) -> None:
    """Whole, as the source asks."""
    assert east.version()
    fleet.deploy(EVENTS)
    fleet.write("east", service("a"))
    fleet.pump()

    [report] = mirrors(fleet, "EventSource", "watched")

    assert report["metadata"]["namespace"] == "fleet"
    assert report["metadata"]["name"] == "sveltos--watched--east"
    assert report["metadata"]["labels"] == {
        "projectsveltos.io/eventsource-name": "watched",
        "eventreport.projectsveltos.io/cluster-name": "east",
        "eventreport.projectsveltos.io/cluster-type": "sveltos",
    }
    [resource] = report["spec"]["matchingResources"]
    assert (resource["kind"], resource["name"]) == ("Service", "a")
    assert b'"targetPort":8080' in base64.b64decode(report["spec"]["resources"])
    assert report["status"] == {"phase": "Processed"}


def test_values_of_secrets_are_in_no_report(fleet: Fleet, east: FakeKube) -> None:
    """Of one that is collected only its keys are."""
    assert east.version()
    fleet.deploy(join(source("Secret"), trigger(), holder("made", config("m"))))
    fleet.write("east", SECRET)
    fleet.pump()

    [report] = mirrors(fleet, "EventSource", "watched")

    text = base64.b64decode(report["spec"]["resources"])
    assert b"password" in text
    assert base64.b64encode(b"hunter2") not in text


def test_what_a_script_makes_of_secrets_is_not_collected(fleet: Fleet, east: FakeKube) -> None:
    """Nobody can say where in it a value is."""
    assert east.version()
    script = """
  aggregatedSelection: |
    function evaluate()
      local found = {}
      for _, each in ipairs(resources) do
        table.insert(found, {apiVersion = "v1", kind = "ConfigMap", data = each.data,
          metadata = {name = "copy", namespace = "default"}})
      end
      return {resources = found}
    end
"""
    fleet.deploy(join(source("Secret") + script, trigger(), holder("made", config("m"))))
    fleet.write("east", SECRET)
    fleet.resync()
    fleet.wait(timedelta(minutes=1))

    [report] = mirrors(fleet, "EventSource", "watched")

    assert "resources" not in report["spec"]


def test_a_report_has_as_many_objects_as_fit(
    fleet: Fleet, east: FakeKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lists of names and of contents end at the same object."""
    assert east.version()
    fleet.deploy(EVENTS)
    for number in range(20):
        fleet.write("east", service(f"s{number:02}"))
    fleet.pump()
    monkeypatch.setattr(reports, "_MOST_COLLECTED", 2500)

    [report] = mirrors(fleet, "EventSource", "watched")

    number = len(report["spec"]["matchingResources"])
    assert 1 <= number < 20
    assert base64.b64decode(report["spec"]["resources"]).count(b"---") == number
    assert report["metadata"]["annotations"] == {TRUNCATED: f"{number} of 20"}


def test_a_source_is_reported_where_it_is_in_force(fleet: Fleet, east: FakeKube) -> None:
    """One cluster may be asked for."""
    assert east.version()
    fleet.register("west", env="production")
    fleet.register("lab", env="test")
    fleet.deploy(EVENTS)

    found = mirrors(fleet, "EventSource", "watched")

    assert {each["spec"]["clusterName"] for each in found} == {"east", "west"}
    [one] = mirrors(fleet, "EventSource", "watched", cluster="fleet/west")
    assert one["spec"]["clusterName"] == "west"
    assert mirrors(fleet, "EventSource", "watched", cluster="fleet/lab") == []


def test_a_classifier_has_a_report_of_each_cluster(fleet: Fleet, east: FakeKube) -> None:
    """Those that do not match have one, too."""
    assert east.version()
    fleet.deploy(CLASSIFIER.replace("GreaterThan", "LessThan"))
    fleet.resync()
    [report] = mirrors(fleet, "Classifier", "new")

    fleet.deploy(CLASSIFIER)
    fleet.resync()
    [matching] = mirrors(fleet, "Classifier", "new")

    assert report["metadata"]["name"] == "sveltos--new--east"
    assert report["spec"]["match"] is False
    assert matching["spec"]["match"] is True
    assert matching["status"]["managedLabels"] == ["age"]


def test_a_health_check_has_a_report_of_its_unhealthy_objects(tmp_path: Any) -> None:
    """With the words of its script."""
    fleet = Watched(tmp_path)
    fleet.register("east", env="production")
    fleet.deploy(health_check(), cluster_check())
    bad = service("bad")
    bad["metadata"]["annotations"] = {"state": "Degraded"}
    fleet.write("east", bad)
    fleet.resync()
    fleet.wait(timedelta(minutes=1), times=3)

    [report] = mirrors(fleet, "HealthCheck", "services")

    assert report["metadata"]["name"] == "sveltos--services--east"
    [resource] = report["spec"]["resourceStatuses"]
    assert resource["objectRef"]["name"] == "bad"
    assert (resource["healthStatus"], resource["message"]) == ("Degraded", "it says so")
    fleet.close()


def test_a_cluster_has_one_object_of_all_that_is_deployed(fleet: Fleet, east: FakeKube) -> None:
    """By profile and feature."""
    assert east.version()
    fleet.repositories.put("web", "1.0.0")
    fleet.deploy(OWN, charts("p"))

    [found] = mirrors(fleet, "SveltosCluster", "east", namespace="fleet")

    assert found["metadata"]["name"] == "sveltos--east"
    own, charted = found["status"]["clusterProfileResources"]
    assert [x["name"] for x in own["Features"][0]["resources"]] == ["a", "b"]
    assert charted["Features"][0]["charts"][0]["releaseName"] == "web"
    assert mirrors(fleet, "SveltosCluster", "west", namespace="fleet") == []


def test_other_kinds_have_no_mirrors(fleet: Fleet) -> None:
    """Nor has what is not there."""
    for kind in ("ClusterSet", "ClusterProfile", "EventTrigger", "EventSource", "HealthCheck"):
        assert mirrors(fleet, kind, "nothing") == []
