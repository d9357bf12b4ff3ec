"""Reads the objects that templates of deploy time refer to, as they are now.

Objects that users declared or triggers generated are read from the records, as are clusters. Any
other kind, and a ConfigMap or Secret that the records do not have, is read from the cluster that is
registered as `mgmt/mgmt`, with the rights of the profile's account.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from bellhop.api.kinds import KINDS
from bellhop.catalog.catalog import cluster_object
from bellhop.core.gvk import GVK
from bellhop.deploy.files import FilesReader, not_of_cluster
from bellhop.gotemplate import Limits
from bellhop.ports.kube import Access
from bellhop.profiles.names import NameReservations
from bellhop.rendering.allow_limits import NotAllowedError
from bellhop.rendering.inputs import MissingInputError
from bellhop.rendering.references import CLUSTER, format_holder, is_in_management, read_referred
from bellhop.state.cluster import MANAGEMENT, Cluster
from bellhop.state.content import Reading
from bellhop.state.profile import Profile
from bellhop.state.records import Records

TEMPLATES = ""
"""The field of what templates read, in which no files of add-ons are named."""


class Resources:
    """Objects by identifier, for one profile in one cluster."""

    def __init__(
        self,
        records: Records,
        access: Access,
        titles: NameReservations,
        limits: Limits,
        files: FilesReader,
    ) -> None:
        self._files = files
        self._records = records
        self._access = access
        self._names = titles
        self._limits = limits

    def reader(
        self, profile: Profile, *fields: str
    ) -> Callable[[Cluster], dict[str, dict[str, Any]]]:
        """Return a function that reads for a cluster the objects that a profile refers to.

        It reads the files of add-ons that `fields` name, and for the field `TEMPLATES` the objects
        that templates read. Objects of several clusters are read once.

        Raises:
            NotAllowedError: something has no namespace, and the profile may read only its own.
            MissingInputError: something is not there that is not optional.
            TemporaryError: the cluster `mgmt/mgmt` does not answer.
        """
        read = cache(partial(self._read, profile))
        reads = [each for each in profile.reads if each.field.partition("[")[0] in fields]
        return lambda cluster: read_referred(reads, cluster_object(cluster), read, self._limits)

    def _read(self, profile: Profile, each: Reading) -> Mapping[str, Any] | None:
        if profile.rollout.promotion and each.field:
            return self._files.freeze(profile, each, lambda: self._read_now(profile, each))
        return self._read_now(profile, each)

    def _read_now(self, profile: Profile, each: Reading) -> Mapping[str, Any] | None:
        if each.address:
            return self._files.revision(each)
        if is_in_management(each):
            return self._read_management(profile, each)
        if each.kind in {"ConfigMap", "Secret"}:
            holder = self._names.holder(each.kind, each.namespace, each.name)
            return format_holder(holder) if holder else self._read_management(profile, each)
        if each.kind == CLUSTER:
            found = self._records.clusters.get(f"{each.namespace}/{each.name}")
            return cluster_object(found.value) if found else None
        namespaced = KINDS[each.kind][0].namespaced
        _refuse_beyond(profile, each, namespaced=namespaced)
        namespace = each.namespace if namespaced else ""
        kept = self._records.manifests.get(each.kind, namespace, each.name)
        return kept.value if kept else None

    def _read_management(self, profile: Profile, each: Reading) -> Mapping[str, Any] | None:
        what = f"{each.kind} '{each.namespace}/{each.name}'"
        kept = self._records.clusters.get(MANAGEMENT)
        if kept is None:
            if each.optional or not is_in_management(each):
                return None
            raise MissingInputError(
                f"cannot read {what}: {each.kind} is kept in clusters, and none is registered as"
                f" '{MANAGEMENT}'; register the one to read it from by that name"
            )
        gvk = GVK.parse(each.api_version, each.kind)
        with not_of_cluster(f"cannot read {what}: "):
            kube = self._access.open(
                MANAGEMENT, version=kept.value.credentials, account=profile.account
            )
            resource = kube.resource(gvk)
            namespaced = resource is None or resource.namespaced
            _refuse_beyond(profile, each, namespaced=namespaced)
            return kube.get(gvk, each.namespace if namespaced else "", each.name)


def _refuse_beyond(profile: Profile, each: Reading, *, namespaced: bool) -> None:
    """Refuse what lies in no namespace to a profile that has one.

    Raises:
        NotAllowedError: it is such a profile.
    """
    if profile.namespace and not namespaced:
        raise NotAllowedError(
            f"cannot read {each.kind} '{each.name}' for Profile '{profile.name}': it reads what is"
            f" in namespace '{profile.namespace}', and a {each.kind} is in none; write a"
            " ClusterProfile"
        )
