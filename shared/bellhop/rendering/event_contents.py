"""From a trigger and the objects that match to the contents of a ClusterProfile."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from bellhop import gotemplate
from bellhop.api.kinds import ConfigMap, EventTrigger, PolicyRef, Secret
from bellhop.api.ref import ObjectReference
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.core.names import name_problem, namespace_problem
from bellhop.core.sveltos_annotations import LUA, SUBRESOURCES, WITHHELD
from bellhop.errors import InvalidError, MissingError, TemplateError
from bellhop.gotemplate import Limits
from bellhop.rendering import secrecy
from bellhop.rendering.cloud_events import event_of
from bellhop.rendering.manifests import Text, read_manifests, render_manifests
from bellhop.rendering.templates import ANNOTATION, Dialect, TemplateText, dialect_of
from bellhop.state.file_ref import ref_name
from bellhop.state.record import PLAIN, Content, Handling

_AS_SECRET = {"kind": secrecy.KIND}

NONE: Mapping[str, dict[str, Any]] = MappingProxyType({})

INSTANTIATE = "projectsveltos.io/instantiate"
TEMPLATE = "projectsveltos.io/template"
_CLUSTERS = ("", "SveltosCluster", "Cluster")
_MAY_BE_OPTIONAL = ("policyRefs", "kustomizationRefs", "patchesFrom", "valuesFrom")
SECRET_TYPE = "addons.projectsveltos.io/cluster-profile"  # noqa: S105 - a Secret's type, not one


class MissingInputError(MissingError):
    """An object that a profile is rendered from does not exist; its appearance is a new try."""


class Files(NamedTuple):
    """Texts that are read as the entries of a ConfigMap are."""

    kind: str
    place: str
    texts: Mapping[str, str]
    annotations: Mapping[str, str]


class Ref(Struct, frozen=True):
    """A ConfigMap or Secret that a profile takes its manifests from, with its final name."""

    kind: str
    namespace: str
    name: str
    optional: bool
    how: Handling = PLAIN

    def __hash__(self) -> int:
        return hash((self.kind, self.namespace, self.name, self.optional))

    def __str__(self) -> str:
        return ref_name(self.kind, self.namespace, self.name)


def variables(
    trigger: EventTrigger,
    cluster: Mapping[str, Any],
    matched: Sequence[tuple[ObjectKey, Mapping[str, Any]]],
    *,
    collect: bool,
    one: bool = False,
) -> dict[str, Any]:
    """Return the root variables of event time.

    With oneForEvent, or by `one`, `.MatchingResource` and `.Resource` of the one object, or
    `.CloudEvent`, else `.MatchingResources` and `.Resources` of all, and `.CloudEvents`, in the
    order given; `.Resource` is nil and `.Resources` empty unless the source collects. `.Cluster` is
    where the event happened, or to which it was sent.
    """
    objects = [(key, manifest) for key, manifest in matched if key.gvk != CLOUD_EVENT]
    references = [_reference(key) for key, _ in objects]
    resources = [dict(manifest) for _, manifest in objects] if collect else []
    events = [dict(event_of(each)) for key, each in matched if key.gvk == CLOUD_EVENT]
    if one or trigger.one_for_event:
        return {
            "MatchingResource": references[0] if references else None,
            "Resource": resources[0] if resources else None,
            "CloudEvent": events[0] if events else None,
            "Cluster": cluster,
        }
    return {
        "MatchingResources": references,
        "Resources": resources,
        "CloudEvents": events,
        "Cluster": cluster,
    }


class Fields:
    """Renders the fields of one trigger or profile that are templates.

    `annotations` are its own: they choose the dialect. By `quoting` errors say all, Secrets
    included: for who has them at hand.
    """

    def __init__(
        self,
        root: Mapping[str, Any],
        limits: Limits,
        annotations: Mapping[str, str],
        *,
        quoting: bool = False,
    ) -> None:
        self._root = root
        self._limits = limits
        self._dialect = dialect_of(annotations)
        self._secret = secrecy.in_reach(root)
        self._quoting = quoting
        self._withheld = secrecy.Withheld.of(root)

    def text(self, template: str, field: str) -> str:
        """Render one field.

        Raises:
            TemplateError: the template fails.
            InvalidError: what it wrote is made of a Secret's value.
        """
        with secrecy.unforeseen(f"cannot render {field}", secret=self._secret):
            asked = TemplateText(template, field, self._dialect, self._secret and not self._quoting)
            made = asked.render(self._root, self._limits)
            if self._secret:
                _refuse_values(self._withheld, asked, self._root, self._limits, [(field, made)])
            return made

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of its templates."""
        return self._dialect

    @property
    def secret(self) -> bool:
        """Say whether what is rendered may hold a Secret's values."""
        return self._secret

    def values(self, template: str, field: str) -> str:
        """Render values, which may be made of a Secret's.

        Raises:
            TemplateError: the template fails.
        """
        with secrecy.unforeseen(f"cannot render {field}", secret=self._secret):
            asked = TemplateText(template, field, self._dialect, self._secret and not self._quoting)
            return asked.render(self._root, self._limits)


