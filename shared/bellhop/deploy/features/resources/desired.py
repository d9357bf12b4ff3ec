"""Which objects a profile wants in a cluster: rendered for it, placed in it, and allowed there.

What is Local is rendered for other clusters, which its host brings it for: see `stages.hosting`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.catalog.catalog import cluster_object
from bellhop.clusters.management_cluster import told
from bellhop.core.digest import digest
from bellhop.core.generated_names import profile_kind
from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import ROLE_REQUEST
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.resources.kustomizations import KustomizationBuilder
from bellhop.deploy.features.resources.planning import Desired, desired, disputed
from bellhop.deploy.files import FilesReader
from bellhop.deploy.references import TEMPLATES, Resources
from bellhop.errors import BellhopError, PermanentError, TemporaryError, TooLargeError
from bellhop.extras.roles.manifests import with_bindings
from bellhop.gotemplate import Limits
from bellhop.ports.access import Access
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Kube
from bellhop.rendering.allow_limits import NotAllowedError, refuse_beyond, refuse_placed
from bellhop.rendering.event_contents import deploy_time
from bellhop.rendering.manifests import kinds_defined
from bellhop.state.record import Cluster, Content, FeatureName, Profile

MOST_HOSTED = 32 * 1024 * 1024
"""Of all that is Local of one profile, as JSON: in Python it takes several times as much."""


class _Given(Struct, frozen=True):
    """What templates are given for one cluster, or why that is not there: `wrong`.

    Of what is the cluster's own, only kustomizations lack what is not there.
    """

    cluster: Cluster
    resources: dict[str, dict[str, Any]]
    wrong: BellhopError | None = None


class DesiredState:
    """What profiles want in clusters."""

    def __init__(
        self,
        access: Access,
        resources: Resources,
        files: FilesReader,
        building: KustomizationBuilder,
        limits: Limits,
        clock: Clock,
        patience: timedelta,
    ) -> None:
        """Render within limits; for others read, and then render, as long as there is patience."""
        self._access = access
        self._resources = resources
        self._files = files
        self._building = building
        self._limits = limits
        self._clock = clock
        self._patience = patience

    def of(self, work: ReconcileContext) -> tuple[Desired, ...]:
        """Return the objects for this cluster, each in the scope its kind has there.

        Those of the features Resources and Kustomize together: they may want the same ones. Why the
        latter cannot have its own is noted in the work, for that to say.
        """
        own, hosted = self._given(work, self._clock.now() + self._patience)
        work.read = _digest(own, hosted)
        wanted = [each for given in own for each in self._own(work, given)]
        wanted += [each for given in own for each in self._kustomized(work, given)]
        wanted += self._local(work, hosted)
        kube = self._access.open(work.cluster.key, version=work.cluster.credentials)
        crds = kinds_defined(each.manifest for each in wanted)
        placed = tuple(self._placed(kube, work, each, crds) for each in wanted)
        refuse_placed(work.profile, (each.key for each in placed if not each.how.local))
        return _undisputed(work, _admitted(work, placed))

    def _given(
        self, work: ReconcileContext, until: datetime | None = None
    ) -> tuple[list[_Given], list[_Given]]:
        """Read what templates are given for the cluster itself, and for those that it hosts.

        Those for which there is no time are no guests of this work any more.
        """
        of = self._resources.reader(work.profile, TEMPLATES, "policyRefs")
        built_of = self._resources.reader(work.profile, "kustomizationRefs")
        own: list[_Given] = []
        if not work.only_hosts:
            given = _Given(work.cluster, of(work.cluster))
            try:
                own.append(replace(given, resources=given.resources | built_of(work.cluster)))
            except BellhopError as error:
                own.append(replace(given, wrong=error))
        hosted: list[_Given] = []
        for guest in work.guests:
            if until and self._clock.now() > until:
                work.lacking.append(_beyond(work, len(hosted), self._slow("read")))
                work.guests = work.guests[: len(hosted)]
                break
            try:
                hosted.append(_Given(guest, of(guest) | built_of(guest)))
            except PermanentError as error:
                hosted.append(_Given(guest, {}, error))
        return own, hosted

    def _own(self, work: ReconcileContext, given: _Given) -> tuple[Desired, ...]:
        """Return what a cluster has of its own.

        Raises:
            PermanentError: it cannot be rendered.
        """
        own = _own(work.profile, given.cluster, "Resources")
        contents = self._rendered(work.profile, given, own)
        if profile_kind(work.profile.name) == ROLE_REQUEST:
            contents = with_bindings(contents, work.profile.name)
        return desired(contents, tier=work.profile.tier)

    def _kustomized(self, work: ReconcileContext, given: _Given) -> tuple[Desired, ...]:
        """Return what kustomizations build for a cluster."""
        try:
            if given.wrong:
                raise given.wrong
            own = _own(work.profile, given.cluster, "Kustomize")
            contents = self._rendered(work.profile, given, own)
        except BellhopError as error:
            work.unbuilt = error
            return ()
        return desired(contents, tier=work.profile.tier)

    def _local(self, work: ReconcileContext, hosted: Sequence[_Given]) -> Iterator[Desired]:
        """Yield what a cluster hosts; where it cannot be rendered for one, that harms no other.

        Nor may it be so much, or take so long, that no try ever ended.
        """
        seen: set[str] = set()
        size, until = 0, self._clock.now() + self._patience
        for number, given in enumerate(hosted):
            if size > MOST_HOSTED:
                why = f"together it is larger than {MOST_HOSTED // 1024**2} MiB"
                work.lacking.append(_beyond(work, number, why))
                return
            if self._clock.now() > until:
                work.lacking.append(_beyond(work, number, self._slow("render")))
                return
            try:
                wanted = self._hosted(work, given, seen)
            except PermanentError as error:
                work.lacking.append(told(given.cluster.key, error))
                continue
            size += sum(len(json.dumps(each.manifest)) for each in wanted)
            yield from wanted

    def _slow(self, what: str) -> str:
        return f"it takes longer than {self._patience.total_seconds():.0f} s to {what} it"

    def _hosted(self, work: ReconcileContext, given: _Given, seen: set[str]) -> list[Desired]:
        """Return what is hosted for a cluster; what is alike for all of a namespace not again.

        Raises:
            PermanentError: it cannot be rendered for that cluster.
        """
        if given.wrong:
            raise given.wrong
        cluster = given.cluster
        once = cluster.namespace in seen
        made = [
            each
            for content in _for(work.profile, cluster, local=True)
            if not (once and content.alike)
            for each in desired(
                self._rendered(work.profile, given, [content]),
                tier=work.profile.tier,
                guest="" if content.alike else cluster.key,
            )
        ]
        seen.add(cluster.namespace)
        return made

    def _rendered(
        self, profile: Profile, given: _Given, contents: Iterable[Content]
    ) -> tuple[Content, ...]:
        root = cluster_object(given.cluster)
        return tuple(
            deploy_time(each, root, given.resources, limits=self._limits)
            for content in contents
            for each in self._whole(profile, given, root, content)
        )

    def _whole(
        self, profile: Profile, given: _Given, root: Mapping[str, Any], content: Content
    ) -> Iterable[Content]:
        """Return a content with what its files hold, and its kustomization builds."""
        if content.files is None or content.missing:
            return [self._building.built(content, root, given.resources)]
        found = self._files.read(profile, content, root, given.resources)
        if found is None:
            return []
        named = replace(content, ref=found.ref)
        if named.kustomization:
            return [self._building.built(named, root, given.resources, found)]
        # Most users have no such files, and a cold function is not to load what reads them.
        from bellhop.rendering.files import contents_for  # noqa: PLC0415

        files, annotations = found.files, found.annotations
        return contents_for(named, files, annotations, root, given.resources, self._limits)

    def _placed(
        self,
        kube: Kube,
        work: ReconcileContext,
        each: Desired,
        crds: Mapping[tuple[str, str], bool],
    ) -> Desired:
        gvk, namespace, name = each.key
        resource = kube.resource(gvk)
        namespaced = resource.namespaced if resource else crds.get((gvk.group, gvk.kind), True)
        usual = (work.profile.namespace if each.how.local else "") or "default"
        namespace = (namespace or usual) if namespaced else ""
        key = ObjectKey(gvk, namespace, name)
        return each if key == each.key else replace(each, key=key)

    def read_otherwise(self, work: ReconcileContext) -> bool:
        """Say whether what templates read has changed since; what cannot be read now has not."""
        if not work.read or not work.profile.reads:
            return False
        try:
            own, hosted = self._given(work)
        except BellhopError:
            return False
        unread = any(isinstance(each.wrong, TemporaryError) for each in own)
        return not unread and _digest(own, hosted) != work.read


def _for(profile: Profile, cluster: Cluster, *, local: bool) -> Iterator[Content]:
    """Yield the contents of a profile that are for a cluster, or Local for it."""
    for content in profile.contents:
        local_here = content.how.local == local and content.chart is None
        if local_here and content.is_for(cluster):
            yield content


def _own(profile: Profile, cluster: Cluster, feature: FeatureName) -> Iterator[Content]:
    """Yield those that a feature brings to a cluster itself."""
    return (each for each in _for(profile, cluster, local=False) if each.feature == feature)


def _admitted(work: ReconcileContext, wanted: Iterable[Desired]) -> list[Desired]:
    """Return what may be brought; what is Local and may not harms nothing else that is hosted."""
    admitted, refused = [], []
    for each in wanted:
        try:
            if each.how.local:
                refuse_placed(work.profile, (each.key,))
                refuse_beyond(work.profile, (each.key,))
            admitted.append(each)
        except NotAllowedError as error:
            refused.append(told(each.guest, error))
    work.lacking += refused
    return admitted


def _undisputed(work: ReconcileContext, wanted: Sequence[Desired]) -> tuple[Desired, ...]:
    """Return what is wanted in one form alone; of what is not nothing is changed."""
    refused = disputed(wanted)
    work.lacking += refused.values()
    return tuple(each for each in wanted if each.key.identity not in refused)


def _beyond(work: ReconcileContext, number: int, why: str) -> TooLargeError:
    """Say that a cluster hosts no more, after so many of those for which it is to."""
    of = len(work.profile.guests(work.cluster.key))
    return TooLargeError(
        f"cannot deploy what is Local of '{work.profile.shown}' for more than {number} of its {of}"
        f" clusters: {why}; have less of it, or several profiles that each select some of them"
    )


def _digest(own: Iterable[_Given], hosted: Iterable[_Given]) -> str:
    """Digest what templates were given; where nothing is hosted, as it always was."""
    mine = [each.resources for each in own]
    # One by one: what is read for all of a fleet may be the same, and large.
    others = [digest([each.resources, str(each.wrong or "")]) for each in hosted]
    return digest([mine, others]) if others or not mine else digest(mine[0])
