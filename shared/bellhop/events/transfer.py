"""Transfer of a report to the source that replaces its source, so that a rename withdraws nothing.

    the new source's index and match are written ─► the manifests ─► resync ─► evaluated as usual

A new source has no match only because no worker has evaluated it. Until then it counts as matching
the objects that the trigger's former source matched. The matches are written before the manifests:
no worker reads them until the source is in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from msgspec.structs import replace

from bellhop.api.kinds import Declaration, DeclarationKey
from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import Identity
from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT
from bellhop.state.deployment import Owner
from bellhop.state.match import Match
from bellhop.state.profile import Profile
from bellhop.state.records import Records


class ReportTransfer:
    """Copies matches from a source to its successor."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def copy(self, before: Catalog, changed: Mapping[DeclarationKey, Declaration]) -> None:
        """Write the matches of sources that triggers are about to name in place of others."""
        if not any(each.rule in before.triggers for each in changed):
            return
        clusters = before.clusters.values()
        after = before.with_rules(before.revision, clusters, changed, before.choices)
        for cluster, old, new in _successions(before, after):
            for match in self._records.matches.of(cluster, old):
                if match.matching:
                    self._copy(after, match, new)

    def _copy(self, after: Catalog, match: Match, source: str) -> None:
        """Write one match, if the new source may have it; CloudEvents are kept for one source."""
        cluster, key = match.cluster, match.key
        if source not in {each.name for each in after.sources_of(cluster, key)}:
            return
        self._records.trails.name(self._records.trails.get(cluster, key), [source])
        copied = replace(match, source=source, error="", told=True, held=False)
        with suppress(StaleError):
            self._records.matches.put(copied, expect=ABSENT)


class Foreseen:
    """Says of add-ons whether removing them would hand all their objects over instead."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def removes(self, profile: Profile, cluster: str) -> bool:
        """Return whether any object of a profile would be deleted with it, and not handed over."""
        kept = self._records.inventories.get(cluster, profile.name)
        if kept is None:
            return True
        # Objects of a Helm release stay or are deleted with the release.
        keys = (key for key, each in kept.value.held.items() if not each.part_of)
        return not all(self.has_waiter(cluster, key) for key in keys)

    def has_waiter(self, cluster: str, key: Identity) -> bool:
        """Return whether another profile waits for an object, which is handed over to it."""
        owner = self._records.owners.get(cluster, key)
        return owner is not None and self._is_awaited(cluster, owner.value)

    def _is_awaited(self, cluster: str, owner: Owner) -> bool:
        """Return whether a profile that is to be in the cluster is in conflict, and waits."""
        for trigger, source, name in owner.waiting:
            outcome = self._records.outcomes.get(cluster, name)
            if outcome and outcome.value.reason == "Conflict":
                head = self._records.profiles.head(trigger, source, name)
                if head and cluster in head.value.destinations:
                    return True
        return False


def _successions(before: Catalog, after: Catalog) -> Iterator[tuple[str, str, str]]:
    """Yield each cluster, source and successor that no trigger named there before."""
    changed = {
        name
        for name, each in after.triggers.items()
        if name in before.triggers and each is not before.triggers[name]
    }
    for cluster in after.clusters if changed else ():
        known, found = before.sources_in(cluster), set()
        for name in changed:
            old = before.source_of(before.triggers[name], cluster)
            new = after.source_of(after.triggers[name], cluster)
            # One account's rights say nothing about what another's source may see.
            if old and new and new.name not in known and old.account == new.account:
                found.add((cluster, old.name, new.name))
        yield from sorted(found)
