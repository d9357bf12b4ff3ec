"""The configuration: each manifest, where it is kept, and whether it is in force."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.cli.output import Column, Row
from bellhop.cli.printer import Description
from bellhop.cli.views.view import Query, View
from bellhop.configuration.origin import ConfigurationEntry, list_configuration
from bellhop.installation import Installation
from bellhop.ports.kube import Manifest

COLUMNS = (
    Column("KIND", "kind"),
    Column("NAME", "place"),
    Column("ORIGIN", "origin"),
    Column("IN-FORCE", "inForce"),
    Column("MESSAGE", "message", prose=True),
)


def _select(here: Installation, query: Query) -> Iterator[ConfigurationEntry]:
    return (each for each in list_configuration(here) if query.matches(*each.key[1:], {}))


def _row(_here: Installation, entry: ConfigurationEntry) -> Row:
    kind, namespace, name = entry.key
    return {
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "place": entry.key.place,
        "origin": entry.origin,
        "inForce": "yes" if entry.in_force else "no",
        "message": entry.message,
    }


def _manifest(_here: Installation, entry: ConfigurationEntry) -> Manifest:
    kind, namespace, name = entry.key
    status = {
        "kind": kind,
        "origin": entry.origin,
        "state": entry.state,
        "inForce": entry.in_force,
        "message": entry.message,
    }
    metadata = {"namespace": namespace, "name": name}
    return {
        "apiVersion": "bellhop.dev/v1",
        "kind": "Configuration",
        "metadata": metadata,
        "status": status,
    }


def _describe(_here: Installation, entry: ConfigurationEntry, description: Description) -> None:
    description.begin(entry.key.kind, entry.key.place)
    description.field("Origin", entry.origin)
    description.field("In force", "yes" if entry.in_force else "no")
    description.field("State", entry.state)
    description.field("Message", entry.message)


VIEWS = {"configuration": View(COLUMNS, _select, _row, _manifest, _describe)}
