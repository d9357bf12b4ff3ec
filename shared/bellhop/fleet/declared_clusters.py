"""Registrations that are declared in files: what is as declared already is not registered again.

A pipeline runs often, and to register again rotates tokens and certificates. So a cluster whose
credentials are the stored ones only gets its other labels, annotations, data and pauses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from bellhop.engine.classifying import carry
from bellhop.engine.pausing import window_of
from bellhop.errors import InvalidError, MissingError
from bellhop.fleet.installation import Installation
from bellhop.fleet.pausing import specified
from bellhop.fleet.registration import Registration, register
from bellhop.model.kubeconfig import Kubeconfig, refuse_passing, sanitise
from bellhop.model.reach import Reach
from bellhop.model.record import Cluster
from bellhop.model.sveltos_cluster import SveltosCluster
from bellhop.redacted import Redacted

_KEYS = ("re-kubeconfig", "kubeconfig", "value")
"""Entries of a Secret that have a kubeconfig, as Sveltos and Cluster API name them."""


class DeclaredCluster(Redacted, frozen=True):
    """A cluster as declared; `secret` are the entries of its Secret, None where there is none."""

    secret_fields: ClassVar[Collection[str]] = ("secret",)
    manifest: SveltosCluster
    secret: Mapping[str, bytes] | None


class Settled(NamedTuple):
    """What became of a declared cluster: registered, renewed, configured or unchanged."""

    change: str
    warnings: Sequence[str] = ()


Specify = Callable[[SveltosCluster, Kubeconfig, Mapping[str, Any]], Registration]
"""Makes a registration of a declared cluster, its kubeconfig, and the fields of its spec."""


def settle(
    here: Installation, declared: DeclaredCluster, specify: Specify, *, renew: bool
) -> Settled:
    """Have a cluster be as declared; `renew` registers it again even if it is.

    Raises:
        InvalidError: its kubeconfig or its window is refused; nothing is changed.
        MissingError: it is not registered, and no Secret has its kubeconfig.
        BellhopError: as registering it does.
    """
    manifest, kubeconfig = declared.manifest, kubeconfig_of(declared, here.reach)
    fields = _fields(here, manifest)
    kept = here.records.clusters.get(manifest.key)
    old = kept.value if kept else None
    if kubeconfig is None and old is None:
        raise MissingError(
            f"cannot register cluster '{manifest.key}': no Secret"
            f" '{manifest.namespace}/{manifest.secret}' with its kubeconfig is among the files"
        )
    if kubeconfig and (renew or old is None or not _has(old, kubeconfig)):
        done = register(here, specify(manifest, kubeconfig, fields))
        return Settled("renewed" if done.again else "registered", done.warnings)
    return Settled(_configure(here, manifest, fields))


def _has(old: Cluster, kubeconfig: Kubeconfig) -> bool:
    """Say whether a cluster is registered with a kubeconfig, and completely."""
    return old.credentials == kubeconfig.version and "begun" not in old.forwarder


def _configure(here: Installation, manifest: SveltosCluster, fields: Mapping[str, Any]) -> str:
    """Change what differs, labels last: those may have add-ons held; say whether anything did."""
    kept = here.records.clusters.get(manifest.key)
    if kept is None:
        raise MissingError(f"cannot change cluster '{manifest.key}': it is not registered any more")
    old, key = kept.value, manifest.key
    data = _difference(old.spec.get("data") or {}, fields.get("data"))
    annotations = _difference(old.annotations, manifest.annotations)
    if data or annotations:
        here.declare.annotate(key, annotations, data)
    pauses = {
        name: value or None
        for name, value in fields.items()
        if name != "data" and (value or None) != (old.spec.get(name) or None)
    }
    if pauses:
        here.declare.specify(key, "pause", pauses)
    labels = _difference(old.labels, carry(old, manifest.labels)[0])
    if labels:
        here.declare.label(key, labels)
    return "configured" if data or annotations or pauses or labels else "unchanged"


def _difference(old: Mapping[str, str], new: Mapping[str, str] | None) -> dict[str, str | None]:
    """Return what changes one mapping into another; nothing where the new one is not given."""
    if new is None:
        return {}
    removed = dict.fromkeys(old.keys() - new.keys())
    return {**removed, **{key: value for key, value in new.items() if old.get(key) != value}}


def _fields(here: Installation, manifest: SveltosCluster) -> dict[str, Any]:
    """Return the fields of a cluster's spec that its document speaks of."""
    spec, said = manifest.spec, manifest.spec.model_fields_set
    found: dict[str, Any] = {}
    if "paused" in said:
        found["paused"] = spec.paused
    if spec.active_window:
        window = spec.active_window
        found |= specified(window_of(window.from_, window.to, here.records.clock.now()))
    if "data" in said:
        found["data"] = spec.data
    return found


def kubeconfig_of(declared: DeclaredCluster, reach: Reach) -> Kubeconfig | None:
    """Read the kubeconfig of a declared cluster; None if it has no Secret.

    Somebody else may have written it, so no program that it names is run.

    Raises:
        InvalidError: it is refused, or expires soon.
    """
    if declared.secret is None:
        return None
    manifest, entries = declared.manifest, declared.secret
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
