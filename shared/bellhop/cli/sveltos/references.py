"""The ConfigMaps and Secrets that Sveltos' objects name: only these leave the management cluster.

They are found by the shape of a reference, not kind by kind: a mapping with a `name` whose `kind`
is one of the two, or that stands in a field which means one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from bellhop.core.names import is_template

HOLDERS = ("ConfigMap", "Secret")

_KIND_OF = {
    "ca": "Secret",
    "configMapGenerator": "ConfigMap",
    "credentials": "Secret",
    "key": "Secret",
    "secretGenerator": "Secret",
    "secretRef": "Secret",
}
"""Fields whose entries have no kind."""

_CHECKS = ("postDeleteChecks", "preDeleteChecks", "preDeployChecks", "validateHealths")
"""Fields whose `kind` is that of objects in the clusters."""

_FLUX = ("Bucket", "GitRepository", "OCIRepository")


class Reference(NamedTuple):
    """A ConfigMap or Secret; `namespace` and `name` may be templates.

    An empty namespace is that of each cluster.
    """

    kind: str
    namespace: str
    name: str
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace or '*'}/{self.name}"

    @property
    def is_template(self) -> bool:
        """Say whether the name or the namespace is known only when it is rendered."""
        return is_template(self.namespace + self.name)

    @property
    def is_open(self) -> bool:
        """Say whether the name is a template through and through, which fits everything."""
        return not "".join(_fixed_parts(self.name)).strip()

    def fits(self, namespace: str, name: str, namespaces: Collection[str]) -> bool:
        """Say whether an object may be meant; by no namespace each of `namespaces` is."""
        near = _fits(self.namespace, namespace) if self.namespace else namespace in namespaces
        return near and _fits(self.name, name)


def references(manifest: Mapping[str, Any]) -> Iterator[Reference]:
    """Yield the ConfigMaps and Secrets that a trigger, profile, request or check names."""
    own = ""
    if manifest.get("kind") == "Profile":
        own = str((manifest.get("metadata") or {}).get("namespace") or "default")
    for field, entry in _mappings("", manifest.get("spec")):
        kind, name = _KIND_OF.get(field, entry.get("kind")), entry.get("name")
        if field in _CHECKS or kind not in HOLDERS or not isinstance(name, str) or not name:
            continue
        namespace = own or str(entry.get("namespace") or "")
        yield Reference(str(kind), namespace, name, bool(entry.get("optional")))


def needs_hub(manifest: Mapping[str, Any]) -> bool:
    """Say whether an object deploys to the management cluster, or reads other kinds from it."""
    return any(
        entry.get("deploymentType") == "Local"
        or entry.get("kind") in _FLUX
        or (field == "resource" and entry.get("kind") not in HOLDERS)
        for field, entry in _mappings("", manifest.get("spec"))
    )


def _mappings(field: str, data: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each mapping of a tree with the field it stands in; a list has that of its entries."""
    if isinstance(data, list):
        for entry in data:
            yield from _mappings(field, entry)
    elif isinstance(data, dict) and field != "target":
        yield field, data
        for name, value in data.items():
            yield from _mappings(str(name), value)


def _fixed_parts(template: str) -> list[str]:
    """Return the texts before, between and after the actions of a template."""
    parts, at = [], 0
    while (start := template.find("{{", at)) >= 0 and (end := template.find("}}", start + 2)) >= 0:
        parts.append(template[at:start])
        at = end + 2
    return [*parts, template[at:]]


def _fits(pattern: str, text: str) -> bool:
    """Say whether a template may be rendered as a text; each action may write anything."""
    first, *rest = _fixed_parts(pattern)
    if not rest:
        return text == first
    *middle, last = rest
    at = len(first)
    if not (text.startswith(first) and text.endswith(last) and at + len(last) <= len(text)):
        return False
    for part in middle:
        # The first place is the best one: whatever fits later fits after it, too.
        found = text.find(part, at, len(text) - len(last))
        if found < 0:
            return False
        at = found + len(part)
    return True
