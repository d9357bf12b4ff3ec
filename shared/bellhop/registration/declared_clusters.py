"""Registrations by files: a cluster that is as applied already is not registered again.

A pipeline runs often, and each registration rotates tokens and certificates. So a cluster whose
credentials are the stored ones only gets its new labels, annotations, data and pauses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from msgspec.structs import replace

from bellhop.api.sveltos_cluster import SveltosCluster
from bellhop.clusters.kubeconfig import Kubeconfig, refuse_passing, sanitise
from bellhop.core.address_policy import AddressPolicy
from bellhop.core.structs import Redacted
from bellhop.core.windows import read_window
from bellhop.errors import InvalidError, MissingError
from bellhop.extras.classifiers.labels import carry_in_set
from bellhop.installation import Installation
from bellhop.operations.pause import format_window
from bellhop.registration.record_update import refuse_configured
from bellhop.registration.registration import register
from bellhop.registration.request import Registration
from bellhop.state.cluster import Cluster

_REGISTERED, _RENEWED, _CHANGED, _UNCHANGED = "registered", "renewed", "configured", "unchanged"

_KEYS = ("re-kubeconfig", "kubeconfig", "value")
"""Entries of a Secret that have a kubeconfig, as Sveltos and Cluster API name them."""


class DeclaredCluster(Redacted, frozen=True):
    """A cluster as applied; `secret` are the entries of its Secret, None where there is none.

    `applyset` is the set that it becomes a member of; empty for none.
    """

    secret_fields: ClassVar[Collection[str]] = ("secret",)
    manifest: SveltosCluster
    secret: Mapping[str, bytes] | None
    applyset: str = ""

    def labels(self, old: Cluster | None) -> tuple[dict[str, str], dict[str, str]]:
        """The labels that it gets, except those that classifiers set."""
        return carry_in_set(old, self.manifest.labels, self.applyset)


class ClusterResult(NamedTuple):
    """The result for an applied cluster: registered, renewed, configured or unchanged."""

    change: str
    warnings: Sequence[str] = ()


Specify = Callable[[SveltosCluster, Kubeconfig], Registration]
"""Makes a registration of a declared cluster and its kubeconfig, without what is declared of it."""


def apply_cluster(
    here: Installation, declared: DeclaredCluster, specify: Specify, *, renew: bool
) -> ClusterResult:
    """Make a cluster as applied; `renew` registers it again even if it is.

    Raises:
        InvalidError: its kubeconfig or its window is refused; nothing is changed.
        MissingError: it is not registered, and no Secret has its kubeconfig.
        BellhopError: registration failed.
    """
    manifest, kubeconfig = declared.manifest, read_kubeconfig(declared, here.reach)
    fields = _list_fields(here, manifest)
    change = _change(here, declared, kubeconfig, fields, renew=renew)
    if kubeconfig and change in (_REGISTERED, _RENEWED):
        spec = replace(
            specify(manifest, kubeconfig),
            labels=manifest.labels,
            annotations=manifest.annotations,
            pauses=fields,
            applyset=declared.applyset,
        )
        done = register(here, spec)
        return ClusterResult(_RENEWED if done.again else _REGISTERED, done.warnings)
    return ClusterResult(_configure(here, declared, fields))


def preview_cluster(here: Installation, declared: DeclaredCluster, *, renew: bool) -> str:
    """Return the result that applying a cluster would have, without a call to it.

    Raises:
        InvalidError: its kubeconfig or its window is refused.
        MissingError: it is not registered, and no Secret has its kubeconfig.
    """
    kubeconfig = read_kubeconfig(declared, here.reach)
    return _change(here, declared, kubeconfig, _list_fields(here, declared.manifest), renew=renew)


def list_label_changes(here: Installation, declared: Iterable[DeclaredCluster]) -> list[Cluster]:
    """Return the registered clusters whose labels would change, with the new ones."""
    clusters = here.catalogs.known().clusters
    found = []
    for each in declared:
        old = clusters.get(each.manifest.key)
        labels, given = each.labels(old)
        if old and labels != old.labels:
            found.append(replace(old, labels=labels, given=given))
    return found


def _change(
    here: Installation,
    declared: DeclaredCluster,
    kubeconfig: Kubeconfig | None,
    fields: Mapping[str, Any],
    *,
    renew: bool,
) -> str:
    manifest = declared.manifest
    refuse_configured(here, "register", manifest.key)
    kept = here.records.clusters.get(manifest.key)
    if kubeconfig is None and kept is None:
        raise MissingError(
            f"cannot register cluster '{manifest.key}': no Secret"
            f" '{manifest.namespace}/{manifest.secret}' with its kubeconfig is among the files"
        )
    if kept is None:
        return _REGISTERED
    if kubeconfig and (renew or not _is_registered(kept.value, kubeconfig)):
        return _RENEWED
    return _CHANGED if any(_diff_cluster(kept.value, declared, fields)) else _UNCHANGED


def _is_registered(old: Cluster, kubeconfig: Kubeconfig) -> bool:
    return old.credentials == kubeconfig.version and "begun" not in old.forwarder


class _Differences(NamedTuple):
    """Changes that make a registered cluster the applied one; all are empty if it is."""

    annotations: Mapping[str, str | None]
    data: Mapping[str, str | None]
    pauses: Mapping[str, Any]
    labels: Mapping[str, str | None]


def _configure(here: Installation, declared: DeclaredCluster, fields: Mapping[str, Any]) -> str:
    """Change what differs, labels last: these may have add-ons held; return the result."""
    key = declared.manifest.key
    kept = here.records.clusters.get(key)
    if kept is None:
        raise MissingError(f"cannot change cluster '{key}': it is not registered any more")
    found = _diff_cluster(kept.value, declared, fields)
    if found.data or found.annotations:
        here.declare.annotate(key, found.annotations, found.data)
    if found.pauses:
        here.declare.specify(key, "pause", found.pauses)
    if found.labels:
        here.declare.label(key, found.labels)
    return _CHANGED if any(found) else _UNCHANGED


def _diff_cluster(
    old: Cluster, declared: DeclaredCluster, fields: Mapping[str, Any]
) -> _Differences:
    pauses = {
        name: value or None
        for name, value in fields.items()
        if name != "data" and (value or None) != (old.spec.get(name) or None)
    }
    return _Differences(
        _diff_mapping(old.annotations, declared.manifest.annotations),
        _diff_mapping(old.spec.get("data") or {}, fields.get("data")),
        pauses,
        _diff_mapping(old.labels, declared.labels(old)[0]),
    )


def _diff_mapping(old: Mapping[str, str], new: Mapping[str, str] | None) -> dict[str, str | None]:
    """Return the changes from one mapping to another; none where the new one is not given."""
    if new is None:
        return {}
    removed = dict.fromkeys(old.keys() - new.keys())
    return {**removed, **{key: value for key, value in new.items() if old.get(key) != value}}


def _list_fields(here: Installation, manifest: SveltosCluster) -> dict[str, Any]:
    spec, said = manifest.spec, manifest.spec.model_fields_set
    found: dict[str, Any] = {}
    if "paused" in said:
        found["paused"] = spec.paused
    if spec.active_window:
        window = spec.active_window
        found |= format_window(read_window(window.from_, window.to, here.records.clock.now()))
    if "data" in said:
        found["data"] = spec.data
    return found


def read_kubeconfig(declared: DeclaredCluster, reach: AddressPolicy) -> Kubeconfig | None:
    """Return the kubeconfig of an applied cluster; None if it has no Secret.

    It may have another author, so no program that it names is run.

    Raises:
        InvalidError: it is refused, or expires soon, or a cloud manages the cluster.
    """
    manifest, entries = declared.manifest, declared.secret
    if manifest.spec.workload_identity:
        raise InvalidError(
            "it is read from the configuration cluster only; register this one by `bellhop register"
            " cluster-eks` or `cluster-gke`",
            where="spec.workloadIdentity",
        )
    if entries is None:
        return None
    where = f"Secret '{manifest.namespace}/{manifest.secret}'"
    names = [manifest.spec.kubeconfig_key_name] if manifest.spec.kubeconfig_key_name else _KEYS
    text = next((entries[name] for name in names if name in entries), None)
    if text is None and len(entries) == 1 and names is _KEYS:
        [text] = entries.values()
    if text is None:
        raise InvalidError(f"it has no entry {' or '.join(map(repr, names))}", where=where)
    try:
        found = sanitise(text, reach=reach)
        refuse_passing(found)
    except InvalidError as error:
        raise InvalidError(str(error), where=where) from error
    return found
