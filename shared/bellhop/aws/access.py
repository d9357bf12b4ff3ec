"""How functions get into clusters: EKS by their role, others by the kubeconfig that is stored."""

from __future__ import annotations

from bellhop.adapters.aws.eks import EksClusters
from bellhop.adapters.aws.secrets import ManagedSecrets
from bellhop.adapters.kube.access import KubeAccess
from bellhop.aws.resources import Resources
from bellhop.cloud.managed import MadeKubeconfigs, managed_in


def secrets_of(here: Resources) -> MadeKubeconfigs:
    """Make the secret store of an installation."""
    managed = ManagedSecrets(here.services, here.secrets, key=here.kms_key)
    return MadeKubeconfigs(managed, EksClusters(here.services), managed_in(here.records))


def access_of(here: Resources, secrets: MadeKubeconfigs) -> KubeAccess:
    """Make what opens an installation's clusters."""
    return KubeAccess(secrets, reach=here.reach, refused=secrets.refused)
