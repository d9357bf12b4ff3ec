"""New credentials for a registered cluster, without another registration of it."""

from __future__ import annotations

import json

from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.errors import BellhopError
from bellhop.installation import Installation
from bellhop.registration.record_update import undisturbed, update_cluster
from bellhop.registration.removal import find_uid, read_uid
from bellhop.registration.token_renewal import find_given_version, forget_token
from bellhop.state.cluster import Cluster
from bellhop.state.messages import Resync


def store_kubeconfig(here: Installation, key: str, kubeconfig: Kubeconfig) -> bool:
    """Store the kubeconfig of a registered cluster, and have it resynced; an equal one stays.

    Return whether it was stored. The way in which the cluster sends events does not change.

    Raises:
        BusyError: other writers keep winning.
    """
    kept = here.records.clusters.get(key)
    if kept is None or find_given_version(kept.value) == kubeconfig.version:
        return False
    with undisturbed():
        # Stored first: the record names a version that is there.
        here.secrets.put(f"kubeconfig/{key}", json.dumps(kubeconfig.to_dict()).encode())
        version = kubeconfig.version
        update_cluster(here, key, lambda found: replace(forget_token(found), credentials=version))
    here.publisher.publish([Resync(key)])
    return True


def is_another_cluster(here: Installation, old: Cluster, kubeconfig: Kubeconfig) -> bool:
    """Return whether a kubeconfig leads to another cluster than before; False if that is unknown.

    The cluster is called. One that does not answer, or hides its uid, counts as the same one.
    """
    before = find_uid(here, old)
    if not before:
        return False
    kube = KubeClient(old.key, kubeconfig, reach=here.reach)
    try:
        return read_uid(kube) not in ("", before)
    except BellhopError:
        return False
    finally:
        kube.close()
