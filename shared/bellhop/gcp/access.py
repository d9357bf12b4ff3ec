"""How functions get into clusters: GKE as who they are, others by the kubeconfig that is stored."""

from __future__ import annotations

from bellhop.adapters.gcp.gke import GkeClusters
from bellhop.adapters.gcp.secrets import VersionedSecrets
from bellhop.adapters.kube.access import KubeAccess
from bellhop.cloud.managed import MadeKubeconfigs, managed_in
from bellhop.gcp.resources import Resources


def secrets_of(here: Resources) -> MadeKubeconfigs:
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
    return MadeKubeconfigs(stored, GkeClusters(here.services), managed_in(here.records))


def access_of(here: Resources, secrets: MadeKubeconfigs) -> KubeAccess:
    """Make what opens an installation's clusters."""
    return KubeAccess(secrets, reach=here.reach, refused=secrets.refused)