def destination(ref: ObjectReference, fields: Fields, *, namespace: str) -> str:
    """Return the cluster that a destinationCluster names; an empty namespace is the source's.

    Raises:
        TemplateError: a field is a template that fails.
        InvalidError: what was rendered names no cluster.
    """
    kind = fields.text(ref.kind, "destinationCluster.kind")
    fields.text(ref.api_version, "destinationCluster.apiVersion")
    namespace = fields.text(ref.namespace, "destinationCluster.namespace") or namespace
    name = fields.text(ref.name, "destinationCluster.name")
    wrong = {
        "namespace": namespace_problem(namespace),
        "name": name_problem(name),
        "kind": "" if kind in _CLUSTERS else f"{kind!r} is not a cluster, as a SveltosCluster is",
    }
    for part, problem in wrong.items():
        if problem:
            said = f"cannot determine which cluster is meant: {problem}"
            raise InvalidError(said, where=f"destinationCluster.{part}")
    return f"{namespace}/{name}"


def resolve(
    refs: Sequence[PolicyRef], fields: Fields, *, namespace: str, field: str = "policyRefs[{}]"
) -> tuple[Ref, ...]:
    """Render the names of policyRefs; an empty namespace is `namespace`.

    What has files is left out. `field` is where a ref was written, with `{}` for its number.

    Raises:
        TemplateError: a name is a template that fails.
        InvalidError: a name is made of a Secret's value.
    """
    return tuple(
        Ref(
            ref.kind,
            fields.text(ref.namespace, f"{field.format(number)}.namespace") or namespace,
            fields.text(ref.name, f"{field.format(number)}.name"),
            ref.optional,
            ref.how,
        )
        for number, ref in enumerate(refs)
        if ref.files is None
    )


def contents(
    refs: Sequence[tuple[Ref, ConfigMap | Secret | Files | None]],
    root: Mapping[str, Any] | None,
    *,
    always: bool,
    limits: Limits,
    annotations: Mapping[str, str] | None = None,
    quoting: bool = False,
) -> tuple[Content, ...]:
    """Return the contents of refs: rendered with `root` where that is due, read as manifests.

    In the v1alpha1 era (`always`) everything is rendered at event time; later only what carries
    the annotation `projectsveltos.io/instantiate`. What carries `projectsveltos.io/template`
    is kept as a template for deploy time, and what carries `projectsveltos.io/lua` as a script that
    writes manifests then. What chooses a dialect and neither of the two is a
    template as well, of the first time there is. A user's own profile has no `root`. Entries of
    one object are taken by name: Sveltos takes them in random order. `annotations` are the
    trigger's: they choose the dialect of what does not choose its own. By `quoting` errors say
    all, Secrets included.

    Raises:
        MissingError: an object is not there and its ref is not optional.
        TemplateError: a template fails.
        InvalidError: what came out is not Kubernetes objects, or one is named after a Secret's
            value, or a Secret has a wrong type.
    """
    found: list[Content] = []
    withheld = secrecy.Withheld.of(root or {})
    for ref, holder in refs:
        if holder is None:
            if ref.optional:
                continue
            raise MissingError(missing(ref))
        how = _how(ref, holder)
        due = _due(holder, event=root is not None, always=always)
        dialect = dialect_of(holder.annotations, annotations or {})
        secret = not quoting and (_is_secret(holder) or secrecy.in_reach(root or {}))
        for entry, text in sorted(entries_of(holder).items()):
            name = f"{ref.namespace}/{ref.name}/{entry}"
            template = TemplateText(text, name, dialect, secret)
            with secrecy.unforeseen(f"cannot render {name}", secret=secret):
                made = _content(template, due, root or {}, limits, withheld)
            found.append(replace(made, ref=str(ref), entry=entry, how=how))
    return tuple(found)


