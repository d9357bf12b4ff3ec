"""Clusters of the configuration cluster: an object registers one, its deletion deregisters it.

    object, Secret ─► new? ─► registration ─► record, with the uid of the object
                      known: kubeconfig if it changed, then labels, annotations, data and pauses

A record with such a uid follows its object in all these fields when the object changes; a pause by
a command outlasts that, unless the object is paused itself. A record without it was registered by a
command, and stays as it is unless the object leads to the same address or takes it over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from bellhop.api.sveltos_cluster import SveltosCluster
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.configuration.cluster_objects import (
    CONFIGURATION_DIGEST,
    CONFIGURATION_UID,
    KUBECONFIG_SECRET,
    PAUSED_BY_COMMAND,
    Outcome,
    SecretReader,
)
from bellhop.configuration.cluster_sources import (
    ClusterSource,
    SveltosClusters,
    is_managed_as,
    read_entries,
    request_managed,
)
from bellhop.configuration.kubeconfig_store import KubeconfigStore
from bellhop.core.digest import digest as make_digest
from bellhop.core.sveltos_annotations import APPLYSET, TAKE_OVER
from bellhop.core.windows import read_window
from bellhop.declarations.apply import ManifestWriter
from bellhop.declarations.records import HeldRemoval
from bellhop.diagnosis.held_deletions import describe_removal, group_by_change
from bellhop.errors import (
    ConflictError,
    InvalidError,
    MissingError,
    PermanentError,
    UnauthorizedError,
    UnreachableError,
)
from bellhop.extras.classifiers.labels import carry_in_set
from bellhop.installation import Installation
from bellhop.registration.credentials import is_another_cluster, store_kubeconfig
from bellhop.registration.declared_clusters import DeclaredCluster, read_kubeconfig
from bellhop.registration.forwarder_manifests import is_audited, is_direct
from bellhop.registration.managed_clusters import ManagedClusters, NoManagedClusters
from bellhop.registration.record_update import update_cluster
from bellhop.registration.registration import register
from bellhop.registration.removal import deregister
from bellhop.registration.request import Registration
from bellhop.registration.token_renewal import find_given_version, forget_token
from bellhop.registration.unanswered import register_unanswered
from bellhop.state.cluster import RENEWAL_OPTION, Cluster
from bellhop.state.concurrency import until_written

_OWN = "bellhop.dev/"
_SHOWN = 3


class _Login(NamedTuple):
    """The way into a cluster; without a kubeconfig it stays as it is, for the `reason`."""

    kubeconfig: Kubeconfig | None = None
    managed: str = ""
    assume_role: str = ""
    reason: str = ""


class ClusterAdmission:
    """Registers, changes and deregisters the clusters of one kind of objects."""

    def __init__(
        self,
        here: Installation,
        source: ClusterSource | None = None,
        managed: ManagedClusters | None = None,
    ) -> None:
        # `held` of the writer is what one change would remove: no other change shares it.
        declare = ManifestWriter(here.records, here.catalogs, here.publisher, here.settings)
        self._here = replace(here, declare=declare, secrets=KubeconfigStore(here.secrets))
        self._source = source or SveltosClusters()
        self._managed = managed or NoManagedClusters()

    def admit(self, manifest: Mapping[str, Any], read: SecretReader) -> Outcome:
        """Make a cluster as its object says; an equal one is not written.

        A cluster that does not answer is registered all the same. If a field or the kubeconfig is
        refused, nothing is changed.

        Raises:
            TemporaryError: other writers keep winning, a cloud does not answer, or reading failed.
        """
        try:
            cluster = self._source.read(manifest)
        except InvalidError as error:
            return Outcome("Rejected", str(error))
        needs = () if cluster.spec.workload_identity else (cluster.secret,)
        uid = str(manifest["metadata"]["uid"])
        try:
            message = self._settle(cluster, uid, read)
        except _OtherOriginError as error:
            return Outcome("OtherOrigin", str(error), needs)
        except PermanentError as error:
            return Outcome("Rejected", str(error), needs)
        return Outcome("InForce", message, needs)

    def remove(self, namespace: str, name: str) -> None:
        """Deregister a cluster that came from the configuration; its add-ons stay.

        The cluster that holds the configuration stays registered, as a command registered it.

        Raises:
            DeniedError: the functions may not delete its kubeconfig.
            StaleError: other writers keep winning.
        """
        key = f"{namespace}/{name}"
        kept = self._here.records.clusters.get(key)
        if kept is None or CONFIGURATION_UID not in kept.value.annotations:
            return
        if kept.value.configuration:
            release_cluster(self._here, key)
            return
        deregister(self._here, key, check=_require_origin)

    def _settle(self, cluster: SveltosCluster, uid: str, read: SecretReader) -> str:
        """Register or change a cluster; return what to say of it."""
        fields = self._list_fields(cluster)
        kept = self._here.records.clusters.get(cluster.key)
        old = kept.value if kept else None
        if old and PAUSED_BY_COMMAND in old.annotations:
            fields["paused"] = True
        login = self._find_login(cluster, old, read)
        if old is not None:
            self._require_takeover(cluster, old, login)
        if self._is_registered(old, login):
            said = self._follow(cluster.key, cluster, uid, fields)
            if login.kubeconfig and not login.managed:
                store_kubeconfig(self._here, cluster.key, login.kubeconfig)
            return _join(login.reason, said)
        return self._register(cluster, uid, fields, login, old)

    def _find_login(
        self, cluster: SveltosCluster, old: Cluster | None, read: SecretReader
    ) -> _Login:
        if identity := cluster.spec.workload_identity:
            request = request_managed(identity)
            if old and is_managed_as(old.managed, old.assume_role, request):
                return _Login(managed=old.managed, assume_role=old.assume_role)
            found = self._managed.find(request)
            return _Login(found.kubeconfig, found.name, request.assume_role)
        if old and old.configuration:
            # It is reached already: the object was read through these credentials.
            return _Login(managed=old.managed, assume_role=old.assume_role)
        secret = read(cluster.namespace, cluster.secret)
        if secret is None:
            said = f"there is no Secret '{cluster.namespace}/{cluster.secret}' with its kubeconfig"
            if old is None:
                raise MissingError(f"cannot register cluster '{cluster.key}': {said}")
            return _Login(managed=old.managed, assume_role=old.assume_role, reason=said)
        declared = DeclaredCluster(cluster, read_entries(secret))
        return _Login(read_kubeconfig(declared, self._here.reach))

    def _require_takeover(self, cluster: SveltosCluster, old: Cluster, login: _Login) -> None:
        """Refuse a cluster that a command registered, and that leads to another address.

        Raises:
            ConflictError: the object does not take it over.
        """
        if CONFIGURATION_UID in old.annotations or old.configuration:
            return
        if cluster.metadata.annotations.get(TAKE_OVER) == "files":
            return
        if self._leads_there(old, login):
            return
        raise _OtherOriginError(
            f"cluster '{old.key}' was registered by a command, and has another address; annotate"
            f" this object with {TAKE_OVER}=files, or run `bellhop deregister cluster {old.key}`"
        )

    def _leads_there(self, old: Cluster, login: _Login) -> bool:
        if old.managed or login.managed:
            return old.managed == login.managed
        if login.kubeconfig is None:
            return False
        try:
            stored = sanitise(
                self._here.secrets.read(f"kubeconfig/{old.key}"), reach=self._here.reach
            )
        except PermanentError:
            return False
        return stored.server.lower() == login.kubeconfig.server.lower()

    def _is_registered(self, old: Cluster | None, login: _Login) -> bool:
        """Return whether a record stands for the cluster that a login leads to."""
        if old is None or old.managed != login.managed or old.assume_role != login.assume_role:
            return False
        if login.kubeconfig is None or login.managed:
            return True
        if find_given_version(old) == login.kubeconfig.version:
            return True
        return not is_another_cluster(self._here, old, login.kubeconfig)

    def _register(
        self,
        cluster: SveltosCluster,
        uid: str,
        fields: Mapping[str, Any],
        login: _Login,
        old: Cluster | None,
    ) -> str:
        assert login.kubeconfig is not None
        spec = Registration(
            cluster.namespace,
            cluster.metadata.name,
            login.kubeconfig,
            labels=_list_labels(cluster),
            annotations=_list_annotations(cluster, uid, forget_token(old) if old else None),
            pauses=fields,
            applyset="",
            managed=login.managed,
            assume_role=login.assume_role,
            inbound=self._here.inbound,
            **self._choose_sender(old),
        )
        try:
            done = register(self._here, spec)
        except (UnreachableError, UnauthorizedError) as error:
            if old is not None:
                raise
            register_unanswered(self._here, spec)
            return str(error)
        return _join(*done.warnings, self._describe_held())

    def _choose_sender(self, old: Cluster | None) -> dict[str, Any]:
        """Return how a cluster sends: as it does, or else by a forwarder if its image is known.

        Raises:
            InvalidError: it sends its audit log: only a command writes the files for that.
        """
        image = self._here.settings.forwarder_image
        if old and is_audited(old.forwarder):
            raise InvalidError(
                f"cannot register cluster '{old.key}' again: its API server sends its audit log;"
                " `bellhop register cluster` with --audit FOLDER writes the files for that"
            )
        if old and is_direct(old.forwarder):
            return {"direct": True}
        url = old.forwarder.get("url", "") if old else ""
        forwarder = bool(self._here.inbound.url) and bool(image or url)
        return {
            "forwarder": forwarder,
            "forwarder_url": url,
            "install": False if url or not forwarder else None,
            "image": image,
        }

    @until_written("change cluster '{key}'")
    def _follow(
        self, key: str, cluster: SveltosCluster, uid: str, fields: Mapping[str, Any]
    ) -> str:
        kept = self._here.records.clusters.get(key)
        if kept is None:
            raise ConflictError(f"cannot change cluster '{key}': it was deregistered meanwhile")
        old, annotations = kept.value, _list_annotations(cluster, uid, kept.value)
        digest = annotations[CONFIGURATION_DIGEST]
        if old.annotations.get(CONFIGURATION_DIGEST) == digest:
            return ""
        labels, given = carry_in_set(old, _list_labels(cluster), "")
        new = replace(
            old,
            labels=labels,
            given=given,
            annotations=annotations,
            spec=fields,
        )
        self._here.declare.register(new, expect=kept.token)
        return self._describe_held()

    def _list_fields(self, cluster: SveltosCluster) -> dict[str, Any]:
        """Return the fields of a cluster's spec that its record has.

        Raises:
            InvalidError: its window never opens, or is not written as cron writes it.
        """
        spec = cluster.spec
        found: dict[str, Any] = {"paused": True} if spec.paused else {}
        if spec.active_window:
            now = self._here.records.clock.now()
            window = read_window(spec.active_window.from_, spec.active_window.to, now)
            found["activeWindow"] = {"from": window.opens, "to": window.closes}
        if spec.data:
            found["data"] = spec.data
        if option := spec.token_request_renewal_option:
            found[RENEWAL_OPTION] = option.model_dump(by_alias=True, exclude_unset=True)
        return found

    def _describe_held(self) -> str:
        """Return what the deletion guard holds of the last change; empty if nothing."""
        held: list[HeldRemoval] = list(self._here.declare.held)
        if not held:
            return ""
        said = "; ".join(describe_removal(each) for each in held[:_SHOWN])
        more = f"; {len(held) - _SHOWN} more lose add-ons" if len(held) > _SHOWN else ""
        release = ", ".join(f"`{each.release}`" for each in group_by_change(held))
        return f"{said}{more}; they are held: nothing is removed before {release}"


class _OtherOriginError(ConflictError):
    """A command registered the cluster."""


def _require_origin(cluster: Cluster) -> None:
    if CONFIGURATION_UID not in cluster.annotations:
        raise ConflictError(
            f"cannot deregister cluster '{cluster.key}': a command registered it meanwhile"
        )


def release_cluster(here: Installation, key: str) -> None:
    """Keep a cluster as if a command had registered it: its object has no effect any more.

    Raises:
        BusyError: other writers keep winning.
    """
    update_cluster(here, key, _forget_origin)


def _forget_origin(cluster: Cluster) -> Cluster:
    marks = (CONFIGURATION_UID, CONFIGURATION_DIGEST, KUBECONFIG_SECRET, PAUSED_BY_COMMAND)
    rest = {key: each for key, each in cluster.annotations.items() if key not in marks}
    return replace(cluster, annotations=rest)


def _list_labels(cluster: SveltosCluster) -> dict[str, str]:
    """Return the labels of an object; it is in no applyset, from which a command might prune it."""
    return {key: each for key, each in cluster.metadata.labels.items() if key != APPLYSET}


def _list_annotations(cluster: SveltosCluster, uid: str, old: Cluster | None) -> dict[str, str]:
    """Return the annotations of an object, with Bellhop's own of the record.

    Those of Bellhop in the object are instructions about it, and never reach the record: by one,
    any author could choose the configuration cluster.
    """
    given = cluster.metadata.annotations.items()
    own = old.annotations.items() if old else ()
    dropped = (KUBECONFIG_SECRET, *([PAUSED_BY_COMMAND] if cluster.spec.paused else ()))
    return {
        **{key: each for key, each in given if not key.startswith(_OWN)},
        **{k: each for k, each in own if k.startswith(_OWN) and k not in dropped},
        **({KUBECONFIG_SECRET: cluster.secret} if cluster.spec.kubeconfig_name else {}),
        CONFIGURATION_UID: uid,
        CONFIGURATION_DIGEST: make_digest([uid, cluster.model_dump(mode="json")]),
    }


def _join(*sentences: str) -> str:
    return "; ".join(filter(None, sentences))
