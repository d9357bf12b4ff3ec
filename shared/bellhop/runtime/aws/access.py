"""How functions get into clusters: EKS by their role, others by the kubeconfig that is stored."""

from __future__ import annotations

from bellhop.adapters.aws.eks import EksCluster, EksClusters
from bellhop.adapters.aws.parameters import ParameterSecrets
from bellhop.adapters.aws.secrets import ManagedSecrets
from bellhop.adapters.aws.services import Services
from bellhop.adapters.kube.access import KubeAccess
from bellhop.registration.managed_clusters import (
    EKS,
    ClusterRequest,
    FoundCluster,
    make_unreachable_error,
)
from bellhop.runtime.aws.resources import Resources
from bellhop.runtime.cloud.managed import MadeKubeconfigs, managed_in
from bellhop.state.cluster import Cluster


def secrets_of(here: Resources) -> MadeKubeconfigs[EksCluster]:
    """Make the secret store of an installation, by how its secrets' names begin."""
    store = ParameterSecrets if here.secrets.startswith("/") else ManagedSecrets
    stored = store(here.services, here.secrets, key=here.kms_key)
    clusters = EksClusters(here.services)
    return MadeKubeconfigs(stored, clusters, managed_in(here.records, _name_of))


def _name_of(cluster: Cluster) -> EksCluster:
    return EksCluster(cluster.managed, cluster.assume_role, cluster.external_id)


def access_of(here: Resources, secrets: MadeKubeconfigs[EksCluster]) -> KubeAccess:
    """Make what opens an installation's clusters."""
    return KubeAccess(secrets, reach=here.reach, refused=secrets.refused)


class OwnEks:
    """EKS clusters, as the functions' own role or one that it assumes sees them."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._clusters = EksClusters(services)

    def find(self, request: ClusterRequest) -> FoundCluster:
        """Return a cluster; without a region, one in that of the functions.

        Raises:
            InvalidError: it is of another cloud, or EKS or STS take no such name, role or ID.
            MissingError: there is no such cluster.
            TemporaryError: AWS does not answer, or refuses the role.
        """
        if request.service != EKS:
            raise make_unreachable_error(request, "an installation on AWS")
        region = request.region or self._services.client("eks").meta.region_name
        found = self._clusters.find(request.name, region, request.assume_role, request.external_id)
        return FoundCluster(found.arn, self._clusters.kubeconfig(found))
