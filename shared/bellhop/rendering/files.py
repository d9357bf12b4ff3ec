"""Manifests in files that no ConfigMap holds: which of them count, and what they are to a cluster.

They are read as the entries of a ConfigMap are, by the annotations of their Flux source.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from bellhop.errors import InvalidError, MissingError
from bellhop.rendering.event_contents import contents
from bellhop.rendering.inputs import TEMPLATE, Files, Ref
from bellhop.rendering.references import default_namespace, render_readings
from bellhop.rendering.templates import RenderContext
from bellhop.state.cluster_text import HeldText
from bellhop.state.content import Content, Reading, ref_parts, shown_url

if TYPE_CHECKING:
    from bellhop.api.policy_ref import PolicyRef
    from bellhop.documents.tarball import Folder
    from bellhop.rendering.event_variables import Event

_ENDINGS = (".yaml", ".yml", ".json")
_MOST_BYTES = 8 << 20
"""Of all manifests of one ref."""


def event_files(event: Event) -> Iterator[Content]:
    """Yield the policyRefs of a trigger whose manifests are in files, rendered with the event.

    Raises:
        PermanentError: a template fails.
    """
    for each in event.trigger.policy_refs:
        if each.files:
            field = f"{each.files.field}.path"
            path = event.fields.text(each.files.path, field)
            plain = event.are_plain({field: each.files.path})
            origin = replace(each.files, path=path, plain=plain)
            yield Content(ref_of(event, each), path, how=each.how, files=origin)


def event_readings(event: Event) -> Iterator[Reading]:
    """Yield what has files of a trigger's add-ons, named as the event has it.

    A ref without a namespace means that of the event's cluster.

    Raises:
        PermanentError: a template fails, or a name is made of a Secret's value.
    """
    asked = [each for each in event.trigger.readings if each.field]
    for each, named in zip(asked, render_readings(asked, event.fields), strict=True):
        plain = event.are_plain(_templates(each))
        yield replace(default_namespace(named, event.namespace), plain=plain)


def _templates(each: Reading) -> dict[str, str]:
    """Return what may be templates, by their fields."""
    if each.address:
        place = f"{each.field}.remoteURL"
        secret, namespace = each.address.secret, each.address.namespace
        names = {f"{place}.secretRef.name": secret, f"{place}.secretRef.namespace": namespace}
        return {f"{place}.url": each.address.url, **names}
    return {f"{each.field}.namespace": each.namespace, f"{each.field}.name": each.name}


def ref_of(event: Event, ref: PolicyRef) -> str:
    """Return what a ref is called, as the event has it."""
    assert ref.files
    field = ref.files.field
    for each in event.trigger.readings:
        if each.address and each.field == field:
            url = event.fields.text(each.address.url, f"{field}.remoteURL.url")
            return shown_url(url)
    name = event.fields.text(ref.name, f"{field}.name")
    namespace = event.fields.text(ref.namespace, f"{field}.namespace") or event.namespace
    return f"{ref.kind} {namespace}/{name}"


def contents_for(
    content: Content,
    files: Folder,
    annotations: Mapping[str, str],
    context: RenderContext,
) -> tuple[Content, ...]:
    """Return the manifests of files that a content is to a cluster, by the names of the files.

    Raises:
        MissingError: there is no manifest at the path.
        TemplateError: the path is a template that fails.
        InvalidError: the path leads out of the files, or is made of a Secret's value, or a file
            cannot be read.
    """
    origin = content.files
    assert origin
    path = HeldText(origin.path, f"{origin.field}.path", plain=origin.plain)
    place = context.render(path)
    context.withheld().knowing(origin.path).refuse_names([("path", place)], origin.field)
    marks = {**annotations, TEMPLATE: "true"} if origin.template else annotations
    return _contents(content, files, place, marks)


def _contents(
    content: Content, files: Folder, path: str, annotations: Mapping[str, str]
) -> tuple[Content, ...]:
    kind, namespace, name = ref_parts(content.ref)
    texts = dict(_texts(files, path, content.ref))
    if sum(map(len, texts.values())) > _MOST_BYTES:
        raise InvalidError(
            f"cannot deploy {content.ref}: its manifests have more than {_MOST_BYTES >> 20} MiB;"
            " name a folder of them by path"
        )
    holder = Files(kind, f"{namespace}/{name}" if namespace else name, texts, annotations)
    ref = Ref(kind, namespace, name, optional=False, how=content.how)
    made = contents([(ref, holder)])
    return tuple(
        replace(each, ref=content.ref, namespace=content.namespace, clusters=content.clusters)
        for each in made
    )


def _texts(files: Folder, path: str, ref: str) -> Iterator[tuple[str, str]]:
    """Yield the manifests at a path, which is a folder or one file; the topmost one if empty."""
    place = posixpath.normpath(path or ".").removeprefix("./")
    if path.startswith("/") or place.split("/")[0] == "..":
        raise InvalidError(f"cannot deploy {ref}: its path '{path}' leads out of it")
    found = [
        name
        for name in sorted(files)
        if name.endswith(_ENDINGS)
        if place in (".", name) or name.startswith(f"{place}/")
    ]
    if not found:
        where = f"at '{path}'" if path else "in it"
        raise MissingError(
            f"cannot deploy {ref}: there is no file {where} that ends in {', '.join(_ENDINGS)}"
        )
    for name in found:
        try:
            yield name, files[name].decode()
        except UnicodeDecodeError as error:
            raise InvalidError(f"cannot deploy {ref}: '{name}' is not UTF-8 text") from error
