"""How functions get into clusters: EKS by their role, others by the kubeconfig that is stored."""

from __future__ import annotations

from functools import partial

from bellhop.adapters.aws.eks import EksClusters, EksSecrets
from bellhop.adapters.aws.secrets import ManagedSecrets
from bellhop.adapters.kube.access import KubeAccess
from bellhop.aws.resources import Resources
from bellhop.ports.secrets import Secrets
from bellhop.records import Records


def secrets_of(here: Resources) -> Secrets:
    """Make the secret store of an installation."""
    managed = ManagedSecrets(here.services, here.secrets, key=here.kms_key)
    return EksSecrets(managed, EksClusters(here.services), partial(_arn, here.records))


def access_of(here: Resources, secrets: Secrets) -> KubeAccess:
    """Make what opens an installation's clusters."""
    return KubeAccess(secrets, reach=here.reach)


def _arn(records: Records, cluster: str) -> str:
    kept = records.clusters.get(cluster)
    return kept.value.eks if kept else ""
