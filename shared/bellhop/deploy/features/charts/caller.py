"""Helm and its kubeconfig for the cluster that a profile is deployed to."""

from __future__ import annotations

from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.charts.cluster_releases import helm_in
from bellhop.errors import MissingError
from bellhop.ports.access import Access
from bellhop.ports.charts import Helm


class Caller:
    """Finds what a call of Helm needs."""

    def __init__(self, access: Access, helm: Helm | None) -> None:
        self._access = access
        self._helm = helm

    def helm(self, work: ReconcileContext) -> Helm:
        """Return Helm for the cluster of a profile.

        Raises:
            MissingError: this installation has none.
        """
        if self._helm is None:
            raise MissingError(
                "cannot deploy Helm charts: they are switched off here; deploy the function"
                " `charts` with Terraform's variable of that name"
            )
        return helm_in(work.cluster, self._helm, self._access)

    def kubeconfig(self, work: ReconcileContext) -> bytes:
        """Return how Helm gets into the cluster, with the rights of whose profile it is."""
        cluster = work.cluster
        return self._access.kubeconfig(
            cluster.key, version=cluster.credentials, account=work.profile.account
        )
