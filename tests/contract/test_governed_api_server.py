"""A real cluster's own controllers and deployed objects: other pods, and an end of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.state.messages import Resync
from infra.lab.cluster import Cluster
from tests.contract.real_cluster import EAST
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, join, profile
from tests.waiting import eventually

CONFIG, SECRET, NAMESPACE = (GVK("", "v1", kind) for kind in ("ConfigMap", "Secret", "Namespace"))
JOB = GVK("batch", "v1", "Job")
REVISIONS = (GVK("apps", "v1", "ReplicaSet"), GVK("apps", "v1", "ControllerRevision"))
KINDS = ("Deployment", "StatefulSet", "DaemonSet")
_PATIENCE_SECONDS = 30.0


def workload(kind: str) -> str:
    """Return a workload whose pods have a ConfigMap in their environment, and mount a Secret."""
    more = ", serviceName: web, replicas: 1" if kind == "StatefulSet" else ""
    return f"""
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {kind.lower()}, namespace: default}}
spec:
  {{selector: {{matchLabels: {{app: {kind.lower()}}}}}{more}, template: {{
    metadata: {{labels: {{app: {kind.lower()}}}}},
    spec: {{
      containers: [{{name: web, image: "web:1", envFrom: [{{configMapRef: {{name: settings}}}}]}}],
      volumes: [{{name: password, secret: {{secretName: password}}}}]}}}}}}
"""


@pytest.fixture
def kube(governed_cluster: Cluster) -> Iterator[KubeClient]:
    """A client of a cluster with controllers, where somebody has made what is read."""
    kubeconfig = sanitise(governed_cluster.kubeconfig(), reach=LOCAL)
    client = KubeClient(EAST, kubeconfig, reach=LOCAL)
    for kind, name in (("ConfigMap", "settings"), ("Secret", "password")):
        metadata = {"name": name, "namespace": "default"}
        client.apply({"apiVersion": "v1", "kind": kind, "metadata": metadata})
    yield client
    client.close()


def revisions(kube: KubeClient) -> Counter[str]:
    """Count what controllers have made of each workload; each of it has pods of its own."""
    made = (each for gvk in REVISIONS for each in kube.list(gvk, namespace="default"))
    return Counter(each["metadata"]["ownerReferences"][0]["kind"] for each in made)


def until_restarted(kube: KubeClient, times: int, *kinds: str) -> None:
    """Wait until workloads were restarted so often.

    Controllers look at the present state alone: of two changes in a row they may roll out the last.
    """
    expected = dict.fromkeys(kinds or KINDS, times + 1)
    eventually(
        lambda: f"{expected} revisions are made, and not {revisions(kube)}",
        lambda: revisions(kube) == expected,
        patience=_PATIENCE_SECONDS,
    )


def generations(kube: KubeClient) -> list[int]:
    """Return how often what each workload is to be was written: its API server counts that."""
    found = (kube.get(GVK("apps", "v1", kind), "default", kind.lower()) for kind in KINDS)
    return [each["metadata"]["generation"] for each in found if each]


def resync(fleet: Fleet) -> None:
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()


def test_a_checks_job_is_ended_by_its_timeout(fleet: Fleet, kube: KubeClient) -> None:
    """Kubernetes itself says so, and by which clock."""
    written = """
