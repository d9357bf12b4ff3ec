"""Puts together what deploys charts: repositories with their cache, and Helm within limits."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from bellhop.adapters.helm.charts import HelmCharts
from bellhop.adapters.programs.box import USUAL
from bellhop.adapters.sources.charts.client import MOST_BYTES
from bellhop.adapters.sources.charts.repositories import ChartRepositories
from bellhop.core.address_policy import AddressPolicy
from bellhop.ports.charts import Helm
from bellhop.ports.clock import Clock
from bellhop.settings import Settings

_LEAST_SECONDS = 30.0
_PART = 0.75
"""Of the time for which a worker may be silent one call of Helm may take so much, or 30 s."""


def helm(
    folder: Path, reach: AddressPolicy, settings: Settings, clock: Clock, most: int = MOST_BYTES
) -> Helm:
    """Return what deploys charts; the `folder` caches archives, of `most` bytes together.

    Helm calls clusters within `reach`, and charts come only from what the settings allow of that.
    """
    # Who works for longer loses the lease to others.
    seconds = max(_LEAST_SECONDS, settings.visibility.total_seconds() * _PART)
    charts = HelmCharts(
        limits=replace(USUAL, seconds=seconds),
        reach=reach,
        render_seconds=settings.template_seconds,
    )
    contents = reach.within(settings.egress_allow)
    return Helm(ChartRepositories(contents, folder, clock, most), charts)
