"""The page on tenants: typed where a real API server's RBAC decides."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from bellhop.adapters.kube.client import KubeClient
from bellhop.cli.main import cli
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.documents.document import read_documents
from infra.lab.cluster import Cluster
from tests.docs.test_preview_page import served
from tests.waiting import eventually

__all__ = ["served"]

pytest_plugins = ["tests.kube_fixtures"]

PAGE = (Path(__file__).parents[2] / "docs/how-to/multi-tenancy.md").read_text()
CONFIG = GVK("", "v1", "ConfigMap")
ROLE = GVK("rbac.authorization.k8s.io", "v1", "Role")
BINDING = GVK("rbac.authorization.k8s.io", "v1", "RoleBinding")
ACCOUNT = GVK("", "v1", "ServiceAccount")
_PATIENCE_SECONDS = 60.0


def file(name: str) -> str:
    """Return a file of the page."""
    return PAGE.partition(f"```yaml file={name}\n")[2].partition("```")[0]


def prepare(kube: KubeClient) -> None:
    """Make the tenant's namespace, what the page gives Bellhop, and two Services."""
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for name in ("bellhop.yaml", "grants.yaml"):
        for document in read_documents(file(name), source=name):
            kube.apply(document.data)
    for namespace, name in (("team", "hers"), ("default", "theirs")):
        spec = {"ports": [{"port": 80, "protocol": "TCP"}]}
        metadata = {"name": name, "namespace": namespace}
        kube.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


def made(kube: KubeClient, kind: GVK) -> list[str]:
    """Name what a RoleRequest has made in the tenant's namespace."""
    found = (each["metadata"] for each in kube.list(kind, namespace="team"))
    marked = "projectsveltos.io/owner-name"
    return [each["name"] for each in found if marked in (each.get("annotations") or {})]


def failures() -> str:
    """Return what has failed, as one line."""
    return typed("show failures")


def typed(command: str) -> str:
    """Type a command, and return what it says as one line."""
    return " ".join(CliRunner().invoke(cli, command.split()).output.split())


def test_a_tenant_gets_what_it_may_and_a_reason_for_the_rest(
    served: Path, destination_cluster: Cluster
) -> None:
    """Its Service matches, the other's does not; one object is written, the other is denied.

    The rights that it has are those of the page's RoleRequest, and go with that.
    """
    kubeconfig = sanitise(destination_cluster.kubeconfig(), reach=LOCAL)
    kube = KubeClient("fleet/east", kubeconfig, reach=LOCAL)
    prepare(kube)
    for name in ("tenant-rights.yaml", "tenant.yaml"):
        (served / name).write_text(file(name))
        assert CliRunner().invoke(cli, ["apply", "-f", name]).exit_code == 0
    written = eventually(failures, lambda: kube.get(CONFIG, "team", "ports"))
    assert written
    assert written["data"] == {"of": "team/hers "}
    assert kube.get(CONFIG, "kube-public", "ports") is None
    eventually(failures, lambda: 'in the namespace "kube-public"' in failures())
    said = failures()
    assert 'User "system:serviceaccount:team:ann" cannot patch resource "configmaps"' in said
    assert "service account 'team/ann' may not get and list Service objects in namespace" in said
    described = typed("describe eventsource anns-services")
    assert "service account 'team/ann' of each cluster" in described
    assert "1 match" in described
    assert "may not get and list Service objects" in typed("explain fleet/east service/theirs")
    assert "its credentials may do all that is asked of them" in typed("doctor fleet/east")
    assert "team/ann" in typed("describe rolerequest anns")
    for kind in (ROLE, BINDING, ACCOUNT):
        assert len(made(kube, kind)) == 1

    typed("delete rolerequest anns")
    eventually(failures, lambda: not any(made(kube, kind) for kind in (ROLE, BINDING, ACCOUNT)))

    def denied() -> bool:
        # An API server allows for a moment longer what a binding gave that is deleted.
        typed("redeploy")
        return 'in the namespace "team"' in failures()

    eventually(failures, denied, pause=0.5)
    kube.close()
