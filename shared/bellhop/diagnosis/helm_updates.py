"""Newer chart versions for releases, read from their repositories now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bellhop.adapters.sources.charts.versions import newer_than
from bellhop.core.gvk import Identity
from bellhop.diagnosis.calls import ask_all
from bellhop.errors import BellhopError, MissingError
from bellhop.installation import Installation
from bellhop.ports.charts import Repositories
from bellhop.rendering.charts.credentials import login_for
from bellhop.state.chart import Chart, HeldRelease, Place
from bellhop.state.content import flux_path
from bellhop.state.deployment import Held

PATIENCE = 30.0
"""Seconds for all repositories together."""


class Update(NamedTuple):
    """A release with a newer chart version, or the error of its repository."""

    cluster: str
    release: Identity
    current: str
    newer: str = ""
    patch: str = ""
    error: str = ""


class _LocatedRelease(NamedTuple):
    """A release with the place of its chart, or the reason why that is unknown."""

    cluster: str
    release: Identity
    current: str
    place: Place | str


class _Answer(NamedTuple):
    versions: Sequence[str] = ()
    error: str = ""


def list_updates(here: Installation, namespace: str = "", cluster: str = "") -> Iterator[Update]:
    """Yield the releases that have an update; each repository is asked once.

    Raises:
        MissingError: this installation deploys no charts.
    """
    helm = here.tools and here.tools.helm
    if helm is None:
        raise MissingError("cannot look for newer charts: this installation deploys none")
    found = list(_list_releases(here, namespace, cluster))
    # A newer chart of Flux is deployed at once.
    places = {
        each.place
        for each in found
        if isinstance(each.place, Place) and flux_path(each.place.repository) is None
    }
    answers = _ask_repositories(helm.repositories, places)
    for each in found:
        place = each.place
        there = _Answer(error=place) if isinstance(place, str) else answers.get(place, _Answer())
        newer, patch = newer_than(there.versions, each.current)
        if newer or there.error:
            yield Update(*each[:3], newer, patch, there.error)


def _ask_repositories(repositories: Repositories, places: set[Place]) -> Mapping[Place, _Answer]:
    """Ask repositories in parallel; one that does not answer has an error."""
    numbered = {str(number): place for number, place in enumerate(places)}

    def ask(number: str) -> _Answer:
        try:
            return _Answer(repositories.versions(numbered[number]))
        except BellhopError as error:
            return _Answer(error=str(error))

    answers = ask_all(numbered, ask, PATIENCE)
    late = f"the repository did not answer within {PATIENCE:g} s"
    return {place: answers.get(number, _Answer(error=late)) for number, place in numbered.items()}


def _list_releases(here: Installation, namespace: str, cluster: str) -> Iterator[_LocatedRelease]:
    for one in here.catalogs.current().clusters.values():
        if namespace not in ("", one.namespace) or cluster not in ("", one.key):
            continue
        for inventory in here.records.inventories.of(one.key):
            for key, held in inventory.held.items():
                if held.release and held.release.version:
                    place = _locate_chart(here, one.key, inventory.profile, held, held.release)
                    yield _LocatedRelease(one.key, key, held.release.version, place)


def _locate_chart(
    here: Installation, cluster: str, profile: str, held: Held, release: HeldRelease
) -> Place | str:
    """Return the place of a release's chart, with the profile's login for it."""
    try:
        chart = _find_chart(here, cluster, profile, held.ref)
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


def _find_chart(here: Installation, cluster: str, profile: str, ref: str) -> Chart | None:
    """Return the chart of a profile that made a release; None if the profile has it no more.

    Raises:
        MissingError: the contents of the profile are lost.
    """
    outcome = here.records.outcomes.get(cluster, profile)
    if outcome is None:
        return None
    kept = here.records.profiles.get(outcome.value.trigger, outcome.value.source, profile)
    contents = kept.value.contents if kept else ()
    return next((each.chart for each in contents if each.chart and each.ref == ref), None)
