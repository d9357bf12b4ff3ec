"""Keeps a release that a profile is to remove until the next profile owns it, or waits for it.

    cluster moves from A to B, or a chart does ─► A is processed first: it waits, for a minute
                                               ─► B claims the release, or waits: A is published
                                               ─► B upgrades the release where it is

Only the catalog knows B then: B may not have been processed in the cluster yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain

from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog, cluster_object
from bellhop.core.gvk import Identity
from bellhop.core.identity import profile_kind
from bellhop.deploy.context import ReconcileContext
from bellhop.errors import MissingError, WaitingError
from bellhop.gotemplate import Limits
from bellhop.profiles.records import Place, place
from bellhop.rendering.charts.releases import release_of
from bellhop.rendering.templates import RenderContext
from bellhop.state.deployment import Owner

_LONGEST = timedelta(minutes=1)
"""The next profile may not come so far as to claim the release, for good."""


class ReleaseHandover:
    """Finds the profiles that are to have a release next."""

    def __init__(self, catalogs: Catalogs, limits: Limits) -> None:
        self._catalogs = catalogs
        self._limits = limits

    def check(
        self, context: ReconcileContext, key: Identity, owner: Owner, until: datetime | None
    ) -> None:
        """Keep a release from being removed before another profile had its chance to claim it.

        One that is kept already is kept `until` then, or for a minute by a clock that went back.

        Raises:
            WaitingError: one has it there, and has not tried; its claim publishes this work
                again.
        """
        now = self._catalogs.records.clock.now()
        until = min(until or now + _LONGEST, now + _LONGEST)
        if until <= now:
            return
        catalog = self._catalogs.current()
        for heir in chain(self._own(catalog, context, key), self._generated(catalog, context, key)):
            if heir in owner.waiting:
                return
            trigger, _, name = heir
            who = f"trigger '{trigger}'" if trigger else f"{profile_kind(name)} '{name}'"
            raise WaitingError(
                f"cannot remove the release '{key.namespace}/{key.name}' yet: it is kept for {who},"
                f" which wants it in '{context.cluster.key}', too",
                until=until,
            )

    def _own(self, catalog: Catalog, context: ReconcileContext, key: Identity) -> Iterator[Place]:
        """Yield the declared profiles that have a release."""
        there = RenderContext(cluster_object(context.cluster), self._limits)
        for name, each in catalog.profiles.items():
            passive = name == context.profile.name or each.paused or each.addons.sync == "DryRun"
            charts = () if passive else each.charts
            has = any(release_of(chart.chart, there) == key for chart in charts)
            if has and catalog.selects(each, context.cluster.key):
                yield Place("", "", name)

    def _generated(
        self, catalog: Catalog, context: ReconcileContext, key: Identity
    ) -> Iterator[Place]:
        """Yield the profiles of triggers that have a release.

        A trigger may not have been processed since the cluster moved, so it counts where it may
        deploy to, as well as where it does.
        """
        cluster = context.cluster
        profiles = self._catalogs.records.profiles
        there = RenderContext(cluster_object(cluster), self._limits)
        for name, trigger in catalog.triggers.items():
            for head in profiles.heads(name) if trigger.charts else ():
                heir = place(head)
                goes = cluster.key in head.destinations
                if not goes and not catalog.may_reach(trigger, head.cluster, cluster.key):
                    continue
                if heir == place(context.profile) or head.paused or head.sync == "DryRun":
                    continue
                kept = None
                with suppress(MissingError):
                    kept = profiles.get(*heir)
                charts = [each.chart for each in kept.value.contents] if kept else []
                if any(each and release_of(each, there) == key for each in charts):
                    yield heir
