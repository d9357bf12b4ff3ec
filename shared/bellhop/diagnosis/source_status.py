"""Status of an EventSource in a cluster: its report, and failing or slow scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from bellhop.api.names import asker, health_check_of
from bellhop.core.gvk import CLOUD_EVENT, GVK
from bellhop.diagnosis.access_gaps import list_access_gaps
from bellhop.diagnosis.condition import Condition, count_alike, failure, group, name_clusters
from bellhop.diagnosis.names import object_name
from bellhop.errors import MissingError, StaleError
from bellhop.installation import Installation, InstallationView
from bellhop.state.match import Match, Selection, SlowScript

AGGREGATION = "aggregatedSelection"
Phase = Literal["WaitingForDelivery", "Delivering", "Processed"]
"""The progress of a report, in the words of EventReports."""


class Report(Struct, frozen=True):
    """The objects that a source selects in a cluster, and errors by what failed.

    `message` is that of its aggregatedSelection, which has not run yet if `awaited`; `given` counts
    its input. A report `waits` if deploy has not been notified of all of it.
    """

    matching: Sequence[Match]
    errors: Sequence[tuple[str, str]] = ()
    message: str = ""
    given: int = 0
    awaited: bool = False
    waits: bool = False

    @property
    def messages(self) -> Iterator[str]:
        return (f"{what}: {error}" for what, error in self.errors)


def read_report(here: InstallationView, cluster: str, source: str) -> Report:
    matches = list(here.records.matches.of(cluster, source))
    matching = [each for each in matches if each.matching]
    errors = [(object_name(each.key), each.error) for each in matches if each.error]
    waits = not all(each.told for each in matches)
    if not has_aggregation(here, source):
        return Report(matching, errors, waits=waits)
    kept = read_selection(here, cluster, source)
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


def read_reports(here: Installation, source: str) -> Mapping[str, Report]:
    """Return the reports of a source by the clusters where it is in force."""
    found = (cluster for cluster, name in list_sources_in_force(here) if name == source)
    return {cluster: read_report(here, cluster, source) for cluster in found}


def find_phase(here: InstallationView, cluster: str, source: str, found: Report) -> Phase:
    """Return how far a report has come.

    It waits until deploy is notified of all of it, is delivered until each trigger's profiles exist
    and their clusters are notified, and is processed from then on. Results of profiles are their
    own; an event that removes something has none.
    """
    if found.waits:
        return "WaitingForDelivery"
    expected = {str(each.key) for each in found.matching if each.key.gvk != CLOUD_EVENT}
    catalog = here.catalogs.current()
    for name in catalog.triggers_on(cluster, source):
        made = {each.object: each.told for each in here.records.profiles.heads(name, cluster)}
        for_each = catalog.triggers[name].one_for_event
        missing = (expected if for_each else {""} if expected else set()) - made.keys()
        if missing or not all(made.values()):
            return "Delivering"
    return "Processed"


def has_aggregation(here: InstallationView, source: str) -> bool:
    found = here.catalogs.known().sources.get(source)
    return bool(found and found.aggregation)


def read_selection(here: InstallationView, cluster: str, source: str) -> Selection | str | None:
    """Return the result of a source's aggregatedSelection in a cluster, or why it is lost."""
    try:
        kept = here.records.selections.get(cluster, source)
    except MissingError as error:
        return f"{error}; the next resync of the cluster does"
    return kept.value if kept else None


def read_object(here: InstallationView, match: Match) -> Mapping[str, Any] | None:
    """Return a match as templates see it; None where it is deleted, or lost until the next resync.

    An object that a script selected without collecting it is the observed one; so is that of a
    health check, whose selection has its state.
    """
    if has_aggregation(here, match.source) and not health_check_of(match.source):
        kept = read_selection(here, match.cluster, match.source)
        selected = kept.by_key.get(str(match.key)) if isinstance(kept, Selection) else None
        if selected and selected.manifest:
            return selected.manifest
    try:
        seen = here.records.observations.get(match.cluster, match.key)
    except StaleError:
        return None
    return seen.value.manifest if seen else None


def list_sources_in_force(here: Installation) -> Iterator[tuple[str, str]]:
    """Yield (cluster, source) of each applied source that is in force."""
    catalog = here.catalogs.known()
    for cluster in catalog.clusters:
        for source in catalog.sources_in(cluster):
            if not asker(source):
                yield cluster, source


def find_unserved_kinds(here: Installation, source: str) -> dict[GVK, list[str]]:
    """Return kinds that clusters with the source do not serve, with these clusters."""
    catalog = here.catalogs.known()
    found: dict[GVK, list[str]] = {}
    for cluster in catalog.clusters:
        if source not in catalog.sources_in(cluster):
            continue
        for gvk in here.records.health.head(cluster).unserved:
            if gvk in catalog.sources[source].kinds:
                found.setdefault(gvk, []).append(cluster)
    return found


def list_slow_scripts(here: Installation) -> Iterator[SlowScript]:
    """Yield slow scripts, unless their source has changed since."""
    catalog = here.catalogs.known()
    for slow in here.records.paces.all():
        if slow.source in catalog.sources and catalog.digest(slow.source) == slow.digest:
            yield slow


def describe_slow_script(here: Installation, slow: SlowScript) -> str:
    return (
        f"its script took more than {here.settings.script_first_seconds:g} s {slow.times} times"
        " in a row, and its objects are judged apart, later than others; shorten the script"
    )


def list_conditions(here: Installation) -> Iterator[Condition]:
    """Yield slow scripts, and scripts and rules that fail: each once for all objects."""
    for slow in list_slow_scripts(here):
        said = describe_slow_script(here, slow)
        yield failure("script", slow.source, said, since=slow.since)
    clusters = here.catalogs.known().clusters
    matches = (each for key in clusters for each in here.records.matches.of(key))
    failing = group(((each.source, each.error), each) for each in matches if each.error)
    yield from map(_match_condition, failing)
    selections = (
        (said, each)
        for key in clusters
        for each in here.records.selections.heads(key)
        for said in filter(None, (each.error, each.left_out))
    )
    for found in group(((each.source, said), (said, each)) for said, each in selections):
        yield _selection_condition(found[0][0], [each for _, each in found])


def _match_condition(matches: Sequence[Match]) -> Condition:
    first, number = matches[0], len(matches)
    clusters = list(dict.fromkeys(each.cluster for each in matches))
    about = f"{first.source} on {object_name(first.key)} in {clusters[0]}"
    said = f"{first.error}{name_clusters(clusters)}{count_alike(number, 'objects')}"
    return failure("evaluation", about, said, since=_find_begin(matches), count=number)


def _selection_condition(error: str, selections: Sequence[Selection]) -> Condition:
    clusters = [each.cluster for each in selections]
    about = f"{selections[0].source} in {clusters[0]}"
    said, since = f"{error}{name_clusters(clusters)}", _find_begin(selections)
    return failure("evaluation", about, said, since=since, count=len(clusters))


def _find_begin(failed: Iterable[Match | Selection]) -> datetime | None:
    """Return the earliest recorded failure."""
    return min((each.failed_at for each in failed if each.failed_at), default=None)


def list_access_conditions(here: Installation) -> Iterator[Condition]:
    """Yield the objects that sources do not match because their accounts may not read them."""
    catalog = here.catalogs.known()
    for cluster in catalog.clusters:
        for name in catalog.sources_in(cluster):
            for said in list_access_gaps(here.records, cluster, catalog.sources[name]):
                yield failure("rights", f"{name} in {cluster}", said)
