"""Versions of kinds, of which each release of Kubernetes serves others."""

from __future__ import annotations

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK


def another_version(kube: KubeClient, gvk: GVK) -> GVK | None:
    """Return a kind in the highest other version that an API server serves; None if it has none."""
    others = set(kube.versions(gvk.group, gvk.kind)) - {gvk.version}
    return gvk._replace(version=max(others)) if others else None
