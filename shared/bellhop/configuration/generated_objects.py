"""ConfigMaps and Secrets of generated profiles, as Sveltos keeps them in `projectsveltos`.

    generator      what it wrote, under the name that its nameFormat gave
    instantiate    the ConfigMap or Secret that a policyRef names, with its texts rendered; the
                   generated ClusterProfile names this one

They are shown, and never read. A value of a Secret is written into Secrets only.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bellhop.configuration.limits import omit_data
from bellhop.core.identity import GENERATED_NAMESPACE, instance_name
from bellhop.core.sveltos_annotations import LUA, WITHHELD
from bellhop.documents.document import dump
from bellhop.ports.kube import Manifest
from bellhop.rendering.inputs import SECRET_TYPE, TEMPLATE
from bellhop.rendering.origin_labels import instance_labels
from bellhop.rendering.templates import ANNOTATION
from bellhop.state.content import Content, ref_name, ref_parts
from bellhop.state.profile import Profile

HOLDERS = frozenset({"ConfigMap", "Secret"})
_SECRET = "its data is rendered with values of a Secret"  # noqa: S105 - a reason


def list_generated(profile: Profile, source: str) -> Iterator[Manifest]:
    """Yield what generators wrote for a profile, and the instances of what it refers to.

    One that is too large for an object has no data, and an annotation with the reason.
    """
    for each in profile.generated:
        withheld = WITHHELD in (each["metadata"].get("annotations") or {})
        yield _limit(dict(each), secret=withheld)
    for ref, contents in _group(profile.contents).items():
        yield _make_instance(profile, source, ref, contents)


def refer_to_instances(profile: Profile) -> Profile:
    """Return a profile whose contents name instances instead of what these were made of.

    One of which nothing was ever rendered but texts that are no objects names these.
    """
    if profile.error and not profile.digest:
        contents = tuple(Content(_name(each), "") for each in profile.generated)
        return replace(profile, contents=contents)
    renamed = {
        each.ref: ref_name(
            ref_parts(each.ref)[0], GENERATED_NAMESPACE, instance_name(profile.name, each.ref)
        )
        for each in profile.contents
        if each.instantiated
    }
    contents = tuple(
        replace(each, ref=renamed[each.ref]) if each.instantiated else each
        for each in profile.contents
    )
    return replace(profile, contents=contents)


def _group(contents: Iterable[Content]) -> Mapping[str, list[Content]]:
    found: dict[str, list[Content]] = {}
    for each in contents:
        if each.instantiated:
            found.setdefault(each.ref, []).append(each)
    return found


def _make_instance(
    profile: Profile, source: str, ref: str, contents: Sequence[Content]
) -> Manifest:
    kind, namespace, name = ref_parts(ref)
    texts = {each.entry: _make_text(each) for each in contents}
    metadata: dict[str, Any] = {
        "name": instance_name(profile.name, ref),
        "namespace": GENERATED_NAMESPACE,
        "labels": instance_labels(profile, source, namespace, name),
    }
    for each in contents:
        metadata |= _annotate(each)
    secret = any(each.secret for each in contents)
    made: Manifest = {"apiVersion": "v1", "kind": kind, "metadata": metadata}
    if kind == "ConfigMap":
        return _limit({**made, "data": texts}, secret=secret)
    data = {entry: base64.b64encode(text.encode()).decode() for entry, text in texts.items()}
    return _limit({**made, "type": SECRET_TYPE, "data": data}, secret=secret)


def _make_text(content: Content) -> str:
    return content.template or "---\n".join(map(dump, content.manifests))


def _annotate(content: Content) -> dict[str, Any]:
    """Return the annotations of an object that is rendered once more in each cluster."""
    if not content.template:
        return {}
    if content.dialect == "lua":
        return {"annotations": {LUA: "ok"}}
    chosen = {} if content.dialect == "go" else {ANNOTATION: content.dialect}
    return {"annotations": {TEMPLATE: "ok", **chosen}}


def _limit(manifest: Manifest, *, secret: bool) -> Manifest:
    reason = _SECRET if secret and manifest["kind"] == "ConfigMap" else ""
    return omit_data(manifest, reason)


def _name(manifest: Mapping[str, Any]) -> str:
    metadata = manifest["metadata"]
    return ref_name(manifest["kind"], metadata["namespace"], metadata["name"])
