"""From a trigger and the objects that match to the contents of a ClusterProfile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellhop.engine.manifests import read_manifests
from bellhop.engine.render import Limits, render
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
    refs: Sequence[PolicyRef], root: Mapping[str, Any], *, namespace: str, limits: Limits
) -> tuple[Ref, ...]:
    """Render the names of policyRefs; an empty namespace is the source cluster's.

    Raises:
        TemplateError: a name is a template that fails.
    """
    return tuple(
        Ref(
            ref.kind,
            render(ref.namespace, root, name="policyRefs.namespace", limits=limits) or namespace,
            render(ref.name, root, name="policyRefs.name", limits=limits),
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
) -> tuple[Content, ...]:
    """Return the contents of refs: rendered with `root` where that is due, read as manifests.

    In the v1alpha1 era (`always`) everything is rendered at event time; later only what carries
    the annotation `projectsveltos.io/instantiate`. What carries `projectsveltos.io/template`
    is kept as a template for deploy time. A user's own profile has no `root`. Entries of one
    object are taken by name: Sveltos takes them in random order.

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
        instantiate = root is not None and (always or INSTANTIATE in holder.annotations)
        later = TEMPLATE in holder.annotations and not always
        for entry, text in sorted(_texts(holder).items()):
            name = f"{ref.namespace}/{ref.name}/{entry}"
            if instantiate:
                text = render(text, root or {}, name=name, limits=limits)  # noqa: PLW2901
            if later:
                found.append(Content(str(ref), entry, template=text))
            else:
                found.append(Content(str(ref), entry, read_manifests(text, source=name)))
    return tuple(found)


def deploy_time(content: Content, cluster: Mapping[str, Any], *, limits: Limits) -> Content:
    """Render a content that waits for deploy time, with `.Cluster` the destination.

    Raises:
        TemplateError: the template fails.
        InvalidError: what came out is not Kubernetes objects.
    """
    if not content.template:
        return content
    name = f"{content.ref}/{content.entry}"
    root = {"Cluster": cluster, "MgmtResources": {}}
    text = render(content.template, root, name=name, limits=limits)
    return Content(content.ref, content.entry, read_manifests(text, source=name))


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
