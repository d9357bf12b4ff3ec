"""The cluster that holds the configuration: set, ended, and where each manifest is kept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from msgspec import Struct

from bellhop.api.kinds import CLUSTER, CONFIGURED_KINDS, DeclarationKey
from bellhop.configuration.definitions import DEFINITIONS
from bellhop.configuration.finalizers import find_finalizer, set_finalizer
from bellhop.configuration.notifier import list_effects, list_objects
from bellhop.configuration.records import State
from bellhop.configuration.sveltos_controllers import find_controller
from bellhop.configuration.writer import delete_written
from bellhop.core.gvk import GVK
from bellhop.errors import ConflictError, MissingError
from bellhop.installation import Installation
from bellhop.ports.kube import Kube
from bellhop.state.cluster import Cluster

FILES = "files"

_READ = {gvk.kind for gvk in CONFIGURED_KINDS}


class ConfigurationEntry(Struct, frozen=True):
    """A manifest, or an object of the configuration cluster, and whether it is in force."""

    key: DeclarationKey
    origin: str
    """The configuration cluster, or `files`."""
    state: State
    in_force: bool
    message: str = ""


def set_configuration_cluster(here: Installation, key: str, *, preview: bool) -> Cluster:
    """Have the custom resources of a cluster be the configuration; a preview only reads them.

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
    return here.declare.configure(key, "preview" if preview else "on")


def _refuse_second_controller(here: Installation, key: str, kube: Kube) -> None:
    if said := find_controller(kube, here.records.clock.now()):
        raise ConflictError(
            f"cannot have cluster '{key}' hold the configuration: controllers of Sveltos run there"
            f" ({said}), and both would write the same objects; scale them to zero and set it ten"
            " minutes later, or read the objects with --preview"
        )


def clear_configuration_cluster(here: Installation) -> str:
    """Have files hold everything that is in force; return the cluster that held it until now.

    Its objects lose the finalizers, and all that Bellhop wrote is deleted. Meanwhile it is only
    previewed, so that nothing is written again; if the command is killed, the next one goes on.

    Raises:
        MissingError: no cluster holds the configuration.
        TemporaryError: it does not answer, or an object has just changed: try again.
    """
    key = here.catalogs.known().configuration
    if not key:
        raise MissingError("cannot end what is not set: no cluster holds the configuration")
    kube = here.access.open(key)
    here.declare.configure(key, "preview")
    for gvk in (each for each in CONFIGURED_KINDS if find_finalizer(each.kind)):
        for namespace, name, _ in here.records.configured.list_kind(gvk.kind):
            if found := kube.get(gvk, namespace, name):
                set_finalizer(kube, found, present=False)
    written = list_objects(here.records), list_effects(here.records, here.catalogs.known())
    delete_written(here.records, kube, chain(*written))
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
