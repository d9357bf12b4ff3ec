"""The contents of a profile as event time makes them of ConfigMaps, Secrets and files."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from bellhop.api.kinds import ConfigMap, Secret
from bellhop.core.sveltos_annotations import LUA, SUBRESOURCES, WITHHELD
from bellhop.errors import InvalidError, MissingError
from bellhop.rendering import secrecy
from bellhop.rendering.event_fields import Fields
from bellhop.rendering.inputs import (
    INSTANTIATE,
    TEMPLATE,
    Files,
    Ref,
    entries_of,
    is_secret,
    missing,
)
from bellhop.rendering.manifests import read_manifests, render_manifests
from bellhop.rendering.templates import ANNOTATION, Dialect, TemplateText, dialect_of
from bellhop.state.content import Content, Handling


def contents(
    refs: Sequence[tuple[Ref, ConfigMap | Secret | Files | None]],
    fields: Fields | None = None,
    *,
    always: bool = False,
) -> tuple[Content, ...]:
    """Return the contents of refs: rendered with `fields` where that is due, read as manifests.

    In the v1alpha1 era (`always`) everything is rendered at event time; later only what carries
    the annotation `projectsveltos.io/instantiate`. An object with `projectsveltos.io/template`
    is kept as a template for deploy time, and one with `projectsveltos.io/lua` as a script that
    writes manifests then. An object that chooses a dialect and neither of the two is a
    template as well, of the first time there is. A user's own profile has no `fields`. Entries of
    one object are taken by name: Sveltos takes them in random order.

    Raises:
        MissingError: an object is not there and its ref is not optional.
        TemplateError: a template fails.
        InvalidError: what came out is not Kubernetes objects, or one is named after a Secret's
            value, or a Secret has a wrong type.
    """
    found: list[Content] = []
    for ref, holder in refs:
        if holder is None:
            if ref.optional:
                continue
            raise MissingError(missing(ref))
        how = _how(ref, holder)
        due = _due(holder, event=fields is not None, always=always)
        for entry, template in _templates(ref, holder, fields):
            with secrecy.withhold_unforeseen(
                f"cannot render {template.name}", secret=template.secret
            ):
                made = _content(template, due, fields)
            instantiated = due.now and not isinstance(holder, Files)
            found.append(
                replace(made, ref=str(ref), entry=entry, how=how, instantiated=instantiated)
            )
    return tuple(found)


def _templates(
    ref: Ref, holder: ConfigMap | Secret | Files, fields: Fields | None
) -> Iterator[tuple[str, TemplateText]]:
    """Yield the entries of an object by name, as templates of its dialect, or of the trigger's."""
    dialect = dialect_of(holder.annotations, fields.annotations if fields else {})
    secret = is_secret(holder)
    if fields:
        secret = (secret or fields.secret) and not fields.quoting
    for entry, text in sorted(entries_of(holder).items()):
        yield entry, TemplateText(text, f"{ref.namespace}/{ref.name}/{entry}", dialect, secret)


def _how(ref: Ref, holder: ConfigMap | Secret | Files) -> Handling:
    """Return the handling of the objects of a ConfigMap or Secret.

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


def _content(template: TemplateText, due: _Due, fields: Fields | None) -> Content:
    """Return what one entry holds: objects, or a template of them for deploy time."""
    made = Content("", "", dialect=template.dialect, secret=template.secret)
    if not due.now:
        if due.later:
            return replace(made, template=template.text, dialect=due.by(template.dialect))
        objects = read_manifests(template.text, source=template.name, secret=template.secret)
        return replace(made, manifests=objects)
    assert fields
    if due.later:
        text = template.render(fields.root, fields.limits)
        made = replace(made, template=text, dialect=due.by(template.dialect))
        if fields.withheld.values:
            known = fields.withheld.knowing(template.text)
            known = known.knowing(fields.render_otherwise(template))
            return replace(made, withheld=known.parts())
        return made
    objects = render_manifests(template, fields.root, fields.limits)
    fields.refuse_values(template, secrecy.names(objects))
    return replace(made, manifests=objects)


class Instance(Struct, frozen=True):
    """A ConfigMap or Secret rendered at event time: texts, and annotations for deploy time."""

    texts: Mapping[str, str]
    annotations: Mapping[str, str]


def instance(
    ref: Ref, holder: ConfigMap | Secret, fields: Fields, *, always: bool
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
    texts = _texts(ref, holder, fields)
    if not due.later:
        return Instance(texts, {})
    if due.scripted:
        return Instance(texts, {LUA: holder.annotations[LUA]})
    dialect = dialect_of(holder.annotations, fields.annotations)
    chosen = {} if dialect == "go" else {ANNOTATION: str(dialect)}
    return Instance(texts, {TEMPLATE: holder.annotations[TEMPLATE], **chosen})


def _texts(ref: Ref, holder: ConfigMap | Secret, fields: Fields) -> dict[str, str]:
    """Render the entries of a ConfigMap or Secret with the event."""
    return {
        entry: template.render(fields.root, fields.limits)
        for entry, template in _templates(ref, holder, fields)
    }


def generated_instance(ref: Ref, holder: ConfigMap | Secret, fields: Fields) -> Instance:
    """Return what a generator makes of a ConfigMap or Secret, which is rendered in any case.

    It has the annotations of the one it is made of, but that which asks for rendering now. One
    made with a Secret's values in reach is marked, so that nobody shows or quotes it.

    Raises:
        TemplateError: a template fails.
        InvalidError: a Secret has a wrong type.
    """
    texts = _texts(ref, holder, fields)
    kept = {key: value for key, value in holder.annotations.items() if key != INSTANTIATE}
    if is_secret(holder) or fields.secret:
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


class _Due(NamedTuple):
    """The times at which contents are rendered; a script runs later."""

    now: bool
    later: bool
    scripted: bool = False

    def by(self, dialect: Dialect) -> Dialect | Literal["lua"]:
        return "lua" if self.scripted else dialect


def _due(holder: ConfigMap | Secret | Files, *, event: bool, always: bool) -> _Due:
    """Return the times at which contents are rendered: now, for each cluster later, or both.

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
