"""How functions get into clusters: EKS by their role, others by the kubeconfig that is stored."""

from __future__ import annotations

from bellhop.adapters.aws.eks import EksCluster, EksClusters
from bellhop.adapters.aws.parameters import ParameterSecrets
from bellhop.adapters.aws.secrets import ManagedSecrets
from bellhop.adapters.kube.access import KubeAccess
from bellhop.runtime.aws.resources import Resources
from bellhop.runtime.cloud.managed import MadeKubeconfigs, managed_in
from bellhop.state.record import Cluster


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
