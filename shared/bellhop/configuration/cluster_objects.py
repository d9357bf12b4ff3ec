"""Objects of the configuration cluster that register clusters, and the Secrets that they name.

Registration takes as long to import as the rest of a cold start, so it is imported with the first
such object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bellhop.api.kinds import CLUSTER, DeclarationKey
from bellhop.catalog.catalog import Catalog
from bellhop.configuration.references import make_read_back
from bellhop.core.gvk import GVK
from bellhop.errors import DeniedError, StaleError
from bellhop.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.registration.managed_clusters import ManagedClusters
from bellhop.state.cluster import Cluster
from bellhop.state.messages import ReadBack

CONFIGURATION_UID = "bellhop.dev/configuration-uid"
"""Annotation of a registered cluster that came from the configuration: the uid of its object."""

KUBECONFIG_SECRET = "bellhop.dev/kubeconfig-secret"  # noqa: S105 - a name
"""Annotation of such a cluster: the name of its Secret, if that is not the usual one."""

CONFIGURATION_DIGEST = "bellhop.dev/configuration-digest"
"""Annotation of such a cluster: a digest of its object's fields when they were followed last."""

PAUSED_BY_COMMAND = "bellhop.dev/paused-by-command"
"""Annotation of such a cluster that a command paused, which outlasts changes of its object."""

_USUAL = "-sveltos-kubeconfig"
_SECRET = GVK("", "v1", "Secret")

SecretReader = Callable[[str, str], Manifest | None]
"""Reads a Secret of the configuration cluster by namespace and name; None if there is none."""


class Outcome(Struct, frozen=True):
    """The result for an object; `needs` are the names of Secrets in its namespace."""

    state: Literal["InForce", "Rejected", "OtherOrigin"]
    message: str = ""
    needs: tuple[str, ...] = ()


class ClusterObjects:
    """Registers, changes and deregisters clusters as their objects and Secrets say."""

    def __init__(self, here: Installation, managed: ManagedClusters | None = None) -> None:
        self._here = here
        self._managed = managed

    def admit(self, hub: Cluster, found: Mapping[str, Any]) -> Outcome:
        """Make a cluster as its object in the cluster `hub` says.

        Raises:
            TemporaryError: the hub or a cloud does not answer, or other writers keep winning.
        """
        from bellhop.configuration.clusters import ClusterAdmission  # noqa: PLC0415 - slow

        kube = self._here.access.open(hub.key, version=hub.credentials)
        admission = ClusterAdmission(self._here, managed=self._managed)
        return admission.admit(found, lambda *place: kube.get(_SECRET, *place))

    def remove(self, key: DeclarationKey) -> None:
        """Deregister the cluster of an object that was deleted.

        Raises:
            DeniedError: the functions may not delete its kubeconfig. The record of the object says
                so, and each resync tries again.
            StaleError: other writers keep winning.
        """
        kept = self._here.records.clusters.get(key.place)
        if kept and CONFIGURATION_UID in kept.value.annotations:
            from bellhop.configuration.clusters import ClusterAdmission  # noqa: PLC0415 - slow

            try:
                ClusterAdmission(self._here).remove(key.namespace, key.name)
            except DeniedError as error:
                self._record_refusal(key, str(error))
                raise

    def _record_refusal(self, key: DeclarationKey, message: str) -> None:
        records = self._here.records.configured
        kept = records.get(*key)
        if kept and kept.value.message != message:
            with suppress(StaleError):
                record = replace(kept.value, state="Rejected", message=message)
                records.put(*key, record, expect=kept.token)

    def list_naming(self, catalog: Catalog, secret: DeclarationKey) -> Iterator[ReadBack]:
        """Yield the messages that admit the objects again which may name a Secret.

        Of an object that is not in force it is not known which Secret it names.
        """
        prefix = f"{secret.namespace}/"
        for place, stored in self._here.records.configured.rows(CLUSTER.kind, prefix=prefix):
            cluster, name = catalog.clusters.get(place), place.removeprefix(prefix)
            marks = cluster.annotations if cluster else {}
            named = marks.get(KUBECONFIG_SECRET, f"{name}{_USUAL}")
            if named == secret.name or stored.value.state != "InForce":
                key = DeclarationKey(CLUSTER.kind, secret.namespace, name)
                yield make_read_back(catalog.configuration, CLUSTER, key)
