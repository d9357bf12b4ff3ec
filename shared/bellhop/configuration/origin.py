"""The cluster that holds the configuration: set, ended, and where each manifest is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from bellhop.api.kinds import CLUSTER, CONFIGURED_KINDS, DeclarationKey, of
from bellhop.configuration.admission import ADOPT_SVELTOS, ADOPTING
from bellhop.configuration.definitions import DEFINITIONS
from bellhop.configuration.finalizers import find_finalizer, set_finalizer
from bellhop.configuration.notifier import list_effects, list_objects
from bellhop.configuration.records import State
from bellhop.configuration.sveltos_controllers import find_controller
from bellhop.configuration.writer import delete_written
from bellhop.core.gvk import GVK
from bellhop.declarations.apply import ManifestWriter
from bellhop.errors import ConflictError, MissingError
from bellhop.installation import Installation
from bellhop.ports.kube import Kube
from bellhop.state.cluster import Cluster

FILES = "files"
_LEAVES = {"stopMatchingBehavior": "LeavePolicies"}

_READ = {gvk.kind for gvk in CONFIGURED_KINDS}


class ConfigurationEntry(Struct, frozen=True):
    """A manifest, or an object of the configuration cluster, and whether it is in force."""

    key: DeclarationKey
    origin: str
    """The configuration cluster, or `files`."""
    state: State
    in_force: bool
    message: str = ""


def set_configuration_cluster(
    here: Installation, key: str, *, preview: bool = False, taken_over: bool = False
) -> Cluster:
    """Have the custom resources of a cluster be the configuration; a preview only reads them.

    Of one that is `taken_over` from Sveltos the profiles adopt what Sveltos deployed.

    Raises:
        ConflictError: another cluster holds the configuration, or controllers of Sveltos run in
            this one and it is no preview.
        MissingError: the cluster lacks a definition; nothing is changed.
    """
    other = here.catalogs.known().configuration
    if other not in ("", key):
        raise ConflictError(
            f"cannot have cluster '{key}' hold the configuration: '{other}' holds it; end that"
            " first with `bellhop set configuration-cluster --clear`"
        )
    kube = here.access.open(key)
    lacking = [
        each.name
        for each in DEFINITIONS
        if each.kind in _READ and not kube.resource(GVK(each.group, "v1beta1", each.kind))
    ]
    if lacking:
        raise MissingError(
            f"cannot have cluster '{key}' hold the configuration: it does not serve"
            f" {', '.join(lacking)}; install the definitions with `bellhop install crds {key}`"
        )
    if not preview:
        _refuse_second_controller(here, key, kube)
    # All statuses are to be written once.
    here.records.written.request_all(here.records.clock.now())
    if preview or not (taken_over or _is_taken_over(here, key)):
        return here.declare.configure(key, "preview" if preview else "on")
    cluster = here.declare.configure(key, "taken-over")
    for kind in ADOPTING:
        for namespace, name, kept in list(here.records.configured.list_kind(kind)):
            if kept.value.in_force:
                here.declare.remark((kind, namespace, name), ADOPT_SVELTOS)
    return cluster


def _is_taken_over(here: Installation, key: str) -> bool:
    cluster = here.catalogs.known().clusters.get(key)
    return cluster is not None and cluster.configuration == "taken-over"


def _refuse_second_controller(here: Installation, key: str, kube: Kube) -> None:
    if said := find_controller(kube, here.records.clock.now()):
        raise ConflictError(
            f"cannot have cluster '{key}' hold the configuration: controllers of Sveltos run there"
            f" ({said}), and both would write the same objects; scale them to zero and set it ten"
            " minutes later, or read the objects with --preview"
        )


def clear_configuration_cluster(here: Installation, *, leave: bool = False) -> str:
    """Have files hold everything that is in force; return the cluster that held it until now.

    Its objects lose the finalizers, and all that Bellhop wrote is deleted. Meanwhile it is only
    previewed, so that nothing is written again; if the command is killed, the next one goes on.
    For Sveltos, which is to take it back, `leave` keeps its finalizers and the objects that have
    them, and nothing stays in force: what was deployed is left in the clusters as nobody's.

    Raises:
        MissingError: no cluster holds the configuration.
        TemporaryError: it does not answer, or an object has just changed: try again.
    """
    key = here.catalogs.known().configuration
    if not key:
        raise MissingError("cannot end what is not set: no cluster holds the configuration")
    kube = here.access.open(key)
    here.declare.configure(key, "preview")
    for gvk in (each for each in CONFIGURED_KINDS if find_finalizer(each.kind) and not leave):
        for namespace, name, _ in here.records.configured.list_kind(gvk.kind):
            if found := kube.get(gvk, namespace, name):
                set_finalizer(kube, found, present=False)
    written = [*list_objects(here.records), *list_effects(here.records, here.catalogs.known())]
    if leave:
        _leave(here)
    delete_written(here.records, kube, written, keep_sveltos=leave)
    from bellhop.configuration.clusters import release_cluster  # noqa: PLC0415 - slow, and rare

    for namespace, name, _ in here.records.configured.list_kind(CLUSTER.kind):
        release_cluster(here, f"{namespace}/{name}")
    _forget_objects(here)
    here.declare.configure(key, "")
    # A worker may have previewed one meanwhile.
    _forget_objects(here)
    here.records.confirmations.delete(key)
    return key


def _forget_objects(here: Installation) -> None:
    for kind in (each.kind for each in CONFIGURED_KINDS):
        for namespace, name, _ in list(here.records.configured.list_kind(kind)):
            here.records.configured.delete(kind, namespace, name)


def _leave(here: Installation) -> None:
    """Delete what the cluster declared, and leave what it deployed."""
    given = here.records, here.catalogs, here.publisher, here.settings
    writer = ManifestWriter(*given, origin="cluster")
    held = [
        DeclarationKey(kind, namespace, name)
        for kind in (each.kind for each in CONFIGURED_KINDS if each != CLUSTER)
        for namespace, name, kept in here.records.configured.list_kind(kind)
        if kept.value.in_force and here.records.manifests.has(kind, namespace, name)
    ]
    writer.apply(
        [
            of({**found.value, "spec": _leaving(key.kind, found.value["spec"])})
            for key in held
            if key.kind in ADOPTING and (found := here.records.manifests.get(*key))
        ]
    )
    if held:
        writer.delete(held)


def _leaving(kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a manifest that leaves what it deployed, and becomes nobody's."""
    if kind != "ClusterPromotion":
        return {**spec, **_LEAVES}
    profile = {**(spec.get("profileSpec") or {}), **_LEAVES}
    return {**spec, "profileSpec": profile, "preserveClusterProfilesOnDelete": False}


def list_configuration(here: Installation) -> Iterator[ConfigurationEntry]:
    """Yield all manifests and all objects of the configuration cluster, by kind and name."""
    cluster = here.catalogs.known().configuration
    for kind in (each.kind for each in CONFIGURED_KINDS):
        known = {
            (namespace, name): each.value
            for namespace, name, each in here.records.configured.list_kind(kind)
        }
        stored = {(*place.rpartition("/")[::2],) for place in here.records.manifests.names(kind)}
        for namespace, name in sorted(known.keys() | stored):
            key, record = DeclarationKey(kind, namespace, name), known.get((namespace, name))
            if record:
                given = record.state, record.in_force, record.message
                yield ConfigurationEntry(key, cluster, *given)
            if record is None or (not record.in_force and (namespace, name) in stored):
                yield ConfigurationEntry(key, FILES, "InForce", in_force=True)
