"""`python -m infra.lab management`: Bellhop between two servers, as suites of Sveltos expect them.

    mgmt                   holds the configuration: definitions, SveltosClusters
    clusterapi-workload    gets the add-ons, and knows nothing of Sveltos

Both have the controller manager, a forwarder beside them, and no kubelets. A suite finds its
cluster by the label `cluster-name`, and sets further labels itself. From Deployments with the names
of Sveltos' controllers, which have no replicas, it learns that managed clusters have no agents; a
ClusterRole is there because suites add rules to it.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from bellhop.configuration.definitions import LIB, VERSION
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.binaries import find
from infra.lab.cluster import Cluster
from infra.lab.control_plane import ControlPlane
from infra.lab.processes import Nursery

HUB, WORKLOAD = "mgmt", "clusterapi-workload"
_NAMESPACES = {HUB: "mgmt", WORKLOAD: "default"}
_OURS = "projectsveltos"
_SETTINGS = {
    "BELLHOP_RETRY_LONGEST": "5",
    "BELLHOP_REPORT_INBOX": "on",
    # A suite deletes all that it made, which may be more than the deletion guard lets pass.
    "BELLHOP_HOLD_SHARE": "0",
}
_CONTROLLERS = ("addon-controller", "event-manager")
_EXTRA_ROLE = "addon-controller-role-extra"


class ManagementPair(NamedTuple):
    """A running installation, and the files with the kubeconfigs of its two clusters."""

    stand: Stand
    hub: Path
    workload: Path


@contextlib.contextmanager
def run_management(folder: Path | None = None) -> Iterator[ManagementPair]:
    """Run both servers and Bellhop until the block ends; nothing is left behind.

    Without a folder everything is in a temporary one.

    Raises:
        BellhopError: the servers do not come up.
        RuntimeError: Bellhop does not, or a command of it failed.
    """
    with contextlib.ExitStack() as exits:
        if folder is None:
            folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="bellhop-lab-")))
        lab = exits.enter_context(ControlPlane(find(), folder / "lab"))
        hub, workload = lab.start_clusters(HUB, WORKLOAD, controllers=True)
        stand = Stand(folder / "bellhop", exits.enter_context(Nursery()), settings=_SETTINGS)
        exits.callback(stand.close)
        _prepare(stand, hub, workload)
        yield ManagementPair(stand, *(_find_kubeconfig(stand, name) for name in (HUB, WORKLOAD)))


def _prepare(stand: Stand, hub: Cluster, workload: Cluster) -> None:
    key = f"{_NAMESPACES[HUB]}/{HUB}"
    stand.serve()
    stand.register(hub, namespace=_NAMESPACES[HUB], labels="")
    stand.register(
        workload,
        namespace=_NAMESPACES[WORKLOAD],
        labels=f"cluster-name={WORKLOAD}",
    )
    stand.do("install", "crds", key)
    stand.do("set", "configuration-cluster", key)
    user = User(hub.kubeconfig())
    for name in (_NAMESPACES[HUB], _OURS):
        user.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for manifest in _make_controllers():
        user.apply(manifest)
    for each in (hub, workload):
        for manifest in _make_cluster(each):
            user.apply(manifest)
    user.close()
    stand.settle(key)


def _make_controllers() -> Iterator[dict[str, object]]:
    """Yield what suites read of Sveltos' own installation."""
    for name in _CONTROLLERS:
        labels = {"control-plane": name}
        container = {"name": "manager", "image": name, "args": ["--agent-in-mgmt-cluster=true"]}
        yield {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": _OURS},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": _EXTRA_ROLE},
        "rules": [],
    }


def _make_cluster(cluster: Cluster) -> Iterator[dict[str, object]]:
    """Yield the objects that register a cluster."""
    metadata = {"name": cluster.name, "namespace": _NAMESPACES[cluster.name]}
    yield {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**metadata, "name": f"{cluster.name}-sveltos-kubeconfig"},
        "stringData": {"kubeconfig": yaml.safe_dump(cluster.kubeconfig())},
    }
    yield {
        "apiVersion": f"{LIB}/{VERSION}",
        "kind": "SveltosCluster",
        "metadata": {**metadata, "labels": {"cluster-name": cluster.name}},
        "spec": {"kubeconfigName": f"{cluster.name}-sveltos-kubeconfig"},
    }


def _find_kubeconfig(stand: Stand, name: str) -> Path:
    return stand.folder / f"{name}.kubeconfig"
