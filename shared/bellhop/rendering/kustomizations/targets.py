"""What a kustomization is to be in one cluster: what is built, and what is made of that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.gotemplate import Limits
from bellhop.rendering import secrecy
from bellhop.rendering.event_contents import MissingInputError, is_withheld, withheld
from bellhop.rendering.manifests import read_manifests, render_manifests
from bellhop.rendering.templates import TemplateText, render_held
from bellhop.state.cluster_text import HeldText
from bellhop.state.kustomization import Kustomization, Substitute
from bellhop.state.record import Content

Resources = Mapping[str, dict[str, Any]]


class Build(Struct, frozen=True):
    """What a kustomization is built by, beside its files."""

    path: str
    components: tuple[str, ...]
    namespace: str


def build_for(
    kustomization: Kustomization,
    cluster: Mapping[str, Any],
    resources: Resources,
    limits: Limits,
) -> Build:
    """Return what is built for a cluster; `resources` are what templates may read.

    Raises:
        TemplateError: a template fails.
        InvalidError: one wrote the value of a Secret, which everybody would see.
    """
    secret = any(map(is_withheld, resources.values()))
    known = withheld(cluster, resources)

    def rendered(text: str, name: str) -> str:
        field = f"{kustomization.field}.{name}"
        held = HeldText(text, field, plain=kustomization.plain)
        made = render_held(held, cluster, resources, limits, secret=secret)
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


def objects_of(
    content: Content,
    output: str,
    cluster: Mapping[str, Any],
    resources: Resources,
    limits: Limits,
) -> Content:
    """Return a kustomization with the objects that were built, values put into them.

    What was built is a template where there are values, and only there. They are its variables, as
    in Sveltos, and so are `.Cluster` and `.MgmtResources`.

    Raises:
        MissingInputError: what values are to be taken from is not there.
        TemplateError: a template fails.
        InvalidError: what came out is not Kubernetes objects, or one is named after a Secret's
            value.
    """
    assert content.kustomization
    name = f"{content.ref}/{content.entry}"
    values = list(_for(content.kustomization, cluster))
    if not values:
        made = read_manifests(output, source=name, secret=content.secret)
        return replace(content, manifests=made)
    read_secret = any(map(is_withheld, resources.values()))
    secret = content.secret or read_secret or any(each.secret for each in values)
    with secrecy.unforeseen(f"cannot render {name}", secret=secret):
        texts = {
            each.key: render_held(
                each, cluster, resources, limits, secret=read_secret or each.secret
            )
            for each in values
        }
        template = TemplateText(output, name, secret=secret, resources=resources)
        root = {"Cluster": cluster, "MgmtResources": resources, **texts}
        made = render_manifests(template, root, limits)
        known = withheld(cluster, resources, [texts[each.key] for each in values if each.secret])
        known.knowing(output).refuse_names(secrecy.names(made), name)
    return replace(content, manifests=made, secret=secret)


def _for(kustomization: Kustomization, cluster: Mapping[str, Any]) -> Iterator[Substitute]:
    """Yield the values that a cluster gets.

    Raises:
        MissingInputError: something that they are to be taken from is not there.
    """
    metadata = cluster["metadata"]
    for each in kustomization.values:
        if each.is_for(f"{metadata['namespace']}/{metadata['name']}"):
            if each.missing:
                raise MissingInputError(each.missing)
            yield each
