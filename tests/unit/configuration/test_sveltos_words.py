"""What clients of Sveltos recognize in summaries: its words, and the state that it would be in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from bellhop.configuration.mirrors import list_mirrors
from bellhop.errors import DeniedError
from tests.fakes.fleet import Fleet
from tests.fakes.hosted import hosted, local, management, two
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile
from tests.unit.configuration.hub import Hub
from tests.unit.configuration.test_writer import SUMMARY

EAST = "fleet/east"


def summarize(fleet: Fleet, cluster: str = EAST) -> dict[str, Any]:
    """Return the ClusterSummary of the profile in a cluster."""
    found = list_mirrors(fleet.installation(), "ClusterProfile", "", "own", cluster=cluster)
    [summary] = [each for each in found if each["kind"] == "ClusterSummary"]
    return summary


def read_feature(fleet: Fleet, cluster: str = EAST) -> dict[str, Any]:
    [feature] = summarize(fleet, cluster)["status"]["featureSummaries"]
    return dict(feature)


def test_a_conflict_is_named_as_sveltos_names_it(fleet: Fleet, east: FakeKube) -> None:
    """Before what Bellhop says of it."""
    assert east.version()
    first = "{kind: ConfigMap, name: own, namespace: default}"
    second = first.replace("own", "b")
    two_refs = profile().replace(first, f"{first}, {second}")
    one, other = (holder(name, config("x", f"v: {name}")) for name in ("own", "b"))

    fleet.deploy(join(two_refs, one, other))

    message = read_feature(fleet)["failureMessage"]
    assert message.startswith("A conflict was detected while deploying resource: cannot apply")


def test_a_summary_fails_with_what_is_local_for_its_cluster(fleet: Fleet) -> None:
    """Though the cluster itself has all that is for it."""
    east, _, mgmt = two(fleet)
    mgmt.fail_with(DeniedError("configmaps is forbidden"), "apply")

    fleet.deploy(join(local(), hosted(config("a"))))

    feature = read_feature(fleet)
    assert feature["status"].startswith("Failed")
    assert "is forbidden" in feature["failureMessage"]
    assert east.objects()

    mgmt.fail_with(None)
    fleet.wait(timedelta(hours=2))
    assert read_feature(fleet)["status"] == "Provisioned"


def test_a_deployment_of_local_parts_has_summaries_of_others_written(hub: Hub) -> None:
    """Nothing happens in these clusters."""
    mgmt = management(hub.fleet)
    mgmt.fail_with(DeniedError("configmaps is forbidden"), "apply")
    hub.write(join(local(), hosted(config("a"))))

    def read_status() -> str:
        [summary] = [
            each for each in hub.kube.objects(SUMMARY) if "east" in each["metadata"]["name"]
        ]
        return str(summary["status"]["featureSummaries"][0]["status"])

    assert read_status().startswith("Failed")
    mgmt.fail_with(None)
    hub.fleet.wait(timedelta(hours=2))
    assert read_status() == "Provisioned"


def test_with_one_time_a_summary_keeps_what_was_deployed(fleet: Fleet, east: FakeKube) -> None:
    """A later change of the profile has no effect there, however many follow."""
    assert east.version()
    once = profile(more="syncMode: OneTime")
    fleet.deploy(join(once, holder("own", config("a"))))
    deployed = summarize(fleet)["spec"]["clusterProfileSpec"]["policyRefs"]
    for number in range(2):
        fleet.clock.advance(timedelta(minutes=1))
        other = once.replace(
            "name: own, namespace: default}]", f"name: n{number}, namespace: default}}]"
        )
        fleet.deploy(join(other, holder(f"n{number}", config(f"b{number}"))))

    spec = summarize(fleet)["spec"]["clusterProfileSpec"]

    assert spec["policyRefs"] == deployed
    assert spec["syncMode"] == "OneTime"
