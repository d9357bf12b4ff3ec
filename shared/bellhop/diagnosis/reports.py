"""What sources take in clusters now, for people: what matches, or what a script made of that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from bellhop.api.source_names import health_check_of
from bellhop.core.gvk import CLOUD_EVENT
from bellhop.diagnosis.overview import object_name, sources_in_force
from bellhop.errors import MissingError, StaleError
from bellhop.installation.installation import Installation
from bellhop.state.record import Match, Selection

AGGREGATION = "aggregatedSelection"

Phase = Literal["WaitingForDelivery", "Delivering", "Processed"]
"""How far a report has come, in the words that EventReports have for it."""


class Report(Struct, frozen=True):
    """What a source takes in a cluster: each as a match, and what it fails on, with the error.

    `message` is that of its aggregatedSelection, which has not said anything yet where `awaited`;
    `given` counts what it was asked about. One that `waits` has something of which deploy was not
    told yet as it is.
    """

    matching: Sequence[Match]
    errors: Sequence[tuple[str, str]] = ()
    message: str = ""
    given: int = 0
    awaited: bool = False
    waits: bool = False

    @property
    def told(self) -> Iterator[str]:
        """Yield each failure as a sentence."""
        return (f"{what}: {error}" for what, error in self.errors)


def report(here: Installation, cluster: str, source: str) -> Report:
    """Return what a source takes in a cluster."""
    matches = list(here.records.matches.of(cluster, source))
    matching = [each for each in matches if each.matching]
    errors = [(object_name(each.key), each.error) for each in matches if each.error]
    waits = not all(each.told for each in matches)
    if not aggregates(here, source):
        return Report(matching, errors, waits=waits)
    kept = selection(here, cluster, source)
    if not isinstance(kept, Selection):
        errors += [(AGGREGATION, kept)] if kept else []
        return Report((), errors, given=len(matching), awaited=True, waits=True)
    errors += [(AGGREGATION, said) for said in (kept.error, kept.left_out) if said]
    selected = [
        Match(cluster, source, each.key, matching=True, digest=each.digest, since=each.since)
        for each in kept.selected
    ]
    waits = waits or not kept.told
    return Report(selected, errors, kept.message, len(matching), not kept.made, waits)


def reports(here: Installation, source: str) -> Mapping[str, Report]:
    """Return what one source takes, by the clusters where it is in force."""
    found = (cluster for cluster, name in sources_in_force(here) if name == source)
    return {cluster: report(here, cluster, source) for cluster in found}


def phase(here: Installation, cluster: str, source: str, found: Report) -> Phase:
    """Say how far a report has come.

    It waits until deploy knows of all of it, is delivered until each trigger's profiles are there
    and their clusters asked, and is processed from then on. What the profiles did there, or failed
    at, is told by themselves; an event that takes something away has none.
    """
    if found.waits:
        return "WaitingForDelivery"
    wanted = {str(each.key) for each in found.matching if each.key.gvk != CLOUD_EVENT}
    catalog = here.catalogs.current()
    for name in catalog.triggers_on(cluster, source):
        made = {each.object: each.told for each in here.records.profiles.heads(name, cluster)}
        for_each = catalog.triggers[name].one_for_event
        missing = (wanted if for_each else {""} if wanted else set()) - made.keys()
        if missing or not all(made.values()):
            return "Delivering"
    return "Processed"


def aggregates(here: Installation, source: str) -> bool:
    """Say whether a source has an aggregatedSelection."""
    found = here.catalogs.known().sources.get(source)
    return bool(found and found.aggregation)


def selection(here: Installation, cluster: str, source: str) -> Selection | str | None:
    """Return what a source's aggregatedSelection made in a cluster, or why nobody can say."""
    try:
        kept = here.records.selections.get(cluster, source)
    except MissingError as error:
        return f"{error}; the next resync of the cluster does"
    return kept.value if kept else None


def object_of(here: Installation, match: Match) -> Mapping[str, Any] | None:
    """Return what matches as templates see it; None where it is gone, or lost until it is seen.

    Of what a script selected without collecting it, what is known of the object; so, too, of what a
    health check finds, which keeps what it says of it.
    """
    if aggregates(here, match.source) and not health_check_of(match.source):
        kept = selection(here, match.cluster, match.source)
        selected = kept.by_key.get(str(match.key)) if isinstance(kept, Selection) else None
        if selected and selected.manifest:
            return selected.manifest
    try:
        seen = here.records.observations.get(match.cluster, match.key)
    except StaleError:
        return None
    return seen.value.manifest if seen else None