apiVersion: batch/v1
kind: Job
metadata: {name: smoke, namespace: default}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: smoke, image: "smoke:1"}]}}}
"""
    check = """validateHealths:
  - name: smoke
    featureID: Resources
    jobCheck: {jobRef: {name: smoke, namespace: default}, timeout: 1s}"""
    fleet.apply(profile(more=check), holder("own", config("a")), holder("smoke", written))
    fleet.pump()
    eventually(
        "the Job has failed",
        lambda: any(_failed(each) for each in kube.list(JOB, namespace="default")),
        patience=_PATIENCE_SECONDS,
    )
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()
    found = fleet.records.outcomes.get(EAST, "own")
    assert found
    assert "failed: DeadlineExceeded" in found.value.message


def _failed(job: dict[str, Any]) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Failed" for each in conditions)


def test_every_kind_of_workload_restarts_when_what_it_reads_changes(
    fleet: Fleet, kube: KubeClient
) -> None:
    """Once for each change, be it of a ConfigMap or a Secret; never for a deleted one."""
    content = holder("own", *map(workload, KINDS))
    fleet.apply(join(profile(more="reloader: true"), content))
    fleet.pump()
    until_restarted(kube, 0)

    assert kube.merge(CONFIG, "default", "settings", {"data": {"sky": "red"}})
    resync(fleet)
    until_restarted(kube, 1)
    assert kube.merge(SECRET, "default", "password", {"stringData": {"word": "hidden"}})
    resync(fleet)
    until_restarted(kube, 2)

    before = generations(kube)
    assert before == [3, 3, 3]
    assert kube.remove(SECRET, "default", "password") == {}
    assert kube.merge(CONFIG, "default", "settings", {"metadata": {"labels": {"tint": "dark"}}})
    resync(fleet)
    fleet.apply(join(content, holder("more", config("more"))))
    fleet.pump()
    assert generations(kube) == before


def test_a_deployed_change_restarts_workloads_at_once(fleet: Fleet, kube: KubeClient) -> None:
    """Its own or another's, by one restart each; what changes nothing that is read does not."""
    for gvk, name in ((CONFIG, "settings"), (SECRET, "password")):
        kube.remove(gvk, "default", name)
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {{name: password}}\nstringData: {{v: '{}'}}\n"
    web, reloads = workload("Deployment"), profile(more="reloader: true")
    fleet.apply(join(profile(name="its"), holder("its", secret.format(1))))
    fleet.apply(join(reloads, holder("own", config("settings", "v: '1'"), web)))
    fleet.pump()
    assert generations(kube) == [1]
    until_restarted(kube, 0, "Deployment")

    fleet.apply(holder("its", secret.format(2)))
    fleet.pump()
    assert generations(kube) == [2]
    until_restarted(kube, 1, "Deployment")
    fleet.apply(holder("own", config("settings", "v: '2'"), web))
    fleet.pump()
    assert generations(kube) == [3]
    until_restarted(kube, 2, "Deployment")
    fleet.apply(holder("own", config("settings", "v: '2'"), web, config("more")))
    fleet.pump()
    resync(fleet)
    assert generations(kube) == [3]


def test_nothing_restarts_that_does_not_ask(fleet: Fleet, kube: KubeClient) -> None:
    """What its pods read may change as it likes; it restarts when its own pods change."""
    fleet.apply(join(profile(), holder("own", workload("StatefulSet"))))
    fleet.pump()
    until_restarted(kube, 0, "StatefulSet")
    assert kube.merge(CONFIG, "default", "settings", {"data": {"sky": "red"}})
    resync(fleet)
    assert generations(kube) == [1]

    fleet.apply(holder("own", workload("StatefulSet").replace("web:1", "web:2")))
    fleet.pump()
    until_restarted(kube, 1, "StatefulSet")


def limited(kube: KubeClient, cluster: Cluster) -> KubeClient:
    """Return a client that may do all that is asked of it but read Secrets."""
    rights = "rbac.authorization.k8s.io"
    metadata = {"name": "bellhop", "namespace": "kube-system"}
    kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    kinds = {"": ["configmaps", "namespaces"], "apps": ["statefulsets"]}
    rules = [{"apiGroups": [group], "resources": kinds[group], "verbs": ["*"]} for group in kinds]
    role = {"apiVersion": f"{rights}/v1", "kind": "ClusterRole", "metadata": {"name": "bellhop"}}
    kube.apply({**role, "rules": rules})
    given = {"apiGroup": rights, "kind": "ClusterRole", "name": "bellhop"}
    bound = {**role, "kind": "ClusterRoleBinding", "roleRef": given}
    kube.apply({**bound, "subjects": [{"kind": "ServiceAccount", **metadata}]})
    mine = sanitise(cluster.kubeconfig(), reach=LOCAL)
    token = kube.token_request("kube-system", "bellhop")
    return KubeClient(EAST, replace(mine, token=token), reach=LOCAL)


