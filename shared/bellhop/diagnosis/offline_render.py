"""What a trigger would generate, worked out from files alone: no state, no cluster.

It walks the pipeline's own way: the catalog says which source is in force, the engine selects,
the Lua box judges, the engine instantiates and renders.
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
from bellhop.core.generated_names import GENERATED_NAMESPACE, instance_name
from bellhop.deploy.features.resources.planning import Desired, desired, plan
from bellhop.diagnosis import access_gaps, catalog_hints, profile_manifests
from bellhop.diagnosis.offline_result import Generated, Instantiated, Placement
from bellhop.diagnosis.source_evaluation import SourceTrial, Tried, objects
from bellhop.documents.document import Document
from bellhop.documents.tarball import Folder
from bellhop.errors import InvalidError, MissingError
from bellhop.gotemplate import Limits
from bellhop.rendering import event_contents as engine
from bellhop.rendering.allow_limits import refuse_placed, refuse_rendered
from bellhop.rendering.charts.releases import Desired as Release
from bellhop.rendering.charts.releases import desired as desired_release
from bellhop.rendering.cloud_event_actions import Matched, standing
from bellhop.rendering.files import contents_for
from bellhop.rendering.generator import Generation, Generator, draft_profile
from bellhop.rendering.origin_labels import instance_labels
from bellhop.rendering.references import placed, referred, shown
from bellhop.settings import Settings
from bellhop.state.chart import RELEASE
from bellhop.state.file_ref import ref_name, shown_url
from bellhop.state.management_cluster import MANAGEMENT
from bellhop.state.record import Cluster, Content, FeatureName, Profile, Reading

if TYPE_CHECKING:
    from bellhop.deploy.features.resources.kustomizations import KustomizationBuilder

NO_FILES: Mapping[str, Folder] = {}

_FEATURES: tuple[FeatureName, ...] = ("Resources", "Kustomize")
"""Those that bring objects which are known without a cluster."""


class OfflineRender:
    """One trigger and one cluster with events, from files.

    By `quoting` errors and verdicts say all, values of Secrets included. `files` are those of URLs
    and Flux sources, by what a profile calls these.
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
        """Return the source that the trigger has in force in the cluster.

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
        """Yield what the trigger's templates probably lack."""

        def find(kind: str, namespace: str, name: str) -> ConfigMap | Secret | None:
            return self._holders.get(DeclarationKey(kind, namespace, name))

        yield from catalog_hints.of_trigger(
            self._catalog, self.trigger, find, namespace=self.cluster.namespace
        )
        yield from access_gaps.offline(self.source(), self.trigger)

    def judge(self, documents: Sequence[Document], *, force: bool) -> list[Tried]:
        """Evaluate the source on objects, in the order in which a report has them.

        By `force` each of them matches, unevaluated.

        Raises:
            InvalidError: a document is no Kubernetes object.
            ScriptError: the source's aggregatedSelection fails.
        """
        source, found = self.source(), dict(objects(documents))
        given = [(key, found[key]) for key in sorted(found)]
        if not force:
            return SourceTrial(self._settings, quoting=self._quoting).attempt_all(source, given)
        taken = "taken by --force"
        return [Tried(*each, matching=True, because=taken, message=taken) for each in given]

    def generate(self, judged: Sequence[Tried]) -> Iterator[Generated]:
        """Yield the profiles that the trigger makes of objects that match.

        Raises:
            PermanentError: a template fails, or what it wrote cannot be applied.
        """
        seen: set[str] = set()
        for each in self._generate(judged):
            title = each.profile.title
            if title in seen:
                raise InvalidError(
                    f"cannot name two ClusterProfiles '{title}'; name something of each object",
                    where="profileNameFormat",
                )
            seen |= {title} - {""}
            yield each

    def _generate(self, judged: Sequence[Tried]) -> Iterator[Generated]:
        found = [(each.key, each.manifest) for each in judged if each.matching]
        matching = standing(self.trigger, self.cluster, found, self._limits).stays
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

    def _profile(self, key: str, objects: Matched) -> Generated:
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
        written = tuple(_generated(*each) for each in done.generated)
        made = tuple(self._instantiate(done.refs, done.root, profile))
        renamed = {str(each.origin): str(each.ref) for each in made}
        held = tuple(
            Content(renamed.get(str(ref), str(ref)), "", how=ref.how)
            for ref in done.refs
            if self._holder(ref)
        )
        others = tuple(each for each in done.contents if each.chart or each.files)
        return Generated(
            profile,
            profile_manifests.manifest(
                replace(profile, contents=held + others), self.source().name
            ),
            written + made,
            tuple(self._placements(done, profile)),
        )

    def _instantiate(
        self, refs: Sequence[engine.Ref], root: Mapping[str, Any], profile: Profile
    ) -> Iterator[Instantiated]:
        for ref in dict.fromkeys(refs):
            holder = self._holder(ref)
            made = holder and engine.instance(
                ref,
                holder,
                root,
                always=self.trigger.era_always_renders,
                limits=self._limits,
                annotations=self.trigger.annotations,
                quoting=self._quoting,
            )
            if holder and made:
                name = instance_name(profile.name, str(ref))
                own = replace(ref, namespace=GENERATED_NAMESPACE, name=name)
                labels = instance_labels(profile, self.source().name, ref.namespace, ref.name)
                yield Instantiated(ref, own, engine.written(own, holder, made, labels))

    def _holder(self, ref: engine.Ref) -> ConfigMap | Secret | None:
        return self._holders.get(DeclarationKey(ref.kind, ref.namespace, ref.name))

    def _placements(self, done: Generation, profile: Profile) -> Iterator[Placement]:
        """Yield what each cluster gets of its own, and last what is Local for any of them.

        Raises:
            ConflictError: a cluster is to have one object in two forms.
        """
        tier = self.trigger.tier
        for each in profile.destinations:
            there = self._rendered(done, each, local=False)
            _refuse_rivals(desired(there, tier=tier))
            kubernetes = self._catalog.clusters[each].kubernetes
            yield Placement(each, there, tuple(self._releases(done, each, profile)), kubernetes)
        hosted = {each: self._rendered(done, each, local=True) for each in profile.destinations}
        if any(hosted.values()):
            wanted = (desired(there, tier=tier, guest=each) for each, there in hosted.items())
            _refuse_rivals(tuple(chain.from_iterable(wanted)))
            yield Placement(MANAGEMENT, tuple(chain.from_iterable(hosted.values())))

    def _rendered(self, done: Generation, destination: str, *, local: bool) -> tuple[Content, ...]:
        """Return contents as they are rendered for a cluster: its own, or what is Local.

        Raises:
            MissingError: nobody gave the files of one.
        """
        cluster, resources = self._readable(done, destination)
        there = tuple(
            engine.deploy_time(each, cluster, resources, limits=self._limits)
            for content in done.contents
            if content.how.local == local and not content.chart
            for each in self._whole(done, content, cluster, resources)
        )
        refuse_rendered(self.trigger, there)
        return there

    def _whole(
        self,
        done: Generation,
        content: Content,
        cluster: Mapping[str, Any],
        resources: Mapping[str, dict[str, Any]],
    ) -> tuple[Content, ...]:
        """Return a content with what its files hold, or its kustomization builds."""
        if content.files is None:
            return (self._built(content, cluster, resources),)
        ref, files = self._given(done, content.files.field, cluster)
        named = replace(content, ref=ref)
        if named.kustomization:
            return (self._built(named, cluster, resources, files),)
        return contents_for(named, files, {}, cluster, resources, self._limits)

    def _given(
        self, done: Generation, field: str, cluster: Mapping[str, Any]
    ) -> tuple[str, Folder]:
        """Return what the files of a field are called for a cluster, and the files."""
        readings = [each for each in done.reads if each.field == field]
        (reading,) = placed(readings, cluster, self._limits)
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
        """Yield the releases that a cluster would get.

        Raises:
            PermanentError: one cannot be rendered, or may not be deployed.
        """
        cluster, resources = self._readable(done, destination)
        for each in done.contents:
            if each.chart:
                release = desired_release(each, cluster, resources, self._limits)
                refuse_placed(profile, [release.key.at(RELEASE.version)])
                yield release

    def _readable(
        self, done: Generation, destination: str
    ) -> tuple[dict[str, Any], Mapping[str, dict[str, Any]]]:
        """Return what templates of deploy time read: a cluster, and resources."""
        cluster = cluster_object(self._catalog.clusters[destination])
        written = {_key(manifest): manifest for _, manifest in done.generated}

        def read(each: Reading) -> Mapping[str, Any] | None:
            key = DeclarationKey(each.kind, each.namespace, each.name)
            found = self._catalog.clusters.get(f"{each.namespace}/{each.name}")
            if each.kind == "SveltosCluster" and found:
                return cluster_object(found)
            holder = self._holders.get(key)
            return shown(holder) if holder else written.get(key)

        reads = [each for each in done.reads if not each.field]
        return cluster, referred(reads, cluster, read, self._limits)

    def _built(
        self,
        content: Content,
        cluster: Mapping[str, Any],
        resources: Mapping[str, dict[str, Any]],
        files: Folder | None = None,
    ) -> Content:
        """Return a content with what its kustomization builds, by the kubectl of this machine."""
        if content.kustomization is None:
            return content
        if self._building is None:
            # Most triggers have none, and nobody is to wait for what builds them.
            from bellhop.adapters.kustomize.kustomizations import (  # noqa: PLC0415
                KubectlKustomizations,
            )
            from bellhop.adapters.local.clock import SystemClock  # noqa: PLC0415
            from bellhop.deploy.features.resources.kustomizations import KustomizationBuilder  # noqa: PLC0415

            self._building = KustomizationBuilder(
                KubectlKustomizations(), self._limits, SystemClock()
            )
        found = None
        if files is not None:
            from bellhop.deploy.files import Found  # noqa: PLC0415 - as above

            found = Found(content.ref, "local", files, {})
        return self._building.built(content, cluster, resources, found)


def _refuse_rivals(wanted: Sequence[Desired]) -> None:
    for feature in _FEATURES:
        for error in plan(wanted, {}, feature=feature).rivals:
            raise error


def _key(manifest: Mapping[str, Any]) -> DeclarationKey:
    metadata = manifest["metadata"]
    return DeclarationKey(manifest["kind"], metadata["namespace"], metadata["name"])


def _generated(origin: engine.Ref, manifest: dict[str, Any]) -> Instantiated:
    metadata = manifest["metadata"]
    own = replace(origin, namespace=metadata["namespace"], name=metadata["name"])
    return Instantiated(origin, own, manifest)
