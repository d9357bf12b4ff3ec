"""Installations on Google Cloud, opened with Terraform's outputs and the caller's own rights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bellhop.cli.contexts import GCP
from bellhop.cli.providers.provider import (
    CloudProvider,
    ManagedCluster,
    OpenInstallation,
    list_calling_functions,
)
from bellhop.registration.managed_clusters import GKE, ClusterRequest
from bellhop.runtime.gcp.installation import Called, call, services_of
from bellhop.runtime.gcp.journal import Journal

_GATEWAYS = ("roles/gkehub.gatewayEditor", "roles/gkehub.viewer")
"""The roles that a caller by the Connect gateway needs, beside its rights in the cluster."""


class GcpProvider(CloudProvider):
    """Finds GKE clusters in the installation's project and region, or in others."""

    kind = GCP
    service = GKE
    name = "Google Cloud"
    functions = "services"
    no_functions = "services"
    connect = staticmethod(call)

    def make_log(
        self,
        outputs: Mapping[str, Any],
        environment: Mapping[str, str],
        functions: Mapping[str, str],
    ) -> Journal:
        logs = outputs.get("logs") or f"projects/{outputs['project']}"
        return Journal(services_of(outputs, environment), logs, functions)

    def make_cluster(
        self, outputs: Mapping[str, Any], opened: OpenInstallation, request: ClusterRequest
    ) -> ManagedCluster:
        assert isinstance(opened, Called)
        full = opened.gke.named(request.name, request.region or outputs["region"])
        way = opened.gke.way(full)
        entries = []
        for name in list_calling_functions(outputs["accounts"]):
            account = outputs["accounts"].get(name) or f"ACCOUNT_OF_{name.upper()}"
            binding = f"{outputs['secrets']}-{name}"
            entries += _grants(full, binding, account, gateway=way.by_gateway)
        return ManagedCluster(full, opened.gke.kubeconfig(full), entries, way.over)


def _grants(full: str, name: str, account: str, *, gateway: bool) -> list[str]:
    """Write the commands that let a service account find a cluster, and administer it."""
    grant = f"gcloud projects add-iam-policy-binding {full.split('/')[1]}"
    member = f"--member serviceAccount:{account}"
    roles = ["roles/container.clusterViewer", *(_GATEWAYS if gateway else ())]
    bind = f"kubectl create clusterrolebinding {name} --clusterrole cluster-admin --user {account}"
    return [*(f"{grant} {member} --role {role} --condition None" for role in roles), bind]


PROVIDER = GcpProvider()
