"""EventReports, made of the objects that match a source in a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bellhop.api.kinds import event_report
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.diagnosis.redaction import hide_values
from bellhop.diagnosis.source_status import Report, read_object
from bellhop.installation import InstallationView
from bellhop.ports.kube import Manifest
from bellhop.state.match import Match


def make_event_report(
    here: InstallationView,
    cluster: str,
    source: str,
    found: Report,
    *,
    collect: bool,
    show: bool = False,
) -> Manifest:
    """Return a report in the shape that users of Sveltos know, without a status.

    Objects are in it whole if the source asks to `collect` them. Values of Secrets are hidden
    unless it is to `show` them.
    """
    resources = [_resource(here, each, collect=collect, show=show) for each in found.matching]
    namespace, _, name = cluster.partition("/")
    return event_report(namespace, name, source, resources, collect=collect)


def list_failed_profiles(here: InstallationView, cluster: str, source: str) -> Iterator[str]:
    """Yield the errors of profiles that cannot be rendered for a report."""
    for trigger in here.catalogs.current().triggers_on(cluster, source):
        for profile in here.records.profiles.heads(trigger, cluster):
            if profile.error:
                yield f"{profile.name}: {profile.error}"


def join_failures(sentences: Sequence[str]) -> str:
    """Return the first of several sentences, and the number of the others."""
    others = len(sentences) - 1
    more = f" (and {others} other{'s' if others > 1 else ''})" if others else ""
    return sentences[0] + more


def _resource(here: InstallationView, match: Match, *, collect: bool, show: bool) -> dict[str, Any]:
    if not collect and match.key.gvk != CLOUD_EVENT:
        return _reference(match.key)
    manifest = read_object(here, match)
    if manifest is None:
        # It was deleted between the two reads, or is lost until the next resync stores it again.
        return _reference(match.key)
    return dict(manifest) if show else hide_values(dict(manifest))


def _reference(key: ObjectKey) -> dict[str, Any]:
    metadata = {"name": key.name}
    if key.namespace:
        metadata["namespace"] = key.namespace
    return {"apiVersion": key.gvk.api_version, "kind": key.gvk.kind, "metadata": metadata}
