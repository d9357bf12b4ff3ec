"""Metrics that name clusters and profiles, for those who ask for them with `--metrics-labels`.

A label whose values have no bound makes Prometheus slow and its memory full, so that only so many
names are exported, the first ones in order. The number of those left out is a metric itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from bellhop.core.generated_names import profile_shown
from bellhop.diagnosis.overview import health, standing, statuses
from bellhop.installation.installation import Installation
from bellhop.state.record import Profile

_T = TypeVar("_T")

MOST_NAMES = 1000
"""Values of a label that are exported."""


def clusters_by_name(here: Installation) -> Sequence[Metric]:
    """Return the state of each cluster, and when its credentials expire."""
    info = GaugeMetricFamily(
        "bellhop_cluster_info",
        "Each cluster with its state; always 1.",
        labels=["cluster", "state", "kubernetes"],
    )
    expiry = GaugeMetricFamily(
        "bellhop_cluster_credentials_expiry_timestamp_seconds",
        "When the credentials of a cluster expire; absent if they do not.",
        labels=["cluster"],
    )
    named, left_out = _first({each.key: each for each in here.records.clusters.all()})
    for key, cluster in named:
        found = health(here, key)
        info.add_metric([key, standing(here, cluster, found)[0], cluster.kubernetes], 1)
        if found.ends_at:
            expiry.add_metric([key], found.ends_at.timestamp())
    return [info, expiry, _left_out("cluster", left_out)]


def profiles_by_name(here: Installation) -> Sequence[Metric]:
    """Return the status of each profile, and the number of clusters that it selects."""
    status = GaugeMetricFamily(
        "bellhop_profile_status",
        "Each profile with its status; the value is the number of its clusters.",
        labels=["profile", "status"],
    )
    named, left_out = _first({_name(each.profile): each for each in statuses(here)})
    for name, each in named:
        status.add_metric([name, each.state], len(each.profile.destinations))
    return [status, _left_out("profile", left_out)]


def _name(profile: Profile) -> str:
    """Return a profile's name with its kind."""
    return f"ClusterProfile/{profile.title}" if profile.title else profile_shown(profile.name)


def _first(found: dict[str, _T]) -> tuple[Iterable[tuple[str, _T]], int]:
    """Return as many as are exported, by name, and how many are left out."""
    named = sorted(found.items(), key=lambda each: each[0])
    return named[:MOST_NAMES], max(0, len(named) - MOST_NAMES)


def _left_out(label: str, count: int) -> Metric:
    return GaugeMetricFamily(
        f"bellhop_{label}s_left_out",
        f"Names beyond the first thousand, which the label `{label}` leaves out.",
        value=count,
    )
