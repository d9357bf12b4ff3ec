"""What releases of charts would consist of, as Helm renders them without a cluster."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.diagnosis.object_names import scope_of
from bellhop.diagnosis.offline_result import Generated, Placement
from bellhop.documents.document import read_documents
from bellhop.ports.charts import Helm, Wanted
from bellhop.rendering.allow_limits import refuse_charted, release_allow
from bellhop.rendering.charts.releases import Desired
from bellhop.rendering.secrecy import unquoted
from bellhop.state.record import Content, Profile


def with_releases(made: Generated, helm: Helm, *, quoting: bool) -> Generated:
    """Return a profile with the objects of its releases among what each cluster would get.

    By `quoting` errors say all, values of Secrets included.

    Raises:
        PermanentError: a chart is not there, cannot be rendered, or has what is not allowed.
        TemporaryError: a repository does not answer.
    """
    placements = tuple(
        replace(
            each,
            contents=(*each.contents, *_rendered(each, made.profile, helm, quoting=quoting)),
        )
        for each in made.placements
    )
    return replace(made, placements=placements)


def _rendered(
    placement: Placement, profile: Profile, helm: Helm, *, quoting: bool
) -> tuple[Content, ...]:
    return tuple(
        _content(each, profile, helm, placement.kubernetes, quoting=quoting)
        for each in placement.releases
        if not each.chart.unwanted
    )


def _content(
    release: Desired, profile: Profile, helm: Helm, kubernetes: str, *, quoting: bool
) -> Content:
    """Return the objects of one release."""
    key = release.key
    release.check_values()
    found = helm.repositories.find(release.place)
    wanted = Wanted(
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
    with unquoted(f"cannot render the {named}", secret=release.secret and not quoting):
        text = helm.charts.render(wanted, kubernetes=kubernetes)
    read = read_documents(text, source=named, repeats=True)
    objects = (each.data for each in read if isinstance(each.data, dict) and each.data.get("kind"))
    manifests = tuple(_placed(each, key.namespace) for each in objects)
    if limit := release_allow(profile, key.namespace, key.name):
        refuse_charted(limit, manifests)
    return Content(named, f"chart {found.chart} {found.version}", manifests)


def _placed(manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return an object in the namespace that it would get, where its kind is known to have one."""
    metadata = manifest.get("metadata") or {}
    if metadata.get("namespace") or not scope_of(ObjectKey.of(manifest).gvk):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}
