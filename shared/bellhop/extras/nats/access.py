"""A cluster's forwarder may read where its NATS server is, where a source asks for CloudEvents.

It is not installed with the forwarder's other rights: the Secret is in a namespace of Sveltos',
which may come later or never, and most clusters have no use for it.
"""

from __future__ import annotations

from bellhop.core.gvk import GVK
from bellhop.errors import MissingError, PermanentError
from bellhop.logs import Log
from bellhop.ports.kube import Kube
from bellhop.registration.forwarder_manifests import MESSAGING_NAMESPACE, messaging_rights

_NAMESPACE = GVK("", "v1", "Namespace")


def let_subscribe(kube: Kube, cluster: str, log: Log) -> None:
    """Grant the right, if there is a namespace for the Secret; ringing does not depend on it.

    Raises:
        TemporaryError: as applying does.
    """
    try:
        if kube.get(_NAMESPACE, "", MESSAGING_NAMESPACE) is None:
            return
        for manifest in messaging_rights():
            kube.apply(manifest)
    except MissingError:
        # The namespace went just now.
        return
    except PermanentError as error:
        # Who sends CloudEvents by HTTP alone needs no such right.
        log.warning("Cannot let the forwarder subscribe to NATS", cluster=cluster, error=str(error))