def _how(ref: Ref, holder: ConfigMap | Secret | Files) -> Handling:
    """Tell how the objects of a ConfigMap or Secret are brought.

    The scale of an object is what its spec says, and is written with that.

    Raises:
        InvalidError: it asks for a subresource that is not written.
    """
    asked = {each.strip() for each in holder.annotations.get(SUBRESOURCES, "").split(",")}
    if unknown := sorted(asked - {"", "scale", "status"}):
        raise InvalidError(
            f"cannot use {holder.kind} '{holder.place}': its annotation {SUBRESOURCES} names"
            f" '{unknown[0][:40]}'; it takes status and scale"
        )
    return replace(ref.how, status=True) if "status" in asked else ref.how


def missing(ref: Ref, field: str = "policyRefs") -> str:
    """Say that what a ref of a field names is not there, and what to do."""
    cure = "apply it, or mark the ref optional" if field.endswith(_MAY_BE_OPTIONAL) else "apply it"
    return f"cannot find {ref} that {field} names; {cure}"


def _content(
    template: TemplateText,
    due: _Due,
    root: Mapping[str, Any],
    limits: Limits,
    withheld: secrecy.Withheld,
) -> Content:
    """Return what one entry holds: objects, or a template of them for deploy time."""
    made = Content("", "", dialect=template.dialect, secret=template.secret)
    if not due.now:
        if due.later:
            return replace(made, template=template.text, dialect=due.by(template.dialect))
        objects = read_manifests(template.text, source=template.name, secret=template.secret)
        return replace(made, manifests=objects)
    if due.later:
        made = replace(made, dialect=due.by(template.dialect))
        text = template.render(root, limits)
        if withheld.values:
            known = withheld.knowing(template.text).knowing(_otherwise(template, root, limits))
            return replace(made, template=text, withheld=known.parts())
        return replace(made, template=text)
    objects = render_manifests(template, root, limits)
    _refuse_values(withheld, template, root, limits, secrecy.names(objects))
    return replace(made, manifests=objects)


def _refuse_values(
    withheld: secrecy.Withheld,
    template: TemplateText,
    root: Mapping[str, Any],
    limits: Limits,
    names: Iterable[tuple[str, str]],
) -> None:
    """Refuse names made of Secrets' values; those that stay with other values are made of none.

    Raises:
        InvalidError: a name is made of one.
    """
    names, withheld = list(names), withheld.knowing(template.text)
    try:
        withheld.refuse_names(names, template.name)
    except InvalidError:
        known = withheld.knowing(_otherwise(template, root, limits))
        known.refuse_names(names, template.name)


def _otherwise(template: TemplateText, root: Mapping[str, Any], limits: Limits) -> str:
    """Return what a template writes with other values in its Secrets; nothing if it fails then."""
    try:
        return template.render(secrecy.otherwise(root), limits)
    except TemplateError:
        return ""


class Instance(Struct, frozen=True):
    """What event time makes of a ConfigMap or Secret: texts, and annotations for deploy time."""

    texts: Mapping[str, str]
    annotations: Mapping[str, str]


def instance(
    ref: Ref,
    holder: ConfigMap | Secret,
    root: Mapping[str, Any],
    *,
    always: bool,
    limits: Limits,
    annotations: Mapping[str, str] | None = None,
    quoting: bool = False,
) -> Instance | None:
    """Return what `contents` reads manifests from as text; None where nothing is rendered.

    Of the annotations those stay that deploy time asks for: what is rendered for good is no
    template any more.

    Raises:
        TemplateError: a template fails.
        InvalidError: a Secret has a wrong type.
    """
    due = _due(holder, event=True, always=always)
    if not due.now:
        return None
    dialect = dialect_of(holder.annotations, annotations or {})
    texts = _texts(ref, holder, root, limits, annotations or {}, quoting=quoting)
    if not due.later:
        return Instance(texts, {})
    if due.scripted:
        return Instance(texts, {LUA: holder.annotations[LUA]})
    chosen = {} if dialect == "go" else {ANNOTATION: str(dialect)}
    return Instance(texts, {TEMPLATE: holder.annotations[TEMPLATE], **chosen})


def _texts(
    ref: Ref,
    holder: ConfigMap | Secret,
    root: Mapping[str, Any],
    limits: Limits,
    annotations: Mapping[str, str],
    *,
    quoting: bool,
) -> dict[str, str]:
    """Render the entries of a ConfigMap or Secret with the event."""
    dialect = dialect_of(holder.annotations, annotations)
    secret = not quoting and (_is_secret(holder) or secrecy.in_reach(root))
    return {
        entry: TemplateText(text, f"{ref.namespace}/{ref.name}/{entry}", dialect, secret).render(
            root, limits
        )
        for entry, text in sorted(entries_of(holder).items())
    }


