"""Mirrors: the objects that Bellhop writes beside those of users, computed from records.

    of a profile           its ClusterSummaries, and ClusterReports of dry runs; a generated one
                           is a ClusterProfile as well, with the ConfigMaps and Secrets
                           that were generated for it
    of an EventTrigger     the same of all profiles that it generated
    of an EventSource      EventReports
    of a HealthCheck       HealthCheckReports
    of a Classifier        ClassifierReports
    of a SveltosCluster    its ClusterConfiguration

Each has a status. A mirror that is not listed any more is to be deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec.structs import replace

from bellhop.configuration.contents import make_configuration
from bellhop.configuration.generated_objects import list_generated, refer_to_instances
from bellhop.configuration.limits import truncate
from bellhop.configuration.names import make_labels
from bellhop.configuration.profiles import (
    Deployed,
    find_generated,
    make_profile_status,
    own_place,
    read_deployed,
)
from bellhop.configuration.reports import (
    make_classifier_report,
    make_health_report,
    make_report,
)
from bellhop.configuration.status import observe
from bellhop.configuration.summaries import API_VERSION, list_clusters, make_dry_run, make_summary
from bellhop.core.identity import profile_kind
from bellhop.diagnosis import profile_manifests
from bellhop.diagnosis.profile_status import ProfileStatus
from bellhop.errors import MissingError
from bellhop.installation import InstallationView
from bellhop.ports.kube import Manifest
from bellhop.profiles.records import Place, place

_ADDONS = ("policyRefs", "helmCharts", "kustomizationRefs")
_Report = Callable[[InstallationView, str, str], Manifest | None]
_REPORTS: Mapping[str, _Report] = {
    "EventSource": make_report,
    "HealthCheck": make_health_report,
    "Classifier": make_classifier_report,
}


def list_mirrors(
    here: InstallationView,
    kind: str,
    namespace: str,
    name: str,
    *,
    cluster: str = "",
    owner_uid: str = "",
) -> Iterator[Manifest]:
    """Yield the mirrors of an object that a user wrote, or of a generated ClusterProfile.

    With a `cluster` only those of this one. `owner_uid` is the UID of a profile's object, which
    owns what is written of it in clusters. Each mirror is below the limit of its size.
    """
    found: Iterable[Manifest | None] = ()
    if kind in _REPORTS:
        clusters = [cluster] if cluster else here.catalogs.known().clusters
        found = (_REPORTS[kind](here, name, each) for each in clusters)
    elif kind == "SveltosCluster":
        found = (make_configuration(here, f"{namespace}/{name}"),)
    elif kind == "EventTrigger":
        found = _list_of_trigger(here, name, cluster)
    elif kind in ("ClusterProfile", "Profile"):
        found = list_of_profile(
            here, _find_profile(here, kind, namespace, name), cluster, owner_uid
        )
    return (truncate(each) for each in found if each)


def list_of_profile(
    here: InstallationView, which: Place, cluster: str = "", owner_uid: str = ""
) -> Iterator[Manifest]:
    """Yield the mirrors of a profile by its identity.

    Of a generated one, first the objects that it names, and itself. Lists are not cut.
    """
    found = read_in_force(here, which, cluster)
    if found is None:
        return
    if generated := make_generated(here, which, found):
        yield from list_generated(found.deployed.status.profile, found.source)
        yield generated
    if generated or not which.trigger:
        yield from list_in_clusters(here, found, cluster, owner_uid)


class InForce(NamedTuple):
    """A profile with its contents, its manifest in force, and the source that it is of."""

    deployed: Deployed
    manifest: Mapping[str, Any]
    source: str = ""


def has_generated(which: Place, found: InForce) -> bool:
    """Return whether a profile is shown as a generated ClusterProfile.

    It is a trigger's, was rendered, though perhaps to texts that are no objects, and something of
    it is left.
    """
    profile = found.deployed.status.profile
    return bool(which.trigger and (profile.digest or profile.leaves or profile.generated))


def make_generated(here: InstallationView, which: Place, found: InForce) -> Manifest | None:
    """Return a generated profile as a ClusterProfile with its status; None if it has none."""
    made = make_profile_status(here, which) if has_generated(which, found) else None
    if made is None:
        return None
    metadata = found.manifest["metadata"]
    status, state = made
    return {
        **found.manifest,
        "metadata": {**metadata, "labels": make_labels(metadata["labels"])},
        "status": observe(here, status, state, 0, {}),
    }


def list_in_clusters(
    here: InstallationView, found: InForce, cluster: str = "", owner_uid: str = ""
) -> Iterator[Manifest]:
    """Yield the ClusterSummaries of a profile, each with the ClusterReport of a dry run."""
    for each in list_clusters(found.deployed, cluster):
        spec = _find_spec(here, found, each)
        yield make_summary(here, found.deployed, each, spec, owner_uid=owner_uid)
        if report := make_dry_run(here, found.deployed, each, owner_uid=owner_uid):
            yield report


def _find_spec(here: InstallationView, found: InForce, cluster: str) -> Mapping[str, Any]:
    """Return the specification in force in a cluster.

    With OneTime it is the one that was deployed there, as long as that revision is kept.
    """
    spec: Mapping[str, Any] = found.manifest.get("spec") or {}
    profile, outcome = found.deployed.status.profile, found.deployed.by_cluster.get(cluster)
    if profile.sync != "OneTime" or outcome is None or profile.revised_at is None:
        return spec
    if outcome.phase != "Provisioned" or profile.revised_at <= outcome.at:
        return spec
    former = here.records.renderings.of(place(profile))
    then = [each for each in former if each.until >= outcome.at]
    if not then:
        return spec
    deployed = replace(profile, contents=min(then, key=attrgetter("until")).contents)
    written = profile_manifests.manifest(refer_to_instances(deployed), found.source)["spec"]
    return {**spec, **{field: written.get(field, []) for field in _ADDONS}}


def _list_of_trigger(here: InstallationView, trigger: str, cluster: str) -> Iterator[Manifest]:
    for head in here.records.profiles.heads(trigger):
        yield from list_of_profile(here, place(head), cluster)


def _find_profile(here: InstallationView, kind: str, namespace: str, name: str) -> Place:
    own = own_place(kind, namespace, name)
    if kind == "Profile" or here.records.profiles.head(*own):
        return own
    return find_generated(here, name) or own


def read_in_force(here: InstallationView, which: Place, cluster: str = "") -> InForce | None:
    """Read a profile with its contents and its manifest; None if there is none.

    A user's own is in force as it is written, unless it is rolled back. With a `cluster` only the
    deployment statuses that its ClusterSummary shows are read.
    """
    found = read_deployed(here, which, cluster)
    if found is None or profile_kind(which.name) not in ("ClusterProfile", "Profile"):
        return None
    try:
        kept = here.records.profiles.get(*which)
    except MissingError:
        kept = None
    profile = here.records.profiles.with_leaving(kept.value) if kept else found.status.profile
    deployed = Deployed(ProfileStatus(profile, found.status.outcomes), found.by_cluster)
    if not which.trigger and not profile.pinned:
        namespace, _, name = profile.name.rpartition("/")
        written = here.records.manifests.get(profile_kind(profile.name), namespace, name)
        if written and written.value["apiVersion"] == API_VERSION:
            return InForce(deployed, written.value)
    source = _find_source(here, which)
    shown = refer_to_instances(profile)
    return InForce(deployed, profile_manifests.manifest(shown, source), source)


def _find_source(here: InstallationView, which: Place) -> str:
    """Return the source of a generated profile; empty if its trigger is deleted."""
    catalog = here.catalogs.known()
    trigger = catalog.triggers.get(which.trigger)
    source = catalog.source_of(trigger, which.cluster) if trigger else None
    return source.name if source else ""
