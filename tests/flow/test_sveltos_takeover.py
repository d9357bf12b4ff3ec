"""A management cluster of Sveltos is taken over in place, and given back; all objects stay."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from infra.lab.cluster import Cluster
from tests.docs.test_migrate_page import registered
from tests.fakes.manifests import INSTANTIATE, config, holder, profile, source, trigger
from tests.fakes.sveltos import (
    CONFIG_MAP,
    LIB,
    OWNED,
    PROFILE,
    SUMMARY,
    TRIGGER,
    Sveltos,
    full_definitions,
    wait_until_served,
)
from tests.flow.test_configured_clusters import OFTEN, Shell
from tests.unit.configuration.objects import kube_of
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(300)

SOURCE = GVK(LIB, "v1beta1", "EventSource")
DEPLOYMENT = GVK("apps", "v1", "Deployment")
DEPLOYED = ("made-web", "of-shop", "short")
FINALIZERS = {
    PROFILE: "clusterprofilefinalizer.projectsveltos.io",
    TRIGGER: "eventtrigger.finalizer.projectsveltos.io",
    SOURCE: "eventsource.finalizer.projectsveltos.io",
    SUMMARY: "clustersummaryfinalizer.projectsveltos.io",
}
TEAMS = source("Namespace", name="teams", more=", labelFilters: [{key: team, operation: Has}]")
OBJECTS = (
    *(profile(name="web"), holder("web", config("made-web", "a: b, c: d"))),
    *(profile(name="brief"), holder("brief", config("short"))),
    *(TEAMS, trigger("quota", origin="teams")),
    holder("quota", config("of-{{ .Resource.metadata.name }}"), annotations=INSTANTIATE),
)
READY = {"status": {"replicas": 1, "readyReplicas": 1}}
CONTROLLER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: addon-controller, namespace: projectsveltos}
spec:
  selector: {matchLabels: {app: sveltos}}
  template:
    metadata: {labels: {app: sveltos}}
    spec: {containers: [{name: manager, image: example.com/addon-controller}]}
"""


class Management(Sveltos):
    """Sveltos with its own definitions, whose objects have finalizers of its controllers."""

    def __init__(self, hub: KubeClient, east: KubeClient) -> None:
        super().__init__(hub, east, "shop")
        self.hub, self.east = hub, east

    def install(self) -> None:
        """Define the kinds, and wait until they are served."""
        for each in full_definitions():
            self.hub.apply(each)
        for kind in ("EventTrigger", "SveltosCluster", "ClusterProfile", "ClusterSummary"):
            wait_until_served(self.hub, kind)

    def reconcile(self) -> None:
        """Do once what the controllers do, and have objects wait for them at their end."""
        super().reconcile()
        for gvk, finalizer in FINALIZERS.items():
            for each in list(self.hub.list(gvk)):
                place = gvk, each["metadata"].get("namespace", ""), each["metadata"]["name"]
                self.hub.merge(*place, {"metadata": {"finalizers": [finalizer]}})

    def scale(self, status: dict[str, Any]) -> None:
        """Let the Deployment of a controller say how many of its pods are ready."""
        self.hub.apply(yaml.safe_load(CONTROLLER))
        self.hub.merge_status({**yaml.safe_load(CONTROLLER), **status}, uid="")

    def deployed(self) -> dict[str, str]:
        """Return the uid of each object that is deployed."""
        found = {name: self.east.get(CONFIG_MAP, "default", name) for name in DEPLOYED}
        return {name: each["metadata"]["uid"] for name, each in found.items() if each}

    def owners(self) -> list[str]:
        """Return by which profile each object is owned."""
        found = [self.east.get(CONFIG_MAP, "default", name) or {} for name in DEPLOYED]
        every = [each.get("metadata", {}).get("annotations", {}) for each in found]
        return [str(each.get(OWNED[1], "")) for each in every]


@pytest.fixture
def management(source_cluster: Cluster, destination_cluster: Cluster) -> Iterator[Management]:
    """A management cluster with a cluster fleet/east, to which all is deployed."""
    played = Management(kube_of(source_cluster), kube_of(destination_cluster))
    played.install()
    shop = {"name": "shop", "labels": {"team": "red"}}
    played.east.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": shop})
    for name in ("fleet", "projectsveltos"):
        played.hub.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for each in registered(destination_cluster):
        played.hub.apply(each if each["kind"] == "Secret" else {**each, "spec": {}})
    for text in OBJECTS:
        for each in yaml.safe_load_all(text):
            played.hub.apply(each)
    played.reconcile()
    yield played
    played.hub.close()
    played.east.close()


