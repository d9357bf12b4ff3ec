"""Kustomizations of a profile in one cluster: their inputs, and the objects that they build."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from bellhop.rendering import secrecy
from bellhop.rendering.inputs import MissingInputError
from bellhop.rendering.manifests import read_manifests, render_manifests
from bellhop.rendering.templates import RenderContext, TemplateText
from bellhop.state.cluster_text import HeldText
from bellhop.state.content import Content, Kustomization, Substitute


class Build(Struct, frozen=True):
    """The inputs of a kustomization beside its files."""

    path: str
    components: tuple[str, ...]
    namespace: str


def build_for(kustomization: Kustomization, context: RenderContext) -> Build:
    """Return what is built for a cluster.

    Raises:
        TemplateError: a template fails.
        InvalidError: one wrote the value of a Secret, which everybody would see.
    """
    known = context.withheld()

    def rendered(text: str, name: str) -> str:
        field = f"{kustomization.field}.{name}"
        made = context.render(HeldText(text, field, plain=kustomization.plain))
        known.knowing(text).refuse_names([(name, made)], kustomization.field)
        return made

    return Build(
        rendered(kustomization.path, "path"),
        tuple(
            rendered(each, f"components[{number}]")
            for number, each in enumerate(kustomization.components)
        ),
        rendered(kustomization.namespace, "targetNamespace"),
    )


def objects_of(content: Content, output: str, context: RenderContext) -> Content:
    """Return a kustomization with the objects that were built, values put into them.

    The built text is a template only if there are values. They are its variables, as in Sveltos,
    and so are `.Cluster` and `.MgmtResources`.

    Raises:
        MissingInputError: what values are to be taken from is not there.
        TemplateError: a template fails.
        InvalidError: what came out is not Kubernetes objects, or one is named after a Secret's
            value.
    """
    assert content.kustomization
    name = f"{content.ref}/{content.entry}"
    values = list(_for(content.kustomization, context.key))
    if not values:
        made = read_manifests(output, source=name, secret=content.secret)
        return replace(content, manifests=made)
    secret = content.secret or context.secret or any(each.secret for each in values)
    with secrecy.withhold_unforeseen(f"cannot render {name}", secret=secret):
        texts = {each.key: context.render(each) for each in values}
        template = TemplateText(output, name, secret=secret, resources=context.resources)
        made = render_manifests(template, {**context.root, **texts}, context.limits)
        known = context.withheld([texts[each.key] for each in values if each.secret])
        known.knowing(output).refuse_names(secrecy.names(made), name)
    return replace(content, manifests=made, secret=secret)


def _for(kustomization: Kustomization, cluster: str) -> Iterator[Substitute]:
    """Yield the values that a cluster gets.

    Raises:
        MissingInputError: something that they are to be taken from is not there.
    """
    for each in kustomization.values:
        if each.is_for(cluster):
            if each.missing:
                raise MissingInputError(each.missing)
            yield each
