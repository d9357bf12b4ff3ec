"""Which objects a profile wants in a cluster: rendered for it, placed in it, and allowed there.

What is Local is rendered for other clusters, which its host brings it for: see `stages.hosting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bellhop.engine.allowing import refuse_beyond, refuse_placed
from bellhop.engine.catalog import cluster_object
from bellhop.engine.digest import digest
from bellhop.engine.granting import with_bindings
from bellhop.engine.instantiate import deploy_time
from bellhop.engine.naming import profile_kind
from bellhop.errors import BellhopError, PermanentError
from bellhop.frozen import frozen
from bellhop.gotemplate import Limits
from bellhop.model.gvk import ObjectKey
from bellhop.model.identity import ROLE_REQUEST
from bellhop.model.record import Cluster
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.stages.features.resources.planning import Desired, desired
from bellhop.stages.features.resources.reading import Resources
from bellhop.stages.work import Work


@frozen
class _Given:
    """What templates are given for one cluster, or why that is not there: `wrong`."""

    cluster: Cluster
    resources: dict[str, dict[str, Any]]
    wrong: PermanentError | None = None


class Wants:
    """What profiles want in clusters."""

    def __init__(self, access: Access, resources: Resources, limits: Limits) -> None:
        self._access = access
        self._resources = resources
        self._limits = limits

    def of(self, work: Work) -> tuple[Desired, ...]:
        """Return the objects for this cluster, each in the scope its kind has there."""
        own, hosted = self._given(work)
        work.read = _digest(own, hosted)
        wanted = [each for given in own for each in self._rendered(work, given)]
        wanted += self._local(work, hosted)
        kube = self._access.open(work.cluster.key, version=work.cluster.credentials)
        crds = _kinds_defined(each.manifest for each in wanted)
        placed = tuple(self._placed(kube, work, each, crds) for each in wanted)
        refuse_placed(work.profile, (each.key for each in placed))
        refuse_beyond(work.profile, (each.key for each in placed if each.how.local))
        return placed

    def _given(self, work: Work) -> tuple[list[_Given], list[_Given]]:
        """Read what templates are given for the cluster itself, and for those that it hosts."""
        of = self._resources.reader(work.profile)
        own = [] if work.only_hosts else [_Given(work.cluster, of(work.cluster))]
        hosted: list[_Given] = []
        for guest in work.guests:
            try:
                hosted.append(_Given(guest, of(guest)))
            except PermanentError as error:
                hosted.append(_Given(guest, {}, error))
        return own, hosted

    def _rendered(
        self, work: Work, given: _Given, *, local: bool = False, once: bool = False
    ) -> tuple[Desired, ...]:
        """Return what a cluster has of its own, or is hosted for it; what is alike for all `once`.

        Raises:
            PermanentError: it cannot be rendered for that cluster.
        """
        root = cluster_object(given.cluster)
        contents = [
            deploy_time(content, root, given.resources, limits=self._limits)
            for content in work.profile.contents
            if content.how.local == local
            and content.namespace in ("", given.cluster.namespace)
            and not (once and content.alike)
        ]
        if profile_kind(work.profile.name) == ROLE_REQUEST:
            contents = [*with_bindings(contents, work.profile.name)]
        return desired(contents, tier=work.profile.tier, guest=given.cluster.key if local else "")

    def _local(self, work: Work, hosted: Iterable[_Given]) -> Iterator[Desired]:
        """Yield what a cluster hosts; where it cannot be rendered for one, that harms no other."""
        seen: set[str] = set()
        for given in hosted:
            try:
                if given.wrong:
                    raise given.wrong
                yield from self._rendered(
                    work, given, local=True, once=given.cluster.namespace in seen
                )
                seen.add(given.cluster.namespace)
            except PermanentError as error:
                error.args = (f"for cluster '{given.cluster.key}': {error}",)
                work.lacking.append(error)

    def _placed(
        self, kube: Kube, work: Work, each: Desired, crds: Mapping[tuple[str, str], bool]
    ) -> Desired:
        gvk, namespace, name = each.key
        resource = kube.resource(gvk)
        namespaced = resource.namespaced if resource else crds.get((gvk.group, gvk.kind), True)
        usual = (work.profile.namespace if each.how.local else "") or "default"
        namespace = (namespace or usual) if namespaced else ""
        return replace(each, key=ObjectKey(gvk, namespace, name))

    def read_otherwise(self, work: Work) -> bool:
        """Say whether what templates read has changed since; what cannot be read now has not."""
        if not work.read or not work.profile.reads:
            return False
        try:
            return _digest(*self._given(work)) != work.read
        except BellhopError:
            return False


def _digest(own: Iterable[_Given], hosted: Iterable[_Given]) -> str:
    """Digest what templates were given; where nothing is hosted, as it always was."""
    mine = [each.resources for each in own]
    others = [[each.resources, str(each.wrong or "")] for each in hosted]
    return digest([mine, others]) if others or not mine else digest(mine[0])


def _kinds_defined(manifests: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], bool]:
    """Say of each kind that the contents themselves define whether it is namespaced."""
    found = {}
    for manifest in manifests:
        if manifest["kind"] == "CustomResourceDefinition":
            spec = manifest.get("spec") or {}
            names = spec.get("names") or {}
            found[spec.get("group", ""), names.get("kind", "")] = spec.get("scope") != "Cluster"
    return found