def test_a_denied_read_restarts_nothing_and_is_reported(
    fleet: Fleet, kube: KubeClient, governed_cluster: Cluster
) -> None:
    """With what is to be granted; what may be read restarts it as ever."""
    client = limited(kube, governed_cluster)
    fleet.access.clusters[EAST] = client  # type: ignore[assignment]
    content = holder("own", workload("StatefulSet"))
    fleet.apply(join(profile(more="reloader: true"), content))
    fleet.pump()
    until(fleet, lambda: shown(fleet).startswith("Provisioned no workload restarts when Secret"))
    assert "'default/password' changes: Bellhop's credentials there may not get it" in shown(fleet)
    assert kube.merge(SECRET, "default", "password", {"stringData": {"word": "hidden"}})
    assert kube.merge(CONFIG, "default", "settings", {"data": {"sky": "red"}})
    resync(fleet)
    assert generations(kube) == [2]

    fleet.access.clusters[EAST] = kube  # type: ignore[assignment]
    resync(fleet)
    assert shown(fleet) == "Provisioned "
    assert kube.merge(SECRET, "default", "password", {"stringData": {"word": "other"}})
    resync(fleet)
    assert generations(kube) == [3]
    client.close()


HEALTH = """validateHealths:
  - name: rolled-out
    featureID: Resources
    group: apps
    version: v1
    kind: Deployment
    namespace: default
    script: |
      function evaluate()
        local seen = obj.status.observedGeneration == obj.metadata.generation
        local ready = obj.status.availableReplicas or 0
        local message = ready .. " of " .. obj.spec.replicas .. " are ready"
        return {healthy = seen and ready == obj.spec.replicas, message = message}
      end
"""


def test_a_workload_counts_once_its_controller_reports_it_healthy(fleet: Fleet) -> None:
    """One whose pods do not run waits, and says for what; one with no pods is ready at once."""
    deployment = workload("Deployment").replace("{selector", "{replicas: 1, selector", 1)
    fleet.apply(join(profile(more=HEALTH), holder("own", deployment)))
    until(fleet, lambda: "0 of 1 are ready" in shown(fleet))
    assert shown(fleet).startswith("Provisioning waits for check 'rolled-out': Deployment ")

    fleet.apply(holder("own", deployment.replace("replicas: 1", "replicas: 0")))
    until(fleet, lambda: shown(fleet) == "Provisioned ")


def shown(fleet: Fleet) -> str:
    found = fleet.records.outcomes.get(EAST, "own")
    return f"{found.value.phase} {found.value.message}" if found else ""


def until(fleet: Fleet, done: Callable[[], bool]) -> None:
    """Let time go by until something is so."""

    def step() -> bool:
        if not done():
            fleet.clock.advance(timedelta(minutes=1))
            fleet.pump()
        return done()

    eventually(lambda: shown(fleet), step, patience=_PATIENCE_SECONDS)


def test_a_namespace_that_ends_is_waited_for(fleet: Fleet, kube: KubeClient) -> None:
    """An object that is withdrawn and applied again comes once the cluster has deleted it."""
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
    desired = join(profile(), holder("own", space, config("a", "v: '1'", namespace="shop")))
    fleet.apply(desired)
    fleet.pump()
    first = kube.get(NAMESPACE, "", "shop")
    assert first
    held = {"metadata": {"finalizers": ["lab.example/held"]}}
    assert kube.merge(NAMESPACE, "", "shop", held)

    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    fleet.apply(desired)
    until(fleet, lambda: "is terminating" in shown(fleet))

    assert kube.merge(NAMESPACE, "", "shop", {"metadata": {"finalizers": None}})
    until(fleet, lambda: kube.get(CONFIG, "shop", "a") is not None)
    assert (kube.get(NAMESPACE, "", "shop") or {})["metadata"]["uid"] != first["metadata"]["uid"]
