"""The variables of event time, and the fields of triggers and profiles that are templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bellhop import gotemplate
from bellhop.api.kinds import EventTrigger, PolicyRef
from bellhop.api.ref import ObjectReference
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.core.names import name_problem, namespace_problem
from bellhop.errors import InvalidError, TemplateError
from bellhop.gotemplate import Limits
from bellhop.rendering import secrecy
from bellhop.rendering.cloud_events import event_of
from bellhop.rendering.inputs import Ref
from bellhop.rendering.templates import TemplateText, dialect_of

_CLUSTERS = ("", "SveltosCluster", "Cluster")


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


class Fields:
    """The variables of event time, and the rendering of one trigger's or profile's templates.

    `annotations` are its own: they choose the dialect of what does not choose its own. By `quoting`
    errors say all, Secrets included: for users who have them anyway.
    """

    def __init__(
        self,
        root: Mapping[str, Any],
        limits: Limits,
        annotations: Mapping[str, str],
        *,
        quoting: bool = False,
    ) -> None:
        self.root = root
        self.limits = limits
        self.annotations = annotations
        self.quoting = quoting
        self.dialect = dialect_of(annotations)
        self.secret = secrecy.has_values(root)
        """True if a rendered text may hold a Secret's values."""
        self.withheld = secrecy.Withheld.of(root)

    def with_root(self, root: Mapping[str, Any]) -> Fields:
        """Return the same with other variables."""
        return Fields(root, self.limits, self.annotations, quoting=self.quoting)

    def text(self, template: str, field: str) -> str:
        """Render one field.

        Raises:
            TemplateError: the template fails.
            InvalidError: what it wrote is made of a Secret's value.
        """
        with secrecy.withhold_unforeseen(f"cannot render {field}", secret=self.secret):
            asked = self._template(template, field)
            made = asked.render(self.root, self.limits)
            if self.secret:
                self.refuse_values(asked, [(field, made)])
            return made

    def values(self, template: str, field: str) -> str:
        """Render values, which may be made of a Secret's.

        Raises:
            TemplateError: the template fails.
        """
        with secrecy.withhold_unforeseen(f"cannot render {field}", secret=self.secret):
            return self._template(template, field).render(self.root, self.limits)

    def refuse_values(self, template: TemplateText, names: Iterable[tuple[str, str]]) -> None:
        """Refuse names made of Secrets' values; those that stay with other values are not.

        Raises:
            InvalidError: a name is made of one.
        """
        names, withheld = list(names), self.withheld.knowing(template.text)
        try:
            withheld.refuse_names(names, template.name)
        except InvalidError:
            known = withheld.knowing(self.render_otherwise(template))
            known.refuse_names(names, template.name)

    def render_otherwise(self, template: TemplateText) -> str:
        """Return what a template writes with other values in its Secrets; nothing if it fails."""
        try:
            return template.render(secrecy.replace_values(self.root), self.limits)
        except TemplateError:
            return ""

    def _template(self, text: str, field: str) -> TemplateText:
        return TemplateText(text, field, self.dialect, self.secret and not self.quoting)


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

    Refs of files are left out. `field` is where a ref was written, with `{}` for its number.

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
