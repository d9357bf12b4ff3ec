"""Newer versions of the charts of releases, as their repositories have them now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bellhop.adapters.sources.charts.versions import newer_than
from bellhop.core.gvk import Identity
from bellhop.diagnosis.cluster_calls import at_once
from bellhop.errors import BellhopError, MissingError
from bellhop.installation.installation import Installation
from bellhop.ports.charts import Repositories
from bellhop.rendering.charts.credentials import login_for
from bellhop.state.chart import Chart, HeldRelease, Place
from bellhop.state.file_ref import flux_path
from bellhop.state.record import Held

PATIENCE = 30.0
"""Seconds for all repositories together."""


class Update(NamedTuple):
    """A release of whose chart there are newer versions, or whose repository does not say."""

    cluster: str
    release: Identity
    current: str
    newer: str = ""
    patch: str = ""
    error: str = ""


class _Found(NamedTuple):
    """A release, and where its chart is; or why nobody knows that."""

    cluster: str
    release: Identity
    current: str
    place: Place | str


class _Answer(NamedTuple):
    versions: Sequence[str] = ()
    error: str = ""


def updates(here: Installation, namespace: str = "", cluster: str = "") -> Iterator[Update]:
    """Yield the releases that have an update; each repository is asked once.

    Raises:
        MissingError: this installation deploys no charts.
    """
    helm = here.tools and here.tools.helm
    if helm is None:
        raise MissingError("cannot look for newer charts: this installation deploys none")
    found = list(_releases(here, namespace, cluster))
    # What Flux fetches is deployed as soon as it is newer.
    places = {
        each.place
        for each in found
        if isinstance(each.place, Place) and flux_path(each.place.repository) is None
    }
    answers = _answers(helm.repositories, places)
    for each in found:
        place = each.place
        there = _Answer(error=place) if isinstance(place, str) else answers.get(place, _Answer())
        newer, patch = newer_than(there.versions, each.current)
        if newer or there.error:
            yield Update(*each[:3], newer, patch, there.error)


def _answers(repositories: Repositories, places: set[Place]) -> Mapping[Place, _Answer]:
    """Ask repositories at once; one that does not answer has an error."""
    numbered = {str(number): place for number, place in enumerate(places)}

    def ask(number: str) -> _Answer:
        try:
            return _Answer(repositories.versions(numbered[number]))
        except BellhopError as error:
            return _Answer(error=str(error))

    answers = at_once(numbered, ask, PATIENCE)
    late = f"the repository did not answer within {PATIENCE:g} s"
    return {place: answers.get(number, _Answer(error=late)) for number, place in numbered.items()}


def _releases(here: Installation, namespace: str, cluster: str) -> Iterator[_Found]:
    """Yield the releases that profiles hold, and where their charts are."""
    for one in here.catalogs.current().clusters.values():
        if namespace not in ("", one.namespace) or cluster not in ("", one.key):
            continue
        for inventory in here.records.inventories.of(one.key):
            for key, held in inventory.held.items():
                if held.release and held.release.version:
                    place = _place(here, one.key, inventory.profile, held, held.release)
                    yield _Found(one.key, key, held.release.version, place)


def _place(
    here: Installation, cluster: str, profile: str, held: Held, release: HeldRelease
) -> Place | str:
    """Return where the chart of a release is, with the login that its profile has for it."""
    try:
        chart = _chart(here, cluster, profile, held.ref)
    except MissingError as error:
        return str(error)
    if chart is None:
        return Place(release.repository, release.chart)
    logins = [each for each in chart.logins if each.is_for(cluster)]
    if lacking := [each.missing for each in logins if each.missing]:
        return lacking[0]
    name = release.chart if "{{" in chart.chart else chart.chart
    login = login_for(release.repository, logins, chart.login)
    return Place(release.repository, name, login=login)


def _chart(here: Installation, cluster: str, profile: str, ref: str) -> Chart | None:
    """Return the chart of a profile that a release was made of; None if it has none any more.

    Raises:
        MissingError: what the profile holds is lost.
    """
    outcome = here.records.outcomes.get(cluster, profile)
    if outcome is None:
        return None
    kept = here.records.profiles.get(outcome.value.trigger, outcome.value.source, profile)
    contents = kept.value.contents if kept else ()
    return next((each.chart for each in contents if each.chart and each.ref == ref), None)
