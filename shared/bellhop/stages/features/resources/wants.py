"""Which objects a profile wants in a cluster: rendered for it, placed in it, and allowed there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bellhop.engine.allowing import refuse_placed
from bellhop.engine.catalog import cluster_object
from bellhop.engine.digest import digest
from bellhop.engine.granting import with_bindings
from bellhop.engine.instantiate import deploy_time
from bellhop.engine.naming import profile_kind
from bellhop.errors import BellhopError
from bellhop.gotemplate import Limits
from bellhop.model.gvk import ObjectKey
from bellhop.model.identity import ROLE_REQUEST
from bellhop.model.record import Content
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.stages.features.resources.planning import Desired, desired
from bellhop.stages.features.resources.reading import Resources
from bellhop.stages.work import Work


class Wants:
    """What profiles want in clusters."""

    def __init__(self, access: Access, resources: Resources, limits: Limits) -> None:
        self._access = access
        self._resources = resources
        self._limits = limits

    def of(self, work: Work) -> tuple[Desired, ...]:
        """Return the objects for this cluster, each in the scope its kind has there."""
        root = cluster_object(work.cluster)
        resources = self._resources.of(work.profile, work.cluster)
        work.read = digest(resources)
        contents = [
            deploy_time(content, root, resources, limits=self._limits)
            for content in work.profile.contents
            if content.namespace in ("", work.cluster.namespace)
        ]
        if profile_kind(work.profile.name) == ROLE_REQUEST:
            contents = [*with_bindings(contents, work.profile.name)]
        kube = self._access.open(work.cluster.key, version=work.cluster.credentials)
        crds = _kinds_defined(contents)
        placed = tuple(
            self._placed(kube, each, crds) for each in desired(contents, tier=work.profile.tier)
        )
        refuse_placed(work.profile, (each.key for each in placed))
        return placed

    def _placed(self, kube: Kube, each: Desired, crds: Mapping[tuple[str, str], bool]) -> Desired:
        gvk, namespace, name = each.key
        resource = kube.resource(gvk)
        namespaced = resource.namespaced if resource else crds.get((gvk.group, gvk.kind), True)
        namespace = (namespace or "default") if namespaced else ""
        return replace(each, key=ObjectKey(gvk, namespace, name))

    def read_otherwise(self, work: Work) -> bool:
        """Say whether what templates read has changed since; what cannot be read now has not."""
        if not work.read or not work.profile.reads:
            return False
        try:
            return digest(self._resources.of(work.profile, work.cluster)) != work.read
        except BellhopError:
            return False


def _kinds_defined(contents: Sequence[Content]) -> dict[tuple[str, str], bool]:
    """Say of each kind that the contents themselves define whether it is namespaced."""
    found = {}
    for content in contents:
        for manifest in content.manifests:
            if manifest["kind"] == "CustomResourceDefinition":
                spec = manifest.get("spec") or {}
                names = spec.get("names") or {}
                found[spec.get("group", ""), names.get("kind", "")] = spec.get("scope") != "Cluster"
    return found
