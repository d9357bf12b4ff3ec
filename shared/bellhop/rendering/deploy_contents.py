"""The contents of a profile as one cluster gets them: rendered and patched at deploy time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from bellhop.rendering import secrecy
from bellhop.rendering.inputs import MissingInputError
from bellhop.rendering.manifests import Text, render_manifests
from bellhop.rendering.templates import RenderContext, TemplateText
from bellhop.state.content import Content, Handling


def deploy_time(content: Content, context: RenderContext) -> Content:
    """Return a content as a cluster gets it; a template is rendered, `.Cluster` the destination.

    Raises:
        MissingInputError: what it is to be taken from is not there.
        TemplateError: the template fails.
        ScriptError: the script fails.
        InvalidError: what came out is not Kubernetes objects, or one is named after a Secret's
            value.
    """
    if content.missing:
        raise MissingInputError(content.missing)
    made = content
    if content.template:
        made = _rendered(content, context)
    if made.how.patches:
        made = _patched(made, context)
    return _dressed(made)


def _rendered(content: Content, context: RenderContext) -> Content:
    """Return a content with the objects that its template writes."""
    name = f"{content.ref}/{content.entry}"
    secret = content.secret or context.secret
    template = _text(content, name, context, secret=secret)
    with secrecy.withhold_unforeseen(f"cannot render {name}", secret=secret):
        made = render_manifests(template, context.root, context.limits)
        known = secrecy.kept(content.withheld, json.dumps(context.cluster, default=str))
        known.refuse_names(secrecy.names(made), name)
        values = context.withheld().knowing(content.template)
        values.refuse_names(secrecy.names(made), name)
    return replace(content, manifests=made, template="", withheld=(), secret=secret)


def _patched(content: Content, context: RenderContext) -> Content:
    """Return a content with its profile's patches."""
    texts = content.how.patches
    # Most users have no patches, and a cold function is not to load what applies them.
    from bellhop.rendering.patches.texts import with_patches  # noqa: PLC0415

    secret = content.secret or context.secret
    with secrecy.withhold_unforeseen(f"cannot patch {content.ref}", secret=secret):
        made = with_patches(content.manifests, texts, context)
    return replace(content, manifests=made, secret=secret or any(each.secret for each in texts))


def _text(content: Content, name: str, context: RenderContext, *, secret: bool) -> Text:
    text, resources = content.template, context.resources
    if content.dialect != "lua":
        return TemplateText(text, name, content.dialect, secret, resources=resources)
    # Most users have no manifests by a script, and Lua takes a cold function its time.
    from bellhop.rendering.lua_manifests import ScriptText  # noqa: PLC0415

    return ScriptText(text, name, resources, secret)


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
