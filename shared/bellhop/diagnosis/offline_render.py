"""Offline render: the profiles of a trigger, from files, without state and cluster.

It calls the functions of the pipeline: the catalog selects sources, `events` evaluates them,
`rendering` makes the contents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bellhop.api.kinds import (
    ClusterProfile,
    ClusterSet,
    ConfigMap,
    Declaration,
    DeclarationKey,
    EventSource,
    EventTrigger,
    Secret,
)
from bellhop.catalog.catalog import Catalog, cluster_object
from bellhop.core.identity import GENERATED_NAMESPACE, instance_name
from bellhop.deploy.features.resources.planning import Desired, desired_objects, plan
from bellhop.diagnosis import access_gaps, catalog_hints, profile_manifests
from bellhop.diagnosis.offline_result import RenderedHolder, RenderedProfile, Target
from bellhop.diagnosis.source_evaluation import EvaluatedObject, SourceEvaluator, read_objects
from bellhop.documents.document import Document
from bellhop.documents.tarball import Folder
from bellhop.errors import InvalidError, MissingError
from bellhop.gotemplate import Limits
from bellhop.rendering.allow_limits import refuse_placed, refuse_rendered
from bellhop.rendering.charts.releases import Desired as Release
from bellhop.rendering.charts.releases import desired as desired_release
from bellhop.rendering.cloud_event_actions import Matched, divide_matches
from bellhop.rendering.deploy_contents import deploy_time
from bellhop.rendering.event_contents import instance, written
from bellhop.rendering.files import contents_for
from bellhop.rendering.generator import Generation, Generator, draft_profile
from bellhop.rendering.inputs import Ref
from bellhop.rendering.origin_labels import instance_labels
from bellhop.rendering.references import format_holder, place_readings, read_referred
from bellhop.rendering.templates import RenderContext
from bellhop.settings import Settings
from bellhop.state.chart import RELEASE
from bellhop.state.cluster import MANAGEMENT, Cluster
from bellhop.state.content import Content, FeatureName, Reading, ref_name, shown_url
from bellhop.state.profile import Profile

if TYPE_CHECKING:
    from bellhop.deploy.features.resources.kustomizations import KustomizationBuilder

NO_FILES: Mapping[str, Folder] = {}

_FEATURES: tuple[FeatureName, ...] = ("Resources", "Kustomize")
"""Features whose objects are known without a cluster."""


class OfflineRender:
    """One trigger and one cluster with events, from files.

    By `quoting` errors and results show values of Secrets. `files` are those of URLs and Flux
    sources, by their names in the profile.
    """

    def __init__(
        self,
        declarations: Sequence[Declaration],
        trigger: str,
        cluster: Cluster,
        others: Sequence[Cluster],
        settings: Settings,
        *,
        quoting: bool = False,
        files: Mapping[str, Folder] = NO_FILES,
    ) -> None:
        self._files = files
        self._settings = settings
        self._quoting = quoting
        self._limits = Limits(seconds=settings.template_seconds, output=settings.template_output)
        self._holders = {
            each.key: each for each in declarations if isinstance(each, ConfigMap | Secret)
        }
        self._catalog = Catalog(
            0,
            {each.key: each for each in (*others, cluster)}.values(),
            (each for each in declarations if isinstance(each, EventSource)),
            (each for each in declarations if isinstance(each, EventTrigger)),
            (each for each in declarations if isinstance(each, ClusterProfile)),
            (each.all_of_them() for each in declarations if isinstance(each, ClusterSet)),
        )
        self.cluster = cluster
        self.trigger = self._find(trigger)
        self._building: KustomizationBuilder | None = None

    def source(self) -> EventSource:
        """Return the source of the trigger in the cluster.

        Raises:
            InvalidError: the trigger does not select the cluster.
            MissingError: the source is in no file.
            PermanentError: the source's name is a template that fails.
        """
        trigger, cluster = self.trigger, self.cluster
        if not self._catalog.watches(trigger, cluster.key):
            asked = str(trigger.source_selector) or "nothing, which selects no cluster"
            sets = f", nor do its clusterSetRefs {', '.join(trigger.cluster_sets)} have it"
            raise InvalidError(
                f"{trigger.kind} '{trigger.name}' does not select cluster '{cluster.key}': its"
                f" sourceClusterSelector asks for {asked}{sets if trigger.cluster_sets else ''};"
                f" give the cluster its labels, as in {cluster.key},key=value"
            )
        problem = self._catalog.problems_in(cluster.key).get(trigger.name)
        if problem:
            raise problem
        source = self._catalog.source_of(trigger, cluster.key)
        if source is None:
            raise MissingError(
                f"{trigger.kind} '{trigger.name}' names EventSource '{trigger.event_source_name}',"
                " which is in no file; name its file with -f"
            )
        return source

    def hints(self) -> Iterator[str]:
        """Yield what is probably missing in the trigger's templates."""

        def find(kind: str, namespace: str, name: str) -> ConfigMap | Secret | None:
            return self._holders.get(DeclarationKey(kind, namespace, name))

        yield from catalog_hints.list_trigger_hints(
            self._catalog, self.trigger, find, namespace=self.cluster.namespace
        )
        yield from access_gaps.list_offline_gaps(self.source(), self.trigger)

    def evaluate(self, documents: Sequence[Document], *, force: bool) -> list[EvaluatedObject]:
        """Evaluate the source on objects, in the order of a report; `force` takes each of them.

        Raises:
            InvalidError: a document is no Kubernetes object.
            ScriptError: the source's aggregatedSelection fails.
        """
        source, found = self.source(), dict(read_objects(documents))
        given = [(key, found[key]) for key in sorted(found)]
        if not force:
            return SourceEvaluator(self._settings, quoting=self._quoting).attempt_all(source, given)
        taken = "taken by --force"
        return [
            EvaluatedObject(*each, matching=True, because=taken, message=taken) for each in given
        ]

    def generate(self, evaluated: Sequence[EvaluatedObject]) -> Iterator[RenderedProfile]:
        """Yield the profiles that the trigger makes of matching objects.

        Raises:
            PermanentError: a template fails, or its output cannot be applied.
        """
        seen: set[str] = set()
        for each in self._generate(evaluated):
            title = each.profile.title
            if title in seen:
                raise InvalidError(
                    f"cannot name two ClusterProfiles '{title}'; name something of each object",
                    where="profileNameFormat",
                )
            seen |= {title} - {""}
            yield each

    def _generate(self, evaluated: Sequence[EvaluatedObject]) -> Iterator[RenderedProfile]:
        found = [(each.key, each.manifest) for each in evaluated if each.matching]
        matching = divide_matches(self.trigger, self.cluster, found, self._limits).stays
        if not self.trigger.one_for_event:
            if matching:
                yield self._profile("", matching)
            return
        for each in matching:
            yield self._profile(str(each[0]), [each])

    def _find(self, name: str) -> EventTrigger:
        triggers = self._catalog.triggers
        if not name and len(triggers) == 1:
            return next(iter(triggers.values()))
        if name in triggers:
            return triggers[name]
        there = ", ".join(sorted(triggers)) or "none"
        said = f"there is no trigger '{name}' in the files" if name else "--trigger names none"
        raise MissingError(f"{said}; they have: {there}")

    def _profile(self, key: str, objects: Matched) -> RenderedProfile:
        trigger, cluster = self.trigger, self.cluster
        bare = draft_profile(self._catalog, trigger, cluster.key, key)
        maker = Generator(
            trigger, self.source(), cluster, self._holder, self._limits, quoting=self._quoting
        )
        done = maker.generate(bare, objects)
        goes = self._catalog.destinations(trigger, cluster.key, done.named)
        profile = replace(
            bare,
            contents=done.contents,
            destinations=goes,
            reads=done.reads,
            title=done.title,
        )
        written = tuple(_describe_generated(*each) for each in done.generated)
        made = tuple(self._instantiate(done, profile))
        renamed = {str(each.origin): str(each.ref) for each in made}
        held = tuple(
            Content(renamed.get(str(ref), str(ref)), "", how=ref.how)
            for ref in done.refs
            if self._holder(ref)
        )
        others = tuple(each for each in done.contents if each.chart or each.files)
        return RenderedProfile(
            profile,
            profile_manifests.manifest(
                replace(profile, contents=held + others), self.source().name
            ),
            written + made,
            tuple(self._placements(done, profile)),
        )

    def _instantiate(self, done: Generation, profile: Profile) -> Iterator[RenderedHolder]:
        always = self.trigger.instantiates_all
        for ref in dict.fromkeys(done.refs):
            holder = self._holder(ref)
            made = holder and instance(ref, holder, done.fields, always=always)
            if holder and made:
                name = instance_name(profile.name, str(ref))
                own = replace(ref, namespace=GENERATED_NAMESPACE, name=name)
                labels = instance_labels(profile, self.source().name, ref.namespace, ref.name)
                yield RenderedHolder(ref, own, written(own, holder, made, labels))

    def _holder(self, ref: Ref) -> ConfigMap | Secret | None:
        return self._holders.get(DeclarationKey(ref.kind, ref.namespace, ref.name))

    def _placements(self, done: Generation, profile: Profile) -> Iterator[Target]:
        """Yield the contents of each destination, and last those of the management cluster.

        Raises:
            ConflictError: a cluster would get two versions of one object.
        """
        tier = self.trigger.spec.tier
        for each in profile.destinations:
            there = self._rendered(done, each, local=False)
            _refuse_conflicts(desired_objects(there, tier=tier))
            kubernetes = self._catalog.clusters[each].kubernetes
            yield Target(each, there, tuple(self._releases(done, each, profile)), kubernetes)
        hosted = {each: self._rendered(done, each, local=True) for each in profile.destinations}
        if any(hosted.values()):
            desired = (
                desired_objects(there, tier=tier, target=each) for each, there in hosted.items()
            )
            _refuse_conflicts(tuple(chain.from_iterable(desired)))
            yield Target(MANAGEMENT, tuple(chain.from_iterable(hosted.values())))

    def _rendered(self, done: Generation, destination: str, *, local: bool) -> tuple[Content, ...]:
        """Return contents as they are rendered for a cluster: its own, or the local ones."""
        context = self._context(done, destination)
        there = tuple(
            deploy_time(each, context)
            for content in done.contents
            if content.how.local == local and not content.chart
            for each in self._whole(done, content, context)
        )
        refuse_rendered(self.trigger, there)
        return there

    def _whole(
        self, done: Generation, content: Content, context: RenderContext
    ) -> tuple[Content, ...]:
        if content.files is None:
            return (self._built(content, context),)
        ref, files = self._given(done, content.files.field, context.cluster)
        named = replace(content, ref=ref)
        if named.kustomization:
            return (self._built(named, context, files),)
        return contents_for(named, files, {}, context)

    def _given(
        self, done: Generation, field: str, cluster: Mapping[str, Any]
    ) -> tuple[str, Folder]:
        """Return the name of a field's files for a cluster, and the files."""
        readings = [each for each in done.reads if each.field == field]
        (reading,) = place_readings(readings, cluster, self._limits)
        ref = ref_name(reading.kind, reading.namespace, reading.name)
        name = f"{reading.kind}/{reading.namespace}/{reading.name}"
        if reading.address:
            ref = name = shown_url(reading.address.url)
        if ref not in self._files:
            raise MissingError(
                f"cannot render {ref}: its files are elsewhere; give a local copy, as in --files"
                f" '{name}=PATH', or deploy it with syncMode: DryRun to see what it makes"
            )
        return ref, self._files[ref]

    def _releases(self, done: Generation, destination: str, profile: Profile) -> Iterator[Release]:
        context = self._context(done, destination)
        for each in done.contents:
            if each.chart:
                release = desired_release(each, context)
                refuse_placed(profile, [release.key.at(RELEASE.version)])
                yield release

    def _context(self, done: Generation, destination: str) -> RenderContext:
        """Return the cluster and the resources that templates read at deploy time."""
        cluster = cluster_object(self._catalog.clusters[destination])
        written = {_key_of(manifest): manifest for _, manifest in done.generated}

        def read(each: Reading) -> Mapping[str, Any] | None:
            key = DeclarationKey(each.kind, each.namespace, each.name)
            found = self._catalog.clusters.get(f"{each.namespace}/{each.name}")
            if each.kind == "SveltosCluster" and found:
                return cluster_object(found)
            holder = self._holders.get(key)
            return format_holder(holder) if holder else written.get(key)

        reads = [each for each in done.reads if not each.field]
        resources = read_referred(reads, cluster, read, self._limits)
        return RenderContext(cluster, self._limits, resources)

    def _built(
        self, content: Content, context: RenderContext, files: Folder | None = None
    ) -> Content:
        """Return a content with the output of its kustomization, built by the local kubectl."""
        if content.kustomization is None:
            return content
        if self._building is None:
            # Most triggers have none: the builder is loaded only for those that have one.
            from bellhop.adapters.kustomize.kustomizations import (  # noqa: PLC0415
                KubectlKustomizations,
            )
            from bellhop.adapters.local.clock import SystemClock  # noqa: PLC0415
            from bellhop.deploy.features.resources.kustomizations import KustomizationBuilder  # noqa: PLC0415

            self._building = KustomizationBuilder(KubectlKustomizations(), SystemClock())
        found = None
        if files is not None:
            from bellhop.deploy.files import Found  # noqa: PLC0415 - as above

            found = Found(content.ref, "local", files, {})
        return self._building.built(content, context, found)


def _refuse_conflicts(desired: Sequence[Desired]) -> None:
    for feature in _FEATURES:
        for error in plan(desired, {}, feature=feature).rivals:
            raise error


def _key_of(manifest: Mapping[str, Any]) -> DeclarationKey:
    metadata = manifest["metadata"]
    return DeclarationKey(manifest["kind"], metadata["namespace"], metadata["name"])


def _describe_generated(origin: Ref, manifest: dict[str, Any]) -> RenderedHolder:
    metadata = manifest["metadata"]
    own = replace(origin, namespace=metadata["namespace"], name=metadata["name"])
    return RenderedHolder(origin, own, manifest)
