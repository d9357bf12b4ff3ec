"""Reports what people should be alerted of, at each tick of a cloud's timer.

Three short queries find it, however many clusters are registered: resyncs have written which
clusters need attention. `bellhop serve` has gauges for the same.
"""

from __future__ import annotations

from bellhop.clusters.alert import HELD
from bellhop.runtime.cloud.resources import Resources

MOST = 1000
"""Records of each kind that a tick reads; more are not counted."""


def report(here: Resources) -> None:
    """Report the clusters that need attention, and held deletions; a healthy fleet has no line."""
    found: dict[str, list[str]] = {}
    for cluster, alert in here.records.alerts.first(MOST):
        for name in alert.names:
            found.setdefault(name, []).append(cluster)
    held = [each.cluster for each in here.records.holds.all(most=MOST) if each.held_at]
    # A change of manifests is held for all clusters together.
    held += ["" for _ in here.records.removals.all(most=MOST)]
    if held:
        found[HELD] = held
    for name, clusters in found.items():
        here.report_alert(name, len(clusters), _first_names(here, clusters))


def _first_names(here: Resources, clusters: list[str]) -> list[str]:
    """Return the clusters that metrics name, each once: every name costs a metric."""
    return [each for each in dict.fromkeys(clusters) if each][: here.settings.named_clusters]
