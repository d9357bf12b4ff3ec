"""Cleanup at the end of a resync: delete the records of what no source in force selects.

A match ends before its observation is deleted. After that the object is new to the next worker
that reads it, should its source be corrected meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.rendering.leave_policy import list_departing
from bellhop.resync.progress import ResyncSession
from bellhop.settings import Settings
from bellhop.state.match import Cause, Match
from bellhop.state.messages import Evaluate, Publisher
from bellhop.state.records import Records

Retain = Callable[[Match, Cause], bool]
"""Holds a match that is about to be deleted, if too many of its source end; returns if it stays."""

_END = "\U0010ffff"
"""A key after all others."""


class Cleanup:
    """Deletes observations, matches and reports that no source in force selects."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        publisher: Publisher,
        settings: Settings,
        retain: Retain,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._publisher = publisher
        self._settings = settings
        self._retain = retain

    def run(self, session: ResyncSession) -> bool:
        """Delete for as long as a turn lasts; return whether everything was deleted.

        Raises:
            SupersededError: another worker continues the resync.
        """
        begun, catalog = self._records.clock.now(), session.catalog
        holds = self._holds_removals(session.name, catalog)
        # A change that is taken back is in the catalog before its hold ends: so the catalog is read
        # after the holds, and nothing ends that either of both selects.
        catalogs = catalog, self._catalogs.current()
        if not holds:
            self._delete_kinds(session.name, catalogs)
        for match in self._records.matches.of(session.name, after=session.progress.last):
            observed = self._records.observations.token(session.name, match.key)
            selected = any(
                match.source == each.name
                for some in catalogs
                for each in some.sources_of(session.name, match.key)
            )
            if not selected and holds:
                continue
            if not selected or not observed:
                self._end_match(catalog, match)
            if self._records.clock.now() - begun > self._settings.turn:
                # At least one match is behind us, even if time passed before the first.
                session.write(last=f"{match.source}/{match.key}")
                return False
        if not holds:
            self._delete_reports(session.name, catalogs)
        return True

    def _holds_removals(self, cluster: str, catalog: Catalog) -> bool:
        """Return whether held removals keep profiles that were made of the cluster's objects.

        Their matches stay, too: otherwise a change that is reverted would find no match.
        """
        return any(
            list_departing(catalog, head)
            for each in self._records.removals.all()
            if each.value.trigger
            for head in self._records.profiles.heads(each.value.trigger, cluster)
        )

    def _delete_kinds(self, cluster: str, catalogs: tuple[Catalog, Catalog]) -> None:
        """Delete the observations of kinds that no source names, without reading the others.

        Of CloudEvents those are deleted that belong to a source that takes none any more.
        """
        kinds = {kind for each in catalogs for kind in each.kinds_in(cluster)}
        listeners = {x.source for each in catalogs for x in each.listeners_in(cluster)}
        after = ""
        while True:
            head = next(self._records.observations.heads(cluster, after=after), None)
            if head is None:
                return
            if head.key.gvk == CLOUD_EVENT and head.key.namespace in listeners:
                after = "/".join((*CLOUD_EVENT, head.key.namespace, _END))
            elif head.key.gvk in kinds:
                after = "/".join((*head.key.gvk, _END))
            else:
                self._end_matches(catalogs[0], cluster, head.key)
                self._records.observations.delete(cluster, head.key)
                self._records.trails.end(cluster, head.key)
                after = str(head.key)

    def _delete_reports(self, cluster: str, catalogs: tuple[Catalog, Catalog]) -> None:
        found = [each.sources[name] for each in catalogs for name in each.sources_in(cluster)]
        aggregated = {each.name for each in found if each.aggregation}
        for selection in self._records.selections.heads(cluster):
            if selection.source not in aggregated:
                self._records.selections.delete(cluster, selection.source)
        names = {each.name for each in found}
        for hold in list(self._records.holds.all(cluster)):
            if hold.source not in names:
                self._records.holds.forget(cluster, hold.source)

    def _end_matches(self, catalog: Catalog, cluster: str, key: ObjectKey) -> None:
        index = self._records.trails.get(cluster, key).value
        for source in filter(index.may_name, catalog.sources_in(cluster)):
            stored = self._records.matches.get(cluster, source, key)
            if stored:
                self._end_match(catalog, stored.value)

    def _end_match(self, catalog: Catalog, match: Match) -> None:
        """Delete a match, or hold it; if the catalog changed meanwhile, evaluate the object."""
        in_force = match.source in catalog.sources_in(match.cluster)
        if not (in_force and self._retain(match, "declaration")):
            self._records.matches.delete(match.cluster, match.source, match.key)
        if self._catalogs.current().revision != catalog.revision:
            self._publisher.publish([Evaluate(match.cluster, str(match.key))])
