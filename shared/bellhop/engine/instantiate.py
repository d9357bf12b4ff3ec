"""From a trigger and the objects that match to the contents of a ClusterProfile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bellhop.engine.manifests import read_manifests, render_manifests
from bellhop.engine.render import ANNOTATION, Limits, Template, dialect_of, render
from bellhop.errors import InvalidError, MissingError
from bellhop.gotemplate import Struct
from bellhop.model.gvk import ObjectKey
from bellhop.model.kinds import ConfigMap, EventTrigger, PolicyRef, Secret
from bellhop.model.record import Content

INSTANTIATE = "projectsveltos.io/instantiate"
TEMPLATE = "projectsveltos.io/template"
SECRET_TYPE = "addons.projectsveltos.io/cluster-profile"  # noqa: S105 - a Secret's type, not one


@dataclass(frozen=True, slots=True)
class Ref:
    """A ConfigMap or Secret that a profile takes its manifests from, with its final name."""

    kind: str
    namespace: str
    name: str
    optional: bool

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def variables(
    trigger: EventTrigger,
    cluster: Mapping[str, Any],
    matched: Sequence[tuple[ObjectKey, Mapping[str, Any]]],
    *,
    collect: bool,
) -> dict[str, Any]:
    """Return the root variables of event time.

    With oneForEvent `.MatchingResource` and `.Resource` of the one object, else
    `.MatchingResources` and `.Resources` of all, in the order given; `.Resource` is nil and
    `.Resources` empty unless the source collects. `.Cluster` is where the event happened.
    """
    references = [_reference(key) for key, _ in matched]
    resources = [dict(manifest) for _, manifest in matched] if collect else []
    if trigger.one_for_event:
        return {
            "MatchingResource": references[0],
            "Resource": resources[0] if resources else None,
            "CloudEvent": None,
            "Cluster": cluster,
        }
    return {
        "MatchingResources": references,
        "Resources": resources,
        "CloudEvents": [],
        "Cluster": cluster,
    }


def resolve(
    refs: Sequence[PolicyRef],
    root: Mapping[str, Any],
    *,
    namespace: str,
    limits: Limits,
    annotations: Mapping[str, str] | None = None,
) -> tuple[Ref, ...]:
    """Render the names of policyRefs; an empty namespace is the source cluster's.

    `annotations` are the trigger's: they choose the dialect.

    Raises:
        TemplateError: a name is a template that fails.
        InvalidError: the annotations choose a dialect that is not there.
    """
    dialect = dialect_of(annotations or {})

    def text(template: str, name: str) -> str:
        return render(template, root, name=name, limits=limits, dialect=dialect)

    return tuple(
        Ref(
            ref.kind,
            text(ref.namespace, "policyRefs.namespace") or namespace,
            text(ref.name, "policyRefs.name"),
            ref.optional,
        )
        for ref in refs
    )


def contents(
    refs: Sequence[tuple[Ref, ConfigMap | Secret | None]],
    root: Mapping[str, Any] | None,
    *,
    always: bool,
    limits: Limits,
    annotations: Mapping[str, str] | None = None,
) -> tuple[Content, ...]:
    """Return the contents of refs: rendered with `root` where that is due, read as manifests.

    In the v1alpha1 era (`always`) everything is rendered at event time; later only what carries
    the annotation `projectsveltos.io/instantiate`. What carries `projectsveltos.io/template`
    is kept as a template for deploy time. What chooses a dialect and neither of the two is a
    template as well, of the first time there is. A user's own profile has no `root`. Entries of
    one object are taken by name: Sveltos takes them in random order. `annotations` are the
    trigger's: they choose the dialect of what does not choose its own.

    Raises:
        MissingError: an object is not there and its ref is not optional.
        TemplateError: a template fails.
        InvalidError: what came out is not Kubernetes objects, or a Secret has a wrong type.
    """
    found: list[Content] = []
    for ref, holder in refs:
        if holder is None:
            if ref.optional:
                continue
            raise MissingError(
                f"cannot find {ref} that policyRefs names; apply it, or mark the ref optional"
            )
        due = _due(holder, event=root is not None, always=always)
        dialect = dialect_of(holder.annotations, annotations or {})
        secret = isinstance(holder, Secret) or _shows_secrets(root or {})
        for entry, text in sorted(_texts(holder).items()):
            name = f"{ref.namespace}/{ref.name}/{entry}"
            template = Template(text, name, dialect, secret)
            if due.later:
                kept = template.render(root or {}, limits) if due.now else text
                found.append(Content(str(ref), entry, (), kept, dialect, secret))
            elif due.now:
                objects = render_manifests(template, root or {}, limits)
                found.append(Content(str(ref), entry, objects))
            else:
                objects = read_manifests(text, source=name, secret=secret)
                found.append(Content(str(ref), entry, objects))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Instance:
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
    secret = isinstance(holder, Secret) or _shows_secrets(root)
    texts = {
        entry: Template(text, f"{ref.namespace}/{ref.name}/{entry}", dialect, secret).render(
            root, limits
        )
        for entry, text in sorted(_texts(holder).items())
    }
    if not due.later:
        return Instance(texts, {})
    chosen = {} if dialect == "go" else {ANNOTATION: str(dialect)}
    return Instance(texts, {TEMPLATE: holder.annotations[TEMPLATE], **chosen})


class _Due(NamedTuple):
    now: bool
    later: bool


def _due(holder: ConfigMap | Secret, *, event: bool, always: bool) -> _Due:
    """Tell when the contents of an object are rendered: now, for each cluster later, or both."""
    now = event and (always or INSTANTIATE in holder.annotations)
    later = TEMPLATE in holder.annotations and not always
    if not now and not later and ANNOTATION in holder.annotations:
        return _Due(now=event, later=not event)
    return _Due(now, later)


def _shows_secrets(root: Mapping[str, Any]) -> bool:
    """Tell whether what is rendered may hold the values of Secrets, which no error may quote."""
    objects = [root.get("Resource"), *(root.get("Resources") or ())]
    return any(isinstance(each, Mapping) and each.get("kind") == "Secret" for each in objects)


def deploy_time(content: Content, cluster: Mapping[str, Any], *, limits: Limits) -> Content:
    """Render a content that waits for deploy time, with `.Cluster` the destination.

    Raises:
        TemplateError: the template fails.
        InvalidError: what came out is not Kubernetes objects.
    """
    if not content.template:
        return content
    root = {"Cluster": cluster, "MgmtResources": {}}
    name = f"{content.ref}/{content.entry}"
    template = Template(content.template, name, content.dialect, content.secret)
    return Content(content.ref, content.entry, render_manifests(template, root, limits))


def _texts(holder: ConfigMap | Secret) -> dict[str, str]:
    if isinstance(holder, ConfigMap):
        return dict(holder.data)
    if holder.type != SECRET_TYPE:
        raise InvalidError(
            f"cannot use Secret '{holder.namespace}/{holder.name}' in policyRefs: unsupported"
            f" secret type '{holder.type}'; it must be '{SECRET_TYPE}'"
        )
    try:
        return {entry: value.decode() for entry, value in holder.decoded().items()}
    except UnicodeDecodeError as error:
        raise InvalidError(
            f"cannot use Secret '{holder.namespace}/{holder.name}' in policyRefs: an entry is not"
            " UTF-8 text"
        ) from error


def _reference(key: ObjectKey) -> Struct:
    fields = {
        "Kind": key.gvk.kind,
        "Namespace": key.namespace,
        "Name": key.name,
        "UID": "",
        "APIVersion": key.gvk.api_version,
        "ResourceVersion": "",
        "FieldPath": "",
    }
    return Struct(fields, "v1.ObjectReference")
