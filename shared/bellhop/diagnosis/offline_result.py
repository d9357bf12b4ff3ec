"""The result of offline rendering: profiles, and the objects of their charts."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.diagnosis.names import is_namespaced
from bellhop.documents.document import read_documents
from bellhop.ports.charts import DesiredRelease, Helm
from bellhop.rendering.allow_limits import refuse_charted, release_allow
from bellhop.rendering.charts.releases import Desired
from bellhop.rendering.charts.releases import Desired as Release
from bellhop.rendering.inputs import Ref
from bellhop.rendering.secrecy import withhold_quotes
from bellhop.state.content import Content
from bellhop.state.profile import Profile


class Target(Struct, frozen=True):
    """The contents of one cluster; Helm renders its `releases` separately."""

    cluster: str
    contents: tuple[Content, ...]
    releases: tuple[Release, ...] = ()
    kubernetes: str = ""


class RenderedHolder(Struct, frozen=True):
    """A ConfigMap or Secret rendered with an event; `origin` has the templates."""

    origin: Ref
    ref: Ref
    manifest: dict[str, Any]


class RenderedProfile(Struct, frozen=True):
    """A profile that a trigger would generate; its `object` is empty for all together."""

    profile: Profile
    manifest: dict[str, Any]
    instantiated: tuple[RenderedHolder, ...]
    placements: tuple[Target, ...]


def render_releases(made: RenderedProfile, helm: Helm, *, quoting: bool) -> RenderedProfile:
    """Return a profile with the objects of its releases among the contents of each target.

    By `quoting` errors show values of Secrets.

    Raises:
        PermanentError: a chart does not exist, cannot be rendered, or has what is not allowed.
        TemporaryError: a repository does not answer.
    """
    placements = tuple(
        replace(
            each,
            contents=(*each.contents, *_render_all(each, made.profile, helm, quoting=quoting)),
        )
        for each in made.placements
    )
    return replace(made, placements=placements)


def _render_all(
    placement: Target, profile: Profile, helm: Helm, *, quoting: bool
) -> tuple[Content, ...]:
    return tuple(
        _render(each, profile, helm, placement.kubernetes, quoting=quoting)
        for each in placement.releases
        if not each.chart.unwanted
    )


def _render(
    release: Desired, profile: Profile, helm: Helm, kubernetes: str, *, quoting: bool
) -> Content:
    key = release.key
    release.check_values()
    found = helm.repositories.find(release.place)
    desired = DesiredRelease(
        key.name,
        key.namespace,
        found.path,
        release.values,
        release.chart.install,
        patches=release.patches,
        labels=release.how.labels,
        annotations=release.how.annotations,
    )
    named = f"release {key.namespace}/{key.name}"
    with withhold_quotes(f"cannot render the {named}", secret=release.secret and not quoting):
        text = helm.charts.render(desired, kubernetes=kubernetes)
    read = read_documents(text, source=named, repeats=True)
    objects = (each.data for each in read if isinstance(each.data, dict) and each.data.get("kind"))
    manifests = tuple(_set_namespace(each, key.namespace) for each in objects)
    if limit := release_allow(profile, key.namespace, key.name):
        refuse_charted(limit, manifests)
    return Content(named, f"chart {found.chart} {found.version}", manifests)


def _set_namespace(manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return an object in the release's namespace, if its kind is known to be namespaced."""
    metadata = manifest.get("metadata") or {}
    if metadata.get("namespace") or not is_namespaced(ObjectKey.of(manifest).gvk):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}
