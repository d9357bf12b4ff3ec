"""ConfigMaps and Secrets that users applied or triggers generated, and their users."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bellhop.api.kinds import ClusterProfile, ConfigMap, EventTrigger, Secret, of
from bellhop.cli.output import Column, Row, format_count
from bellhop.cli.printer import Description
from bellhop.cli.views.view import Query, View, labels_of, name_of
from bellhop.core.sveltos_annotations import WITHHELD
from bellhop.diagnosis.redaction import hide_values
from bellhop.installation import Installation
from bellhop.ports.kube import Manifest

COLUMNS = (
    Column("NAMESPACE", "namespace"),
    Column("NAME", "name"),
    Column("DATA", "data"),
    Column("BYTES", "bytes"),
    Column("KEYS", "keys", wide=True),
    Column("USED BY", "usedBy", wide=True),
)
_MARKS = ("projectsveltos.io/instantiate", "projectsveltos.io/template")


Item = tuple[ConfigMap | Secret, bool]
"""A ConfigMap or Secret, and whether values of Secrets are shown."""


def _select(kind: str, here: Installation, query: Query) -> Iterator[Item]:
    for manifest in _manifests(kind, here):
        namespace = str((manifest.get("metadata") or {}).get("namespace") or "default")
        if query.matches(namespace, name_of(manifest), labels_of(manifest)):
            found = of(manifest)
            assert isinstance(found, ConfigMap | Secret)
            yield found, query.show_secrets


def _manifests(kind: str, here: Installation) -> Iterator[Manifest]:
    """Yield the objects that users applied, then those that triggers generated."""
    for _, manifest in here.records.manifests.listed(kind):
        if manifest is not None:
            yield manifest
    for trigger in here.catalogs.current().triggers.values():
        for profile in here.records.profiles.of(trigger.name) if trigger.generators else ():
            yield from (dict(each) for each in profile.generated if each["kind"] == kind)


def _row(here: Installation, item: Item) -> Row:
    holder = item[0]
    decoded = holder.decoded()
    return {
        "namespace": holder.namespace,
        "name": holder.name,
        "data": len(decoded),
        "bytes": sum(map(len, decoded.values())),
        "keys": ", ".join(decoded) or "<none>",
        "usedBy": ", ".join(_users(here, holder)) or "<none>",
    }


def _manifest(_here: Installation, item: Item) -> Manifest:
    holder, show = item
    return holder.manifest() if show else hide_values(holder.manifest())


def _describe(here: Installation, item: Item, description: Description) -> None:
    holder, show = item
    show = show or (holder.kind == "ConfigMap" and WITHHELD not in holder.annotations)
    description.begin(holder.kind, f"{holder.namespace}/{holder.name}")
    description.field("Type", getattr(holder, "type", ""))
    description.field("Marked", ", ".join(mark for mark in _MARKS if mark in holder.annotations))
    description.section("Used by", _users(here, holder), nothing="nothing that names it as it is")
    for key, value in holder.decoded().items():
        lines = value.decode("utf-8", "replace").splitlines() if show else []
        description.section(
            f"{key} ({format_count(len(value), 'byte')})", lines, nothing="not shown"
        )


def _users(here: Installation, holder: ConfigMap | Secret) -> list[str]:
    catalog = here.catalogs.current()
    users: list[EventTrigger | ClusterProfile] = [
        *catalog.triggers.values(),
        *catalog.profiles.values(),
    ]
    return [
        f"{user.kind}/{user.place}"
        for user in users
        if any(
            (ref.kind, ref.name) == (holder.kind, holder.name)
            and ref.namespace in _places(user, holder)
            for ref in user.holder_refs
        )
    ]


def _places(user: object, holder: ConfigMap | Secret) -> tuple[str, ...]:
    """Return the namespaces a ref may name; an event's may be left to its cluster."""
    return (holder.namespace, "") if isinstance(user, EventTrigger) else (holder.namespace,)


VIEWS = {
    kind.lower(): View(COLUMNS, partial(_select, kind), _row, _manifest, _describe)
    for kind in ("ConfigMap", "Secret")
}
