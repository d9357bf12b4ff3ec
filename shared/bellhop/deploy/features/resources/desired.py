"""The desired objects of a profile in a cluster: rendered, with namespaces, and allowed there.

Local objects in the management cluster are rendered for each of their target clusters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.catalog.catalog import cluster_object
from bellhop.clusters.management_cluster import add_target
from bellhop.core.digest import digest
from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import ROLE_REQUEST, profile_kind
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.resources.kustomizations import KustomizationBuilder
from bellhop.deploy.features.resources.planning import Desired, desired_objects, disputed
from bellhop.deploy.files import FilesReader
from bellhop.deploy.references import TEMPLATES, Resources
from bellhop.errors import BellhopError, PermanentError, TemporaryError, TooLargeError
from bellhop.extras.roles.manifests import with_bindings
from bellhop.gotemplate import Limits
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Access, Kube
from bellhop.rendering.allow_limits import NotAllowedError, refuse_beyond, refuse_placed
from bellhop.rendering.deploy_contents import deploy_time
from bellhop.rendering.manifests import kinds_defined
from bellhop.rendering.templates import RenderContext
from bellhop.state.cluster import Cluster
from bellhop.state.content import Content, FeatureName
from bellhop.state.profile import Profile

MOST_HOSTED = 32 * 1024 * 1024
"""Of all that is Local of one profile, as JSON: in Python it takes several times as much."""


class _Given(Struct, frozen=True):
    """Objects that templates are given for one cluster, or why they cannot be read: `wrong`.

    In the destination itself only kustomizations lack objects that cannot be read.
    """

    cluster: Cluster
    resources: dict[str, dict[str, Any]]
    wrong: BellhopError | None = None


class DesiredState:
    """Desired objects of profiles in clusters."""

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
        self._builder = building
        self._limits = limits
        self._clock = clock
        self._patience = patience

    def render(self, context: ReconcileContext) -> tuple[Desired, ...]:
        """Return the objects for this cluster, each in the scope its kind has there.

        Those of the features Resources and Kustomize together: they may have the same ones. The
        error of the latter is recorded, and raised when it is planned.
        """
        own, hosted = self._given(context, self._clock.now() + self._patience)
        context.progress.read = _digest(own, hosted)
        desired = [each for given in own for each in self._own(context, given)]
        desired += [each for given in own for each in self._kustomized(context, given)]
        desired += self._local(context, hosted)
        kube = self._access.open(context.cluster.key, version=context.cluster.credentials)
        crds = kinds_defined(each.manifest for each in desired)
        placed = tuple(self._placed(kube, context, each, crds) for each in desired)
        refuse_placed(context.profile, (each.key for each in placed if not each.how.local))
        return _drop_disputed(context, _drop_refused(context, placed))

    def _given(
        self, context: ReconcileContext, until: datetime | None = None
    ) -> tuple[list[_Given], list[_Given]]:
        """Read the objects that templates are given, for the destination and for its targets.

        Targets for which there is no time are left out of this attempt.
        """
        if not context.profile.reads:
            own = [] if context.only_hosts else [_Given(context.cluster, {})]
            return own, [_Given(target, {}) for target in context.progress.targets]
        of = self._resources.reader(context.profile, TEMPLATES, "policyRefs")
        built_of = self._resources.reader(context.profile, "kustomizationRefs")
        own = []
        if not context.only_hosts:
            given = _Given(context.cluster, of(context.cluster))
            try:
                own.append(replace(given, resources=given.resources | built_of(context.cluster)))
            except BellhopError as error:
                own.append(replace(given, wrong=error))
        hosted: list[_Given] = []
        for target in context.progress.targets:
            if until and self._clock.now() > until:
                context.verdict.skipped.append(_too_many(context, len(hosted), self._slow("read")))
                context.progress.targets = context.progress.targets[: len(hosted)]
                break
            try:
                hosted.append(_Given(target, of(target) | built_of(target)))
            except PermanentError as error:
                hosted.append(_Given(target, {}, error))
        return own, hosted

    def _own(self, context: ReconcileContext, given: _Given) -> tuple[Desired, ...]:
        """Return what a cluster has of its own.

        Raises:
            PermanentError: it cannot be rendered.
        """
        own = _own(context.profile, given.cluster, "Resources")
        contents = self._rendered(context.profile, given, own)
        if profile_kind(context.profile.name) == ROLE_REQUEST:
            contents = with_bindings(contents, context.profile.name)
        return desired_objects(contents, tier=context.profile.tier)

    def _kustomized(self, context: ReconcileContext, given: _Given) -> tuple[Desired, ...]:
        """Return what kustomizations build for a cluster."""
        try:
            if given.wrong:
                raise given.wrong
            own = _own(context.profile, given.cluster, "Kustomize")
            contents = self._rendered(context.profile, given, own)
        except BellhopError as error:
            context.progress.build_error = error
            return ()
        return desired_objects(contents, tier=context.profile.tier)

    def _local(self, context: ReconcileContext, hosted: Sequence[_Given]) -> Iterator[Desired]:
        """Yield what a cluster hosts; where it cannot be rendered for one, that harms no other.

        Nor may it be so much, or take so long, that no try ever ended.
        """
        seen: set[str] = set()
        size, until = 0, self._clock.now() + self._patience
        for number, given in enumerate(hosted):
            if size > MOST_HOSTED:
                why = f"together it is larger than {MOST_HOSTED // 1024**2} MiB"
                context.verdict.skipped.append(_too_many(context, number, why))
                return
            if self._clock.now() > until:
                context.verdict.skipped.append(_too_many(context, number, self._slow("render")))
                return
            try:
                desired = self._hosted(context, given, seen)
            except PermanentError as error:
                context.verdict.skipped.append(add_target(given.cluster.key, error))
                continue
            size += sum(len(json.dumps(each.manifest)) for each in desired)
            yield from desired

    def _slow(self, what: str) -> str:
        return f"it takes longer than {self._patience.total_seconds():.0f} s to {what} it"

    def _hosted(self, context: ReconcileContext, given: _Given, seen: set[str]) -> list[Desired]:
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
            for content in _for(context.profile, cluster, local=True)
            if not (once and content.alike)
            for each in desired_objects(
                self._rendered(context.profile, given, [content]),
                tier=context.profile.tier,
                target="" if content.alike else cluster.key,
            )
        ]
        seen.add(cluster.namespace)
        return made

    def _rendered(
        self, profile: Profile, given: _Given, contents: Iterable[Content]
    ) -> tuple[Content, ...]:
        context = RenderContext(cluster_object(given.cluster), self._limits, given.resources)
        return tuple(
            deploy_time(each, context)
            for content in contents
            for each in self._whole(profile, context, content)
        )

    def _whole(
        self, profile: Profile, context: RenderContext, content: Content
    ) -> Iterable[Content]:
        """Return a content with what its files hold, and its kustomization builds."""
        if content.files is None or content.missing:
            return [self._builder.built(content, context)]
        found = self._files.read(profile, content, context)
        if found is None:
            return []
        named = replace(content, ref=found.ref)
        if named.kustomization:
            return [self._builder.built(named, context, found)]
        # Most users have no such files, and a cold function is not to load what reads them.
        from bellhop.rendering.files import contents_for  # noqa: PLC0415

        return contents_for(named, found.files, found.annotations, context)

    def _placed(
        self,
        kube: Kube,
        context: ReconcileContext,
        each: Desired,
        crds: Mapping[tuple[str, str], bool],
    ) -> Desired:
        gvk, namespace, name = each.key
        resource = kube.resource(gvk)
        namespaced = resource.namespaced if resource else crds.get((gvk.group, gvk.kind), True)
        usual = (context.profile.namespace if each.how.local else "") or "default"
        namespace = (namespace or usual) if namespaced else ""
        key = ObjectKey(gvk, namespace, name)
        return each if key == each.key else replace(each, key=key)

    def has_changed(self, context: ReconcileContext) -> bool:
        """Say whether what templates read has changed since; what cannot be read now has not."""
        if not context.progress.read or not context.profile.reads:
            return False
        try:
            own, hosted = self._given(context)
        except BellhopError:
            return False
        unread = any(isinstance(each.wrong, TemporaryError) for each in own)
        return not unread and _digest(own, hosted) != context.progress.read


def _for(profile: Profile, cluster: Cluster, *, local: bool) -> Iterator[Content]:
    """Yield the contents of a profile that are for a cluster, or Local for it."""
    for content in profile.contents:
        local_here = content.how.local == local and content.chart is None
        if local_here and content.is_for(cluster):
            yield content


def _own(profile: Profile, cluster: Cluster, feature: FeatureName) -> Iterator[Content]:
    """Yield the contents of a feature for the cluster itself."""
    return (each for each in _for(profile, cluster, local=False) if each.feature == feature)


def _drop_refused(context: ReconcileContext, desired: Iterable[Desired]) -> list[Desired]:
    """Return the allowed objects; a Local one that is not allowed does not stop the others."""
    admitted, refused = [], []
    for each in desired:
        try:
            if each.how.local:
                refuse_placed(context.profile, (each.key,))
                refuse_beyond(context.profile, (each.key,))
            admitted.append(each)
        except NotAllowedError as error:
            refused.append(add_target(each.target, error))
    context.verdict.skipped += refused
    return admitted


def _drop_disputed(context: ReconcileContext, desired: Sequence[Desired]) -> tuple[Desired, ...]:
    """Return the objects that have one form only; the others are not changed."""
    refused = disputed(desired)
    context.verdict.skipped += refused.values()
    return tuple(each for each in desired if each.key.identity not in refused)


def _too_many(context: ReconcileContext, number: int, why: str) -> TooLargeError:
    """Say that a cluster hosts no more, after so many of those for which it is to."""
    of = len(context.profile.guests(context.cluster.key))
    return TooLargeError(
        f"cannot deploy what is Local of '{context.profile.shown}' for more than {number} of its"
        f" {of} clusters: {why}; have less of it, or several profiles that each select some of them"
    )


def _digest(own: Iterable[_Given], hosted: Iterable[_Given]) -> str:
    """Digest what templates were given; where nothing is hosted, as it always was."""
    mine = [each.resources for each in own]
    # One by one: what is read for all of a fleet may be the same, and large.
    others = [digest([each.resources, str(each.wrong or "")]) for each in hosted]
    return digest([mine, others]) if others or not mine else digest(mine[0])
