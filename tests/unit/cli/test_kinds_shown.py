"""get, describe and explain of sets, classifiers and role requests, each with its status."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from bellhop.extras.classifiers.records import Classification
from bellhop.extras.roles.manifests import with_account
from bellhop.installation import Installation
from bellhop.ports.store import ABSENT
from bellhop.state.cluster import Cluster
from bellhop.state.deployment import Inventory
from tests.fakes.clock import START
from tests.fakes.manifests import holder, join, profile, source, trigger
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop
from tests.unit.extras.test_role_requests import request, role

# ClusterSets --------------------------------------------------------------------------------------


SETS = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterSet
metadata: {name: active}
spec: {clusterSelector: env=production, maxReplicas: 1}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterSet
metadata: {name: named}
spec: {clusterRefs: [{namespace: fleet, name: west}]}
"""


@pytest.fixture
def with_sets(bellhop: Bellhop, here: Installation) -> Installation:
    """Two clusters, with_sets sets, and a trigger and a profile that name one of them."""
    for name in ("east", "west"):
        labels = {"env": "production"}
        here.declare.register(Cluster("fleet", name, labels, "v1.34.2", name, START))
    watching = trigger(more="").replace(
        "sourceClusterSelector: {matchLabels: {env: production}}", "clusterSetRefs: [active]"
    )
    rules = join(SETS, source(), watching, profile("setRefs: [active]"), holder("own"))
    assert bellhop("apply", "-f", "-", stdin=rules).exit_code == 0
    return here


def test_get_shows_who_has_a_place(bellhop: Bellhop, with_sets: Installation) -> None:
    """As a table, and as the status that Sveltos writes; that can be applied again."""
    assert with_sets.catalogs.current().sets
    assert bellhop("get", "clustersets", "-o", "wide").stdout.splitlines() == [
        "NAME     SELECTS          MATCHING   SELECTED   MAX   FAILING   CLUSTERS",
        "active   env=production   2          1          1     0         fleet/east",
        "named    fleet/west       1          1          -     0         fleet/west",
    ]

    shown = bellhop("get", "cs", "active", "-o", "yaml").stdout
    status = yaml.safe_load(shown)["status"]
    assert [each["name"] for each in status["selectedClusterRefs"]] == ["east"]
    assert [each["name"] for each in status["matchingClusterRefs"]] == ["east", "west"]
    assert "unchanged" in bellhop("apply", "-f", "-", stdin=shown).stdout


def test_describe_shows_who_could_have_it_and_who_names_it(
    bellhop: Bellhop, with_sets: Installation
) -> None:
    """The one that is chosen comes first."""
    assert with_sets.catalogs.current().sets
    output = bellhop("describe", "clusterset", "active").stdout
    lines = [" ".join(line.split()) for line in output.splitlines()]

    assert "fleet/east selected Unknown" in lines
    assert "fleet/west Unknown" in lines
    assert "EventTrigger made" in output
    assert "ClusterProfile own" in output
    assert "ClusterSet active" in bellhop("describe", "eventtrigger", "made").stdout


def test_explain_says_who_has_the_place(bellhop: Bellhop, with_sets: Installation) -> None:
    """Of a cluster that could be chosen, and of one that the set does not select."""
    with_sets.declare.register(Cluster("fleet", "other", {}, "v1.34.2", "other", START))
    output = " ".join(bellhop("explain", "eventtrigger", "made").stdout.split())

    assert "its clusterSetRefs take it" in output
    assert "ClusterSet 'active' has other clusters, as many as its maxReplicas says" in output
    assert "its clusterSetRefs name 'active', of which none selects the cluster" in output


def test_a_set_that_goes_is_missed(bellhop: Bellhop, with_sets: Installation) -> None:
    """`show failures` names it with each who names it."""
    assert with_sets.catalogs.current().sets
    assert "there is no ClusterSet" not in bellhop("show", "failures").stdout
    assert bellhop("delete", "clusterset", "active").exit_code == 0

    output = " ".join(bellhop("show", "failures").stdout.split())

    assert output.count("there is no ClusterSet 'active', which it names") == 2


# Classifiers --------------------------------------------------------------------------------------


GPU = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: Classifier
metadata: {name: gpu}
spec:
  kubernetesVersionConstraints: [{comparison: GreaterThan, version: '1.30'}]
  deployedResourceConstraint:
    resourceSelectors: [{group: apps, version: v1, kind: DaemonSet, name: nvidia}]
  classifierLabels: [{key: accelerator, value: nvidia}, {key: tier, value: fast}]