def generated_instance(
    ref: Ref,
    holder: ConfigMap | Secret,
    root: Mapping[str, Any],
    *,
    limits: Limits,
    annotations: Mapping[str, str],
    quoting: bool = False,
) -> Instance:
    """Return what a generator makes of a ConfigMap or Secret, which is rendered in any case.

    It has the annotations of the one it is made of, but that which asks for rendering now. One
    made with a Secret's values in reach is marked, so that nobody shows or quotes it.

    Raises:
        TemplateError: a template fails.
        InvalidError: a Secret has a wrong type.
    """
    texts = _texts(ref, holder, root, limits, annotations, quoting=quoting)
    kept = {key: value for key, value in holder.annotations.items() if key != INSTANTIATE}
    if _is_secret(holder) or secrecy.in_reach(root):
        kept[WITHHELD] = "true"
    return Instance(texts, kept)


def written(
    own: Ref, holder: ConfigMap | Secret, made: Instance, labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return what was made of a ConfigMap or Secret as one of its own."""
    metadata: dict[str, Any] = {
        "name": own.name,
        "namespace": own.namespace,
        "labels": dict(labels),
    }
    if made.annotations:
        metadata["annotations"] = dict(made.annotations)
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": own.kind, "metadata": metadata}
    if isinstance(holder, ConfigMap):
        return {**manifest, "data": dict(made.texts)}
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in made.texts.items()}
    return {**manifest, "type": holder.type, "data": encoded}


def _is_secret(holder: ConfigMap | Secret | Files) -> bool:
    """Say whether nobody may quote what an object holds."""
    return isinstance(holder, Secret) or WITHHELD in holder.annotations


class _Due(NamedTuple):
    """When something is rendered; `scripted` is what is a script, later."""

    now: bool
    later: bool
    scripted: bool = False

    def by(self, dialect: Dialect) -> Dialect | Literal["lua"]:
        return "lua" if self.scripted else dialect


def _due(holder: ConfigMap | Secret | Files, *, event: bool, always: bool) -> _Due:
    """Tell when the contents of an object are rendered: now, for each cluster later, or both.

    A script is run later, and rendered before that where it says so itself: two braces are Lua.

    Raises:
        InvalidError: it is to be a template and a script then.
    """
    if LUA in holder.annotations:
        if TEMPLATE in holder.annotations:
            raise InvalidError(
                f"cannot use {holder.kind} '{holder.place}': it has {TEMPLATE} and {LUA}, and is"
                " one of the two; take one away"
            )
        instantiated = INSTANTIATE in holder.annotations
        return _Due(now=event and instantiated, later=True, scripted=True)
    now = event and (always or INSTANTIATE in holder.annotations)
    later = TEMPLATE in holder.annotations and not always
    if not now and not later and ANNOTATION in holder.annotations:
        return _Due(now=event, later=not event)
    return _Due(now, later)


def deploy_time(
    content: Content,
    cluster: Mapping[str, Any],
    resources: Mapping[str, dict[str, Any]] = NONE,
    *,
    limits: Limits,
) -> Content:
    """Return a content as a cluster gets it; a template is rendered, `.Cluster` the destination.

    `resources` are the objects that it may read, by identifier.

    Raises:
        MissingInputError: what it is to be taken from is not there.
        TemplateError: the template fails.
        ScriptError: the script fails.
        InvalidError: what came out is not Kubernetes objects, or one is named after a Secret's
            value.
    """
    if content.missing:
        raise MissingInputError(content.missing)
    read_secret = any(map(is_withheld, resources.values()))
    secret = content.secret or read_secret
    made = content
    if content.template:
        made = _rendered(content, cluster, resources, limits, secret=secret)
    if made.how.patches:
        made = _patched(made, cluster, resources, limits, secret=read_secret)
    return _dressed(made)


def _rendered(
    content: Content,
    cluster: Mapping[str, Any],
    resources: Mapping[str, dict[str, Any]],
    limits: Limits,
    *,
    secret: bool,
) -> Content:
    """Return a content with the objects that its template writes."""
    root = {"Cluster": cluster, "MgmtResources": resources}
    # What was made of a Secret counts as one.
    objects = [{**each, **_AS_SECRET} if is_withheld(each) else each for each in resources.values()]
    read = {"Resources": objects, "Cluster": cluster}
    name = f"{content.ref}/{content.entry}"
    template = _text(content, name, resources, secret=secret)
    with secrecy.unforeseen(f"cannot render {name}", secret=secret):
        made = render_manifests(template, root, limits)
        known = secrecy.kept(content.withheld, json.dumps(cluster, default=str))
        known.refuse_names(secrecy.names(made), name)
        values = secrecy.Withheld.of(read).knowing(content.template)
        values.refuse_names(secrecy.names(made), name)
    return replace(content, manifests=made, template="", withheld=(), secret=secret)


def _patched(
    content: Content,
    cluster: Mapping[str, Any],
    resources: Mapping[str, dict[str, Any]],
    limits: Limits,
    *,
    secret: bool,
) -> Content:
    """Return a content with its profile's patches; by `secret` they may write a Secret's values."""
    texts = content.how.patches
    # Most users have no patches, and a cold function is not to load what applies them.
    from bellhop.rendering.patches.texts import with_patches  # noqa: PLC0415

    with secrecy.unforeseen(f"cannot patch {content.ref}", secret=content.secret or secret):
        made = with_patches(content.manifests, texts, cluster, resources, limits, secret=secret)
    secret = content.secret or secret or any(each.secret for each in texts)
    return replace(content, manifests=made, secret=secret)


def _text(
    content: Content, name: str, resources: Mapping[str, dict[str, Any]], *, secret: bool
) -> Text:
    if content.dialect != "lua":
        return TemplateText(content.template, name, content.dialect, secret, resources=resources)
    # Most users have no manifests by a script, and Lua takes a cold function its time.
    from bellhop.rendering.lua_manifests import ScriptText  # noqa: PLC0415

    return ScriptText(content.template, name, resources, secret)


def is_withheld(manifest: Mapping[str, Any]) -> bool:
    """Say whether nobody may quote what an object holds that is read."""
    marks = (manifest.get("metadata") or {}).get("annotations") or {}
    return secrecy.holds_values(manifest) or WITHHELD in marks


def withheld(
    cluster: Mapping[str, Any],
    resources: Mapping[str, dict[str, Any]],
    values: Sequence[str] = (),
) -> secrecy.Withheld:
    """Return what no name may be made of: Secrets that templates read, and values of Secrets."""
    objects = [
        {**each, "kind": secrecy.KIND} if is_withheld(each) else each for each in resources.values()
    ]
    held = {"kind": secrecy.KIND, "stringData": dict(enumerate(values))}
    return secrecy.Withheld.of({"Resources": [*objects, held], "Cluster": cluster})


def _dressed(content: Content) -> Content:
    """Give all objects of a content the labels and annotations that its profile adds."""
    how = content.how
    if not how.labels and not how.annotations:
        return content
    return replace(
        content, manifests=tuple(_with_metadata(each, how) for each in content.manifests)
    )


def _with_metadata(manifest: Mapping[str, Any], how: Handling) -> dict[str, Any]:
    metadata = dict(manifest["metadata"])
    for part, added in (("labels", how.labels), ("annotations", how.annotations)):
        if added:
            metadata[part] = {**(metadata.get(part) or {}), **added}
    return {**manifest, "metadata": metadata}


def entries_of(holder: ConfigMap | Secret | Files, field: str = "policyRefs") -> dict[str, str]:
    """Return the entries of a ConfigMap or Secret that a field names, or the files.

    Raises:
        InvalidError: a Secret has a wrong type, or an entry is no text.
    """
    if isinstance(holder, Files):
        return dict(holder.texts)
    if isinstance(holder, ConfigMap):
        return dict(holder.data)
    refuse_type(holder, field)
    try:
        return {entry: value.decode() for entry, value in holder.decoded().items()}
    except UnicodeDecodeError as error:
        raise InvalidError(
            f"cannot use Secret '{holder.namespace}/{holder.name}' in {field}: an entry is not"
            " UTF-8 text"
        ) from error


def refuse_type(secret: Secret, field: str) -> None:
    """Refuse a Secret that is none of add-ons, as Sveltos does.

    Raises:
        InvalidError: it has another type.
    """
    if secret.type != SECRET_TYPE:
        raise InvalidError(
            f"cannot use Secret '{secret.namespace}/{secret.name}' in {field}: unsupported"
            f" secret type '{secret.type}'; it must be '{SECRET_TYPE}'"
        )


def _reference(key: ObjectKey) -> gotemplate.Struct:
    fields = {
        "Kind": key.gvk.kind,
        "Namespace": key.namespace,
        "Name": key.name,
        "UID": "",
        "APIVersion": key.gvk.api_version,
        "ResourceVersion": "",
        "FieldPath": "",
    }
    return gotemplate.Struct(fields, "v1.ObjectReference")
