"""Facts about the stages of a promotion: how many of their clusters have the release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from bellhop.api.promotion import ClusterPromotion
from bellhop.catalog.catalog import Catalog
from bellhop.clusters.pause import pause_of
from bellhop.errors import AwayError, SourceUnavailableError, UnreachableError
from bellhop.promotions.machine import StageFacts
from bellhop.rendering.inputs import MissingInputError
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.profile import Profile
from bellhop.state.promotion import PromotionState, make_witness
from bellhop.state.records import Records


def read_facts(
    records: Records, catalog: Catalog, promotion: ClusterPromotion, state: PromotionState
) -> Mapping[str, StageFacts]:
    """Return the facts about each stage that is on its way, by name.

    A stage whose release has passed is not read: nothing depends on it any more.
    """
    return {
        each.name: _read_stage(records, catalog, promotion, state, each.name)
        for each in promotion.stages
        if (stage := state.stage(each.name)).release and not stage.is_settled
    }


def _read_stage(
    records: Records,
    catalog: Catalog,
    promotion: ClusterPromotion,
    state: PromotionState,
    name: str,
) -> StageFacts:
    kept = records.profiles.head("", "", promotion.profile_name(name))
    if kept is None:
        return StageFacts()
    profile = kept.value
    found = count_clusters(records, catalog, profile)
    if profile.error:
        missing = profile.error_code == MissingInputError.code
        found = found._replace(unrendered=True, missing=missing, failure=profile.error)
    if not found.clusters and not found.paused:
        found = found._replace(verified=True, nearest=_find_nearest(catalog))
    elif state.stage(name).phase == "Verifying":
        found = _add_verification(records, catalog, promotion, name, found)
    return found


def count_clusters(records: Records, catalog: Catalog, profile: Profile) -> StageFacts:
    """Count the clusters of a profile by their deployment status."""
    clusters, paused, provisioned, unread, failures = 0, 0, 0, 0, list[str]()
    witness = ""
    for key, status in _list_statuses(records, profile):
        cluster = catalog.clusters.get(key)
        if cluster and pause_of(cluster, records.clock.now()):
            paused += 1
            continue
        clusters += 1
        if status and is_provisioned(status, profile):
            provisioned += 1
        elif status and status.phase.startswith("Failed"):
            unread += _is_unread(status)
            failures.append(f"{key}: {status.message or status.reason}")
        else:
            witness = make_witness(profile.name, key)
    return StageFacts(
        release=profile.rollout.release,
        clusters=clusters,
        paused=paused,
        provisioned=provisioned,
        failed=len(failures),
        unread=unread,
        failure=_join(failures),
        witness=witness,
    )


_NO_ANSWER = (AwayError.code, UnreachableError.code, SourceUnavailableError.code)


def _is_unread(status: DeploymentStatus) -> bool:
    """Return whether a deployment failed as something did not answer, or does not exist yet."""
    missing = (status.phase, status.reason) == ("FailedNonRetriable", MissingInputError.code)
    return missing or status.reason in _NO_ANSWER


def _add_verification(
    records: Records,
    catalog: Catalog,
    promotion: ClusterPromotion,
    name: str,
    found: StageFacts,
) -> StageFacts:
    """Add whether the verification of the same release is deployed, and its checks pass."""
    kept = records.profiles.head("", "", promotion.verification_name(name))
    if kept is None or kept.value.rollout.release != found.release:
        return found._replace(unverified="the checks begin", witness="")
    profile = kept.value
    checked = count_clusters(records, catalog, profile)
    if profile.error:
        return found._replace(unverified=profile.error)
    if checked.clusters and checked.provisioned == checked.clusters:
        return found._replace(verified=True)
    waiting = (
        f"{key}: {status.message or status.phase}"
        for key, status in _list_statuses(records, profile)
        if status and not is_provisioned(status, profile)
    )
    count = f"{checked.provisioned} of {checked.clusters} clusters are verified"
    said = "; ".join(filter(None, (count, _join([*waiting]))))
    return found._replace(unverified=said, witness=checked.witness)


def _list_statuses(
    records: Records, profile: Profile
) -> Iterator[tuple[str, DeploymentStatus | None]]:
    for key in profile.matched:
        kept = records.outcomes.get(key, profile.name)
        yield key, kept.value if kept else None


def is_provisioned(status: DeploymentStatus, profile: Profile) -> bool:
    """Return whether a cluster has a profile as it is now; with OneTime, as it was at any time."""
    current = profile.sync == "OneTime" or status.revision == profile.revision
    return status.phase == "Provisioned" and current


def _join(failures: list[str]) -> str:
    first = failures[:1]
    more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
    return f"{first[0]}{more}" if first else ""


def _find_nearest(catalog: Catalog) -> str:
    """Return the label that most clusters have, as a hint for a selector that is misspelt."""
    labels = Counter(pair for each in catalog.clusters.values() for pair in each.labels.items())
    return "=".join(labels.most_common(1)[0][0]) if labels else ""