"""


@pytest.fixture
def classified(bellhop: Bellhop, here: Installation) -> Installation:
    """Two clusters, of which one satisfies a classifier and lacks one of its labels."""
    for name in ("east", "west"):
        here.declare.register(Cluster("fleet", name, {"tier": "slow"}, "v1.34.2", name, START))
    assert bellhop("apply", "-f", "-", stdin=GPU).exit_code == 0
    found = Classification(("gpu",), lacks={"gpu tier": "somebody has set it, and it stays"})
    here.records.classified.put("fleet/east", found, expect=ABSENT)
    here.records.classified.put("fleet/west", Classification(open=("gpu",)), expect=ABSENT)
    return here


def test_get_shows_who_satisfies_it(bellhop: Bellhop, classified: Installation) -> None:
    """As a table, and as the status that Sveltos writes."""
    assert classified.catalogs.current().classifiers
    assert bellhop("get", "classifiers", "-o", "wide").stdout.splitlines() == [
        "NAME   LABELS                         MATCHING   LACKING   CLUSTERS",
        "gpu    accelerator=nvidia,tier=fast   1          1         fleet/east",
    ]

    shown = yaml.safe_load(bellhop("get", "cf", "gpu", "-o", "yaml").stdout)
    [status] = shown["status"]["machingClusterStatuses"]
    assert status["clusterRef"]["name"] == "east"
    assert status["managedLabels"] == ["accelerator"]
    assert [each["key"] for each in status["unManagedLabels"]] == ["tier"]


def test_describe_reports_where_and_why_not(bellhop: Bellhop, classified: Installation) -> None:
    """Of each cluster that it is asked of how it stands there."""
    assert classified.catalogs.current().classifiers
    said = bellhop("describe", "classifier", "gpu").stdout

    assert "GreaterThan 1.30" in said
    assert "apps/v1/DaemonSet" in said
    assert "satisfies it" in said
    assert "waits for a resync" in said
    assert "somebody has set it, and it stays" in said


def test_failures_report_labels_that_cannot_be_given(
    bellhop: Bellhop, classified: Installation
) -> None:
    """In a sentence that names the first cluster."""
    assert classified.catalogs.current().classifiers
    said = bellhop("show", "failures", "-o", "json").stdout

    assert "it cannot give cluster 'fleet/east' the label 'tier': somebody has set it" in said


def test_describe_cluster_names_the_classifier(bellhop: Bellhop, classified: Installation) -> None:
    """Its sources are in force there without a trigger, and are no EventReports."""
    assert classified.catalogs.current().classifiers

    assert "by Classifier gpu" in bellhop("describe", "cluster", "fleet/east").stdout
    assert "gpu" not in bellhop("get", "eventreports").stdout


def test_a_script_that_is_none_is_refused_with_its_place(bellhop: Bellhop, tmp_path: Path) -> None:
    """In a selector, or for all resources; the line is that of the script."""
    file = tmp_path / "broken.yaml"
    text = GPU.replace(
        "name: nvidia}]", "evaluate: 'function ('}]\n    aggregatedClassification: end"
    )
    file.write_text(text)
    found = bellhop("apply", "-f", str(file))

    assert found.exit_code == 2
    assert "spec.deployedResourceConstraint.resourceSelectors[0].evaluate" in found.stderr
    assert "spec.deployedResourceConstraint.aggregatedClassification" in found.stderr


# RoleRequests -------------------------------------------------------------------------------------


NAME = "RoleRequest:anns"
DENIED = "cannot apply Role 'team/writes-1' on cluster 'fleet/west': it is forbidden"


@pytest.fixture
def with_request(bellhop: Bellhop, here: Installation) -> Installation:
    """A cluster that has the rights, and one that refuses them."""
    for name in ("east", "west"):
        labels = {"env": "production"}
        here.declare.register(Cluster("fleet", name, labels, "v1.34.2", name, START))
    rules = f"{request()}---\n{holder('roles', role())}"
    assert bellhop("apply", "-f", "-", stdin=rules).exit_code == 0
    clusters = ("fleet/east", "fleet/west")
    own = {"name": NAME, "trigger": "", "cluster": "", "object": "", "destinations": clusters}
    here.records.profiles.put(fleet.profile(**own, contents=with_account((), "team/ann")))
    mine = {"profile": NAME, "trigger": "", "source": ""}
    here.records.outcomes.put(fleet.outcome(**mine, cluster="fleet/east", phase="Provisioned"))
    failed = {"phase": "Failed", "reason": "Denied", "message": DENIED}
    here.records.outcomes.put(fleet.outcome(**mine, cluster="fleet/west", **failed))
    return here


def test_get_shows_whose_rights_and_where(bellhop: Bellhop, with_request: Installation) -> None:
    """As a table, by each of its names, and as the manifest with its status."""
    for name in ("rolerequests", "rolerequest", "rr"):
        assert bellhop("get", name).stdout.splitlines() == [
            "NAME   ACCOUNT    PROVISIONED   STATE",
            "anns   team/ann   1/2           Failed",
        ]

    shown = yaml.safe_load(bellhop("get", "rr", "anns", "-o", "yaml").stdout)
    assert shown["spec"]["serviceAccountName"] == "ann"
    assert [each["name"] for each in shown["status"]["matchingClusters"]] == ["east", "west"]
    assert bellhop("get", "clusterprofiles", "-o", "name").stdout == ""
    assert bellhop("get", "rr", "-o", "name").stdout == ("rolerequest.lib.projectsveltos.io/anns\n")
    assert with_request.catalogs.current().profiles.keys() == {NAME}


def test_describe_and_failures_report_what_was_refused(
    bellhop: Bellhop, with_request: Installation
) -> None:
    """With the cluster, and the kind by which people know it."""
    said = bellhop("describe", "rolerequest", "anns").stdout
    for each in ("Account", "team/ann", "ServiceAccount team/ann", DENIED):
        assert each in said

    assert f"{NAME} to fleet/west" in bellhop("show", "failures", "-o", "json").stdout
    assert with_request.catalogs.current().profiles


def test_one_that_nobody_deployed_yet_is_shown(bellhop: Bellhop, here: Installation) -> None:
    said = bellhop("apply", "-f", "-", stdin=request())
    assert said.stdout == "rolerequest.lib.projectsveltos.io/anns created\n"
    assert "RoleRequest 'anns' selects no cluster" in said.stderr
    assert "ConfigMap 'default/roles', which is not there yet" in said.stderr

    assert bellhop("get", "rr").stdout.splitlines()[1].split() == [
        "anns",
        "team/ann",
        "0/0",
        "Provisioning",
    ]
    assert bellhop("delete", "rolerequest", "anns").exit_code == 0
    assert here.catalogs.current().profiles == {}


def test_one_on_its_way_out_is_shown(bellhop: Bellhop, with_request: Installation) -> None:
    with_request.records.profiles.put(
        replace(
            fleet.profile(
                name=NAME, trigger="", cluster="", object="", destinations=(), contents=()
            ),
            digest="",
            leaves=True,
        )
    )
    with_request.records.departures.begin(("", "", NAME), ("fleet/west",))
    with_request.records.inventories.put(Inventory("fleet/west", NAME, {}))
    assert bellhop("delete", "rr", "anns").exit_code == 0

    assert bellhop("get", "rr").stdout.splitlines()[1].startswith("anns ")


@pytest.mark.parametrize("word", ["RoleRequest/anns", "rolerequest/anns", "RoleRequest:anns"])
def test_commands_on_profiles_take_it_by_its_kind(
    bellhop: Bellhop, with_request: Installation, word: str
) -> None:
    """Without its kind the name is a ClusterProfile's."""
    assert bellhop("pause", word).stdout == "RoleRequest 'anns' paused.\n"
    assert bellhop("get", "rr").stdout.splitlines()[1].split()[-1] == "Paused"
    assert bellhop("resume", word).exit_code == 0
    assert bellhop("redeploy", word).exit_code == 0

    refused = bellhop("redeploy", "anns")
    assert refused.exit_code == 1
    assert "cannot redeploy profile 'anns'" in refused.stderr
    assert with_request.catalogs.current().profiles


def test_it_is_completed_by_its_kind(bellhop: Bellhop, with_request: Installation) -> None:
    words = {"COMP_WORDS": "bellhop pause ", "COMP_CWORD": "2"}
    said = bellhop(_BELLHOP_COMPLETE="bash_complete", **words).stdout
    assert "RoleRequest/anns" in said
    assert with_request.catalogs.current().profiles
