"""The example of what is Local: it reaches the real cluster for all others, and leaves it."""

from __future__ import annotations

from pathlib import Path

from bellhop.core.gvk import GVK, ObjectKey
from infra.demo.user import User
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from tests.flow.conftest import EXAMPLES, SETTINGS, InProcessStand
from tests.waiting import eventually

_CONFIG = GVK("", "v1", "ConfigMap")
REMOTE = ObjectKey(_CONFIG, "default", "agent")
LOCAL = ObjectKey(_CONFIG, "entries", "agent-of-source")


def test_what_is_local_follows_its_cluster(
    tmp_path: Path, source_cluster: Cluster, destination_cluster: Cluster
) -> None:
    """It waits for `mgmt/mgmt`, stands there for each cluster, and goes when that matches no more.

    Remote objects are deployed meanwhile, and to no other cluster.
    """
    with Nursery() as nursery:
        stand = InProcessStand(tmp_path / "stand", nursery, settings=SETTINGS)
        stand.serve()
        source, host = (User(each.kubeconfig()) for each in (source_cluster, destination_cluster))
        stand.register(source_cluster, namespace="fleet", labels="env=production", forward=False)

        stand.do("apply", "-f", str(EXAMPLES / "local"))
        eventually("what is Remote is there", lambda: source.get(REMOTE))
        eventually(
            "it is reported", lambda: "registered as 'mgmt/mgmt'" in stand.do("show", "failures")
        )

        path = tmp_path / "host.kubeconfig"
        destination_cluster.kubeconfig(path)
        named = ("--namespace", "mgmt", "--cluster", "mgmt", "--kubeconfig", str(path))
        stand.do("register", "cluster", *named, "--no-forwarder")
        eventually("what is Local is there", lambda: host.get(LOCAL))
        assert (host.get(LOCAL) or {})["data"] == {"env": "production"}
        assert host.get(REMOTE) is None
        assert source.get(LOCAL) is None

        stand.do("label", "cluster", "fleet/source", "env=test", "--overwrite")
        eventually("what is Local is gone", lambda: host.get(LOCAL) is None)
        eventually("what is Remote is gone", lambda: source.get(REMOTE) is None)
        source.close()
        host.close()
        stand.close()
