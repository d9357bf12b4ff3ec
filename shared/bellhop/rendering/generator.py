"""The profile that a trigger makes of objects that match, from its variables to its contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.api.kinds import ConfigMap, EventSource, EventTrigger, Secret, of
from bellhop.api.policy_ref import GeneratorRef
from bellhop.catalog.catalog import Catalog, cluster_object
from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import GENERATED_NAMESPACE, instance_name, profile_name
from bellhop.core.names import name_problem
from bellhop.errors import DeniedError, InvalidError, MissingError, PermanentError
from bellhop.gotemplate import Limits
from bellhop.rendering.allow_limits import refuse_rendered
from bellhop.rendering.check_jobs import job_contents
from bellhop.rendering.cloud_event_actions import Matched
from bellhop.rendering.event_contents import contents, generated_instance, instance, written
from bellhop.rendering.event_fields import Fields, destination, resolve, variables
from bellhop.rendering.inputs import Find, Ref
from bellhop.rendering.origin_labels import GENERATED, instance_labels
from bellhop.rendering.patches.sources import FIELD, held_patches
from bellhop.rendering.references import render_readings
from bellhop.state.cluster import Cluster
from bellhop.state.content import Content, PatchText, Reading
from bellhop.state.profile import Profile

if TYPE_CHECKING:
    from bellhop.rendering.event_variables import Event


class Generation(Struct, frozen=True):
    """The contents of a profile, with the variables and refs that they were rendered from.

    `generated` is what generators wrote, each with what it was made of; `named` is the cluster
    that destinationCluster was rendered to, and `title` the name that profileNameFormat was, where
    there is one.
    """

    fields: Fields
    refs: tuple[Ref, ...]
    contents: tuple[Content, ...]
    named: str = ""
    generated: tuple[tuple[Ref, dict[str, Any]], ...] = ()
    reads: tuple[Reading, ...] = ()
    title: str = ""
    jobs: Mapping[str, tuple[Content, ...]] = {}


def draft_profile(catalog: Catalog, trigger: EventTrigger, cluster: str, key: str) -> Profile:
    """Return a trigger's profile for one object, or for all by an empty key, without contents.

    Its destinations are those that are selected; which one is named is known when it is rendered.
    """
    return Profile.draft(
        trigger.policy,
        profile_name(trigger.name, cluster, key),
        catalog.destinations(trigger, cluster),
        trigger=trigger.name,
        cluster=cluster,
        key=key,
    )


def _refuse_other_accounts(trigger: EventTrigger, source: EventSource) -> None:
    """Refuse to show a tenant what a source matched that reads with other rights.

    Raises:
        DeniedError: the trigger's account is not the source's.
    """
    if trigger.account and trigger.account != source.account:
        whose = f"those of '{source.account}'" if source.account else "all rights"
        raise DeniedError(
            f"cannot show {trigger.kind} '{trigger.name}', which counts with the rights of"
            f" '{trigger.account}', what EventSource '{source.name}' reads with {whose}; give both"
            " the same labels"
        )


class Generator(Struct, frozen=True):
    """Makes what the profiles of one trigger hold, of the events of its source in one cluster.

    By `quoting` errors say all, Secrets included.
    """

    trigger: EventTrigger
    source: EventSource
    cluster: Cluster
    find: Find
    limits: Limits
    quoting: bool = False

    def generate(self, draft: Profile, matched: Matched) -> Generation:
        """Make what a drafted profile holds of the objects that match.

        Generators come first: what they write may be referred to.

        Raises:
            PermanentError: a template fails, something is missing, or what was rendered cannot be
                read or is not allowed.
        """
        trigger, namespace = self.trigger, self.cluster.namespace
        _refuse_other_accounts(trigger, self.source)
        fields = self._make_fields(matched)
        goes = trigger.destination_cluster
        named = destination(goes, fields, namespace=namespace) if goes else ""
        title = _title(trigger, fields)
        refs = resolve(trigger.policy_refs, fields, namespace=namespace)
        generated = tuple(self._generated(draft, fields, matched))
        own = {_place(each): each for each in (_holder(manifest) for _, manifest in generated)}

        def find(ref: Ref) -> ConfigMap | Secret | None:
            return own.get(str(ref)) or self.find(ref)

        held = [(ref, find(ref)) for ref in refs]
        made = contents(held, fields, always=trigger.instantiates_all)
        patches = tuple(self._held_patches(fields, find))
        made = tuple(each.with_patches(patches) for each in (*made, *self._addons(fields, find)))
        refuse_rendered(trigger, made)
        reads = tuple(self._readings(fields, find))
        jobs = job_contents(trigger.checks, find, fields) if trigger.checks else {}
        return Generation(fields, refs, made, named, generated, reads, title, jobs)

    def render_instances(self, draft: Profile, matched: Matched) -> tuple[dict[str, Any], ...]:
        """Return the instances of what policyRefs name, also of texts that are no objects.

        None if there is another mistake as well.
        """
        with suppress(PermanentError):
            return tuple(self._instances(draft, self._make_fields(matched)))
        return ()

    def _instances(self, draft: Profile, fields: Fields) -> Iterator[dict[str, Any]]:
        trigger, namespace = self.trigger, self.cluster.namespace
        for ref in dict.fromkeys(resolve(trigger.policy_refs, fields, namespace=namespace)):
            holder = self.find(ref)
            if holder and instance(ref, holder, fields, always=trigger.instantiates_all):
                name = instance_name(draft.name, str(ref))
                own = Ref(ref.kind, GENERATED_NAMESPACE, name, optional=False)
                labels = instance_labels(draft, self.source.name, ref.namespace, ref.name)
                yield written(own, holder, generated_instance(ref, holder, fields), labels)

    def _make_fields(self, matched: Matched) -> Fields:
        cluster, collect = cluster_object(self.cluster), self.source.collect_resources
        root = variables(self.trigger, cluster, matched, collect=collect)
        return Fields(root, self.limits, self.trigger.annotations, quoting=self.quoting)

    def _held_patches(self, fields: Fields, find: Find) -> Iterator[PatchText]:
        """Yield the patches that `patchesFrom` names, which may be what a generator wrote.

        Raises:
            PermanentError: something is missing, or a name is a template that fails.
        """
        namespace, field = self.cluster.namespace, f"{FIELD}[{{}}]"
        for ref in resolve(self.trigger.patch_refs, fields, namespace=namespace, field=field):
            yield from held_patches(ref, find(ref))

    def _addons(self, fields: Fields, find: Find) -> Iterator[Content]:
        """Yield what no ConfigMap or Secret holds whole; values may be what a generator wrote.

        Raises:
            PermanentError: something is missing, or a template fails.
        """
        trigger = self.trigger
        files = any(each.files for each in trigger.policy_refs)
        if not (files or trigger.charts or trigger.kustomizations):
            return
        # Most users have none of them, and a cold function is not to load what reads them.
        from bellhop.rendering.charts.contents import event_charts  # noqa: PLC0415
        from bellhop.rendering.files import event_files  # noqa: PLC0415
        from bellhop.rendering.kustomizations.contents import event_kustomizations  # noqa: PLC0415

        event = self._event(fields, find)
        yield from event_files(event)
        yield from event_charts(event)
        yield from event_kustomizations(event)

    def _readings(self, fields: Fields, find: Find) -> Iterator[Reading]:
        """Yield what is read when it is deployed.

        Raises:
            PermanentError: a name is a template that fails, or made of a Secret's value.
        """
        asked = self.trigger.readings
        if not asked:
            return
        yield from render_readings([each for each in asked if not each.field], fields)
        if any(each.field for each in asked):
            from bellhop.rendering.files import event_readings  # noqa: PLC0415 - as in _addons

            yield from event_readings(self._event(fields, find))

    def _event(self, fields: Fields, find: Find) -> Event:
        from bellhop.rendering.event_variables import Event  # noqa: PLC0415 - as in _addons

        return Event(self.trigger, fields, self.cluster.namespace, find)

    def _generated(
        self, draft: Profile, fields: Fields, matched: Matched
    ) -> Iterator[tuple[Ref, dict[str, Any]]]:
        """Yield what the generators write, and of what; what is optional may be missing.

        Raises:
            PermanentError: something is missing, a template fails, or wrote no name, or one twice.
        """
        seen: dict[tuple[str, str], int] = {}
        for number, each in enumerate(self.trigger.generators):
            field = _field(self.trigger.generators, number)
            for key, its in self._rounds(each, fields, matched):
                its_draft = replace(draft, object=key) if key else draft
                with _about(key):
                    made = list(self._written(each, field, its_draft, its))
                for ref, manifest in made:
                    name = manifest["kind"], manifest["metadata"]["name"]
                    if name in seen:
                        raise _twice(field, name, same=seen[name] == number)
                    seen[name] = number
                    yield ref, manifest

    def _rounds(
        self, each: GeneratorRef, fields: Fields, matched: Matched
    ) -> Iterator[tuple[str, Fields]]:
        """Yield what a generator is rendered with, and of which object, if it is of one.

        A profile of one object has the variables of that object already.
        """
        if not each.for_each or self.trigger.one_for_event:
            yield "", fields
            return
        cluster, collect = cluster_object(self.cluster), self.source.collect_resources
        for one in matched:
            own = variables(self.trigger, cluster, [one], collect=collect, one=True)
            yield str(one[0]), fields.with_root(own)

    def _written(
        self, each: GeneratorRef, field: str, draft: Profile, fields: Fields
    ) -> Iterator[tuple[Ref, dict[str, Any]]]:
        """Yield what a generator writes with some variables; nothing if what it is of may lack.

        Raises:
            PermanentError: it is missing, a template fails, or wrote no name.
        """
        kind, where = each.ref.kind, f"{field}.nameFormat"
        namespace = fields.text(each.ref.namespace, f"{field}.namespace")
        origin = fields.text(each.ref.name, f"{field}.name")
        ref = Ref(kind, namespace or self.cluster.namespace, origin, each.ref.optional)
        name = fields.text(each.name_format, where)
        holder = self.find(ref)
        if holder is None:
            if ref.optional:
                return
            raise MissingError(f"cannot find {ref} that {field} names; apply it first")
        if problem := name_problem(name):
            raise InvalidError(f"cannot generate a {kind}: {problem}", where=where)
        made = generated_instance(ref, holder, fields)
        labels = instance_labels(draft, self.source.name, ref.namespace, origin)
        its = Ref(kind, GENERATED_NAMESPACE, name, optional=False)
        yield ref, written(its, holder, made, {**labels, **GENERATED})


@contextmanager
def _about(key: str) -> Iterator[None]:
    """Say in an error which object it is about, where there are several."""
    try:
        yield
    except PermanentError as error:
        if key:
            gvk, namespace, name = ObjectKey.parse(key)
            place = "/".join(filter(None, (namespace, name)))
            error.args = (f"for {gvk.kind} '{place}': {error}",)
        raise


def _field(generators: Sequence[GeneratorRef], number: int) -> str:
    """Return where a generator was written; those of one field are in their order."""
    field = generators[number].field
    return f"{field}[{sum(each.field == field for each in generators[:number])}]"


def _twice(field: str, name: tuple[str, str], *, same: bool) -> InvalidError:
    kind, word = name
    problem = f"another generator writes a {kind} {word!r}, too"
    if same:
        problem = f"it writes a {kind} {word!r} for two objects; have the name distinguish them"
    return InvalidError(f"cannot generate a {kind}: {problem}", where=f"{field}.nameFormat")


def _title(trigger: EventTrigger, fields: Fields) -> str:
    """Return the name that a trigger gives to a profile; nothing where it leaves that to us.

    Raises:
        TemplateError: its template fails.
        InvalidError: what was rendered is no name.
    """
    field = "profileNameFormat"
    template = trigger.spec.profile_name_format
    title = fields.text(template, field) if template else ""
    if problem := name_problem(title) if template else "":
        raise InvalidError(f"cannot name the ClusterProfile: {problem}", where=field)
    return title


def _holder(manifest: dict[str, Any]) -> ConfigMap | Secret:
    found = of(manifest)
    assert isinstance(found, ConfigMap | Secret)
    return found


def _place(holder: ConfigMap | Secret) -> str:
    return str(Ref(holder.kind, holder.namespace, holder.name, optional=False))
