"""Mark of an installation: its id as an annotation of its own objects in a cluster.

The namespace and the webhook configuration of Bellhop have it; if they differ, the namespace's
counts. A cluster without a mark belongs to any installation that has registered it: an earlier
version wrote none, and neither does a registration without events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.clusters.records import InstallationId, Installations
from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import INSTALLATION, INSTALLATION_ADDRESS
from bellhop.errors import ConflictError, PermanentError
from bellhop.ports.kube import Kube
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE

_MARKED = (
    (GVK("", "v1", "Namespace"), NAMESPACE),
    (GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"), NAME),
)
_SHOWN = 8
_LONGEST = 200


def marked(manifest: Mapping[str, Any], mine: InstallationId) -> dict[str, Any]:
    """Return a manifest with the annotations of an installation."""
    metadata = dict(manifest["metadata"])
    metadata["annotations"] = {**metadata.get("annotations", {}), **_annotations(mine)}
    return {**manifest, "metadata": metadata}


def other(installations: Installations, kube: Kube) -> str:
    """Return a text that names another installation which owns a cluster; empty if there is none.

    Without the permission to read the marks no other installation is known.
    """
    found = next(_marks(kube), None)
    if found is None or found.id == installations.get().id:
        return ""
    at = f", at {found.address}" if found.address else ""
    return f"another installation of Bellhop ({found.id[:_SHOWN]}{at})"


def refuse_taken(installations: Installations, kube: Kube) -> None:
    """Refuse to change the objects of another installation in a cluster.

    Raises:
        ConflictError: the cluster belongs to another installation.
    """
    if taken := other(installations, kube):
        raise ConflictError(f"{taken} has taken the cluster over")


def take_over(kube: Kube, mine: InstallationId) -> None:
    """Write an installation's id over that of another one.

    Raises:
        PermanentError: the credentials may not, or the API server refuses.
    """
    for gvk, name in _MARKED:
        if _text(_read(kube, gvk, name), INSTALLATION):
            kube.merge(gvk, "", name, {"metadata": {"annotations": _annotations(mine)}})


def _annotations(mine: InstallationId) -> dict[str, str]:
    return {INSTALLATION: mine.id, INSTALLATION_ADDRESS: mine.address}


def _marks(kube: Kube) -> Iterator[InstallationId]:
    for gvk, name in _MARKED:
        annotations = _read(kube, gvk, name)
        if found := _text(annotations, INSTALLATION):
            yield InstallationId(found, _text(annotations, INSTALLATION_ADDRESS))


def _read(kube: Kube, gvk: GVK, name: str) -> Mapping[str, Any]:
    try:
        metadata = (kube.get(gvk, "", name) or {}).get("metadata") or {}
    except PermanentError:
        return {}
    found = metadata.get("annotations")
    # After a deregistration the namespace is there until all in it is deleted.
    return found if isinstance(found, Mapping) and "deletionTimestamp" not in metadata else {}


def _text(annotations: Mapping[str, Any], name: str) -> str:
    """Read an annotation in printable form: any user of the cluster may have written it."""
    text = str(annotations.get(name) or "")[:_LONGEST]
    return "".join(letter if letter.isprintable() else " " for letter in text)
