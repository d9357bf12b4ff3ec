"""ConfigMaps and Secrets that users applied or triggers generated: what add-ons are made of."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.api.kinds import ClusterProfile, ConfigMap, EventTrigger, Secret, of
from bellhop.cli.describe import Story
from bellhop.cli.output import Column, Row, count
from bellhop.cli.redaction import hidden
from bellhop.cli.views.view import Query, View, labels_of, name_of
from bellhop.core.sveltos_annotations import WITHHELD
from bellhop.installation.installation import Installation
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


def _holders(here: Installation, kind: str, query: Query) -> Iterator[ConfigMap | Secret]:
    for _, manifest in here.records.manifests.listed(kind):
        if manifest is None:
            continue
        namespace = str((manifest.get("metadata") or {}).get("namespace") or "default")
        if query.takes(namespace, name_of(manifest), labels_of(manifest)):
            holder = of(manifest)
            assert isinstance(holder, ConfigMap | Secret)
            yield holder
    for trigger in here.catalogs.current().triggers.values():
        profiles = here.records.profiles.of(trigger.name) if trigger.generators else ()
        for written in (each for profile in profiles for each in profile.generated):
            holder = of(dict(written))
            assert isinstance(holder, ConfigMap | Secret)
            if holder.kind == kind and query.takes(
                holder.namespace, holder.name, holder.metadata.labels
            ):
                yield holder


def _view(kind: str) -> View:
    def manifests(here: Installation, query: Query) -> Iterator[Manifest]:
        for holder in _holders(here, kind, query):
            manifest = holder.manifest()
            yield manifest if query.show_secrets else hidden(manifest)

    def rows(here: Installation, query: Query) -> Iterator[Row]:
        for holder in _holders(here, kind, query):
            decoded = holder.decoded()
            yield {
                "namespace": holder.namespace,
                "name": holder.name,
                "data": len(decoded),
                "bytes": sum(map(len, decoded.values())),
                "keys": ", ".join(decoded) or "<none>",
                "usedBy": ", ".join(_users(here, holder)) or "<none>",
            }

    def describe(here: Installation, query: Query, story: Story) -> int:
        told = 0
        for holder in _holders(here, kind, query):
            told += 1
            open_ = kind == "ConfigMap" and WITHHELD not in holder.annotations
            _tell(here, holder, story, show=query.show_secrets or open_)
        return told

    return View(COLUMNS, rows, manifests, describe)


def _tell(here: Installation, holder: ConfigMap | Secret, story: Story, *, show: bool) -> None:
    story.begin(holder.kind, f"{holder.namespace}/{holder.name}")
    story.fact("Type", getattr(holder, "type", ""))
    story.fact("Marked", ", ".join(mark for mark in _MARKS if mark in holder.annotations))
    story.section("Used by", _users(here, holder), nothing="nothing that names it as it is")
    for key, value in holder.decoded().items():
        shown = value.decode("utf-8", "replace").splitlines() if show else []
        story.section(f"{key} ({count(len(value), 'byte')})", shown, nothing="not shown")


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


VIEWS = {"configmap": _view("ConfigMap"), "secret": _view("Secret")}
