"""Manifests that files have applied, in the form in which a configuration cluster takes them.

Applied there, each object declares the same as the manifest of its name, so it takes its place and
nothing is deployed again. Registered clusters are no part of it: they stay as commands registered
them. Their credentials are in the secret store, where Bellhop renews some of them, and a copy in a
Secret would be out of date; a SveltosCluster would also deregister its cluster when it is pruned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from bellhop.api.kinds import KINDS, DeclarationKey, EventReport, of, parse
from bellhop.api.served import make_served
from bellhop.declarations.diff import HOLDERS, is_referenced
from bellhop.documents.document import Document
from bellhop.errors import InvalidError
from bellhop.installation import Installation


class ExportedManifest(Struct, frozen=True):
    """A manifest of files; without `manifest` it is left out, for the `reason`."""

    key: DeclarationKey
    manifest: Mapping[str, Any] | None = None
    reason: str = ""
    is_lost: bool = False
    """Its content cannot be exported, though something may be deployed by it."""


def list_exported(here: Installation) -> Iterator[ExportedManifest]:
    """Yield all manifests that no configuration cluster holds, by kind, as they are now."""
    catalog = here.catalogs.known()
    for kind in (each for each, (model, _) in KINDS.items() if model is not EventReport):
        for place, manifest in here.records.manifests.listed(kind):
            namespace, _, name = place.rpartition("/")
            key = DeclarationKey(kind, namespace, name)
            if catalog.configuration and here.records.configured.holds(*key):
                continue
            if manifest is None:
                reason = "its content is lost; apply it again, or delete it"
                yield ExportedManifest(key, reason=reason, is_lost=True)
            elif kind in HOLDERS and not is_referenced(catalog, key):
                yield ExportedManifest(key, reason="named by no manifest")
            else:
                yield _export(key, manifest)


def _export(key: DeclarationKey, manifest: dict[str, Any]) -> ExportedManifest:
    served = make_served(of(manifest))
    try:
        # An earlier version may have accepted what is refused of a new object.
        new = parse(Document(served, str(key)))
    except InvalidError as error:
        return ExportedManifest(key, reason=str(error), is_lost=True)
    return ExportedManifest(new.key, served)
