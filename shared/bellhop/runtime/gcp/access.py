"""How functions get into clusters: GKE as who they are, others by the kubeconfig that is stored."""

from __future__ import annotations

from bellhop.adapters.gcp.gke import GkeClusters
from bellhop.adapters.gcp.secrets import VersionedSecrets
from bellhop.adapters.gcp.services import Services
from bellhop.adapters.kube.access import KubeAccess
from bellhop.registration.managed_clusters import (
    GKE,
    ClusterRequest,
    FoundCluster,
    make_unreachable_error,
)
from bellhop.runtime.cloud.managed import MadeKubeconfigs, managed_in
from bellhop.runtime.gcp.resources import Resources
from bellhop.state.cluster import Cluster


def secrets_of(here: Resources) -> MadeKubeconfigs[str]:
    """Make the secret store of an installation."""
    clock, database = here.records.clock, here.database
    stored = VersionedSecrets(
        here.services,
        here.secrets,
        clock=clock,
        database=database,
        region=here.secret_region,
        key=here.kms_key,
    )
    clusters = GkeClusters(here.services)
    return MadeKubeconfigs(stored, clusters, managed_in(here.records, _name_of))


def _name_of(cluster: Cluster) -> str:
    return cluster.managed


def access_of(here: Resources, secrets: MadeKubeconfigs[str]) -> KubeAccess:
    """Make what opens an installation's clusters."""
    return KubeAccess(secrets, reach=here.reach, refused=secrets.refused)


class OwnGke:
    """GKE clusters, as the functions' own service account sees them."""

    def __init__(self, services: Services) -> None:
        self._clusters = GkeClusters(services)

    def find(self, request: ClusterRequest) -> FoundCluster:
        """Return a cluster by its full name.

        Raises:
            InvalidError: it is of another cloud, or this is not the full name of a GKE cluster.
            MissingError: there is no such cluster.
            TemporaryError: Google Cloud does not answer, or refuses the account.
        """
        if request.service != GKE:
            raise make_unreachable_error(request, "an installation on Google Cloud")
        return FoundCluster(request.name, self._clusters.kubeconfig(request.name))