def test_bellhop_takes_it_over_and_gives_it_back(
    tmp_path: Path, source_cluster: Cluster, management: Management
) -> None:
    """Uids stay; what is deleted meanwhile is withdrawn, and leaves though Sveltos kept it."""
    shell, path = Shell(tmp_path / "state"), tmp_path / "kubeconfig"
    source_cluster.kubeconfig(path)
    before = management.deployed()
    assert before.keys() == set(DEPLOYED)
    take_over = "import sveltos --into-cluster mgmt/mgmt"
    with running(tmp_path / "state", OFTEN, Log(io.StringIO()), "127.0.0.1", 0):
        shell.type(f"register cluster mgmt/mgmt --no-forwarder --kubeconfig {path}")
        management.scale(READY)
        refused = shell.try_to(take_over)
        assert refused.exit_code == 1
        assert "scale them to zero" in " ".join(refused.stderr.split())
        management.scale({"status": {"replicas": 0, "readyReplicas": 0}})

        shell.type(take_over)
        eventually(
            lambda: f"{shell.type('get configuration')} {shell.type('show failures')}",
            lambda: management.owners()[1].startswith("quota-") and is_calm(shell),
            patience=60,
        )
        assert management.deployed() == before
        assert {(each["origin"], each["inForce"]) for each in rows(shell)} == {("mgmt/mgmt", True)}

        for each in yaml.safe_load_all(holder("web", config("made-web", "a: b"))):
            management.hub.apply(each)
        eventually("a field of Sveltos is removed", lambda: data_of(management) == {"a": "b"})
        management.hub.remove(PROFILE, "", "brief")
        eventually("it is withdrawn", lambda: "short" not in management.deployed())
        eventually("it is gone", lambda: management.hub.get(PROFILE, "", "brief") is None)
        left = [each["metadata"]["name"] for each in management.hub.list(SUMMARY)]
        assert "brief-sveltos-east" not in left

        shell.type("set configuration-cluster --clear --leave-policies")
        eventually("nothing is owned", lambda: management.owners()[:2] == ["", ""])
        assert shell.type("get clusterprofiles -o name") == ""

    del before["short"]
    assert management.deployed() == before
    web = management.hub.get(PROFILE, "", "web")
    summary = management.hub.get(SUMMARY, "fleet", "web-sveltos-east")
    for each, gvk in ((web, PROFILE), (summary, SUMMARY)):
        assert each
        assert FINALIZERS[gvk] in each["metadata"]["finalizers"]
        assert "deletionTimestamp" not in each["metadata"]
    management.reconcile()
    assert management.owners()[:2] == ["web", "sveltos-quota"]
    assert management.deployed() == before


def rows(shell: Shell) -> list[dict[str, Any]]:
    items = json.loads(shell.type("get configuration -o json"))["items"]
    return [each["status"] for each in items]


def is_calm(shell: Shell) -> bool:
    return "Failed" not in shell.type("get clusterprofiles") and len(rows(shell)) >= len(OBJECTS)


def data_of(management: Management) -> dict[str, str]:
    found = management.east.get(CONFIG_MAP, "default", "made-web")
    assert found
    return dict(found["data"])


PROMOTION = GVK(PROFILE.group, "v1beta1", "ClusterPromotion")
REFS = [{"kind": "ConfigMap", "namespace": "default", "name": "agent"}]
STAGES = [
    {
        "name": "first",
        "clusterSelector": {"matchLabels": {"env": "production"}},
        "trigger": {"manual": {"approved": False}},
    },
    {"name": "second", "clusterSelector": {"matchLabels": {"env": "none"}}},
]


def promote(management: Management) -> None:
    """Have Sveltos deploy a promotion that has left its first stage."""
    agent = {"apiVersion": PROMOTION.api_version, "kind": PROMOTION.kind}
    agent["metadata"] = {"name": "agent"}
    spec = {"profileSpec": {"policyRefs": REFS}, "stages": STAGES}
    management.hub.apply({**agent, "spec": spec})
    management.hub.merge_status({**agent, "status": {"currentStageName": "second"}}, uid="")
    stage = {"apiVersion": PROFILE.api_version, "kind": PROFILE.kind}
    labels = {"config.projectsveltos.io/promotionname": "agent"}
    stage["metadata"] = {"name": "agent-first", "labels": labels}
    spec = {"clusterSelector": STAGES[0]["clusterSelector"], "policyRefs": REFS}
    management.hub.apply({**stage, "spec": spec})
    management.hub.apply(yaml.safe_load(holder("agent", config("of-agent", "a: b"))))
    management.reconcile()


def find_agent(management: Management) -> dict[str, Any]:
    found = management.east.get(CONFIG_MAP, "default", "of-agent")
    return found["metadata"] if found else {}


def test_a_promotion_goes_on_at_the_stage_that_it_has_reached(
    tmp_path: Path, source_cluster: Cluster, management: Management
) -> None:
    """The first stage asks for no approval again, and its objects keep their uids."""
    wait_until_served(management.hub, "ClusterProfile")
    shell, path = Shell(tmp_path / "state"), tmp_path / "kubeconfig"
    source_cluster.kubeconfig(path)
    promote(management)
    before = find_agent(management)
    assert before["annotations"][OWNED[1]] == "agent-first"
    with running(tmp_path / "state", OFTEN, Log(io.StringIO()), "127.0.0.1", 0):
        shell.type(f"register cluster mgmt/mgmt --no-forwarder --kubeconfig {path}")
        shell.type("import sveltos --into-cluster mgmt/mgmt")
        eventually(
            lambda: f"{shell.type('get configuration')} {shell.type('show failures')}",
            lambda: "Empty" in shell.type("get promotions"),
            patience=60,
        )

        [agent] = json.loads(shell.type("get promotions -o json"))["items"]
        first, second = agent["status"]["stages"]
        assert (first["release"], first["currentStatusDescription"]) == (1, "Promoted")
        assert second["release"] == 1
        assert find_agent(management)["uid"] == before["uid"]
        assert "agent-first" not in shell.type("get configuration")

        for each in yaml.safe_load_all(holder("agent", config("of-agent", "a: c"))):
            management.hub.apply(each)
        eventually(
            "a new release is deployed in place",
            lambda: (
                (management.east.get(CONFIG_MAP, "default", "of-agent") or {}).get("data")
                == {"a": "c"}
            ),
        )
        assert find_agent(management)["uid"] == before["uid"]
        eventually("it waits", lambda: "AwaitingApproval" in shell.type("get promotions"))
