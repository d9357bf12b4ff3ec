"""Manifests that files have applied, in the form in which a configuration cluster takes them.

Applied there, each object declares the same as the manifest of its name, so it takes its place and
nothing is deployed again. Registered clusters are no part of it: they stay as commands registered
them. Their credentials are in the secret store, where Bellhop renews some of them, and a copy in a
Secret would be out of date; a SveltosCluster would also deregister its cluster when it is pruned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from bellhop.api.kinds import KINDS, DeclarationKey, EventReport, PolicyRef, of, parse
from bellhop.api.served import make_served
from bellhop.core.names import is_template
from bellhop.declarations.diff import HOLDERS
from bellhop.declarations.references import list_refs, may_mean
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


class _NamedHolders:
    """The ConfigMaps and Secrets that refs can name: thousands are asked about."""

    def __init__(self, refs: Iterable[PolicyRef]) -> None:
        self._exact: set[DeclarationKey] = set()
        self._open: list[PolicyRef] = []
        for ref in refs:
            if ref.namespace and not is_template(ref.namespace + ref.name):
                self._exact.add(DeclarationKey(ref.kind, ref.namespace, ref.name))
            else:
                self._open.append(ref)

    def includes(self, holder: DeclarationKey) -> bool:
        """Return whether a ref, whose name may be a template, can name a ConfigMap or Secret."""
        return holder in self._exact or any(may_mean(ref, holder) for ref in self._open)


def list_exported(here: Installation) -> Iterator[ExportedManifest]:
    """Yield all manifests that no configuration cluster holds, by kind, as they are now."""
    catalog = here.catalogs.known()
    named = _NamedHolders(list_refs(catalog))
    for kind in (each for each, (model, _) in KINDS.items() if model is not EventReport):
        for place, manifest in here.records.manifests.listed(kind):
            namespace, _, name = place.rpartition("/")
            key = DeclarationKey(kind, namespace, name)
            if catalog.configuration and here.records.configured.holds(*key):
                continue
            if manifest is None:
                reason = "its content is lost; apply it again, or delete it"
                yield ExportedManifest(key, reason=reason, is_lost=True)
            elif kind in HOLDERS and not named.includes(key):
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
