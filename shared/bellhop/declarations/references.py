"""References of manifests to ConfigMaps and Secrets, by which the configuration cluster is read."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.api.kinds import PolicyRef
from bellhop.catalog.catalog import Catalog
from bellhop.core.names import fits_template
from bellhop.declarations.diff import Key


def is_referenced(catalog: Catalog, holder: Key) -> bool:
    """Return whether a rule can name a ConfigMap or Secret.

    A name with a template counts for all objects that it fits.
    """
    return any(may_mean(ref, holder) for ref in list_refs(catalog))


def list_refs(catalog: Catalog) -> Iterator[PolicyRef]:
    """Yield the refs to ConfigMaps and Secrets of all rules that have some."""
    for rules in (catalog.triggers, catalog.profiles, catalog.checks):
        for each in rules.values():
            yield from each.holder_refs
    for promotion in catalog.promotions.values():
        # Its other refs are those of its profiles.
        yield from promotion.receiver_refs


def may_mean(ref: PolicyRef, holder: Key) -> bool:
    """Return whether a ref, whose name may be a template, can name a ConfigMap or Secret."""
    kind, namespace, name = holder
    there = not ref.namespace or fits_template(ref.namespace, namespace)
    return ref.kind == kind and there and fits_template(ref.name, name)
