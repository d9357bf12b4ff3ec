"""Keeps a release that a profile gives up until the next profile has it, or waits for it.

    cluster moves from A to B, or a chart does ─► A is processed first: it waits, for a minute
                                               ─► B claims the release, or waits for it: A is told
                                               ─► B upgrades the release where it is

Only the catalog knows B then: B may not have been processed in the cluster yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain

from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import cluster_object
from bellhop.core.generated_names import profile_kind
from bellhop.core.gvk import Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.errors import MissingError, WaitingError
from bellhop.gotemplate import Limits
from bellhop.profiles.records.pending_removals import Place
from bellhop.profiles.records.profiles import place
from bellhop.rendering.charts.releases import release_of
from bellhop.state.record import Owner

_LONGEST = timedelta(minutes=1)
"""The next profile may not come so far as to claim the release, for good."""


class ReleaseHandover:
    """Finds the profiles that are to have a release next."""

    def __init__(self, catalogs: Catalogs, limits: Limits) -> None:
        self._catalogs = catalogs
        self._limits = limits

    def refuse_early(
        self, work: ReconcileContext, key: Identity, owner: Owner, until: datetime | None
    ) -> None:
        """Keep a release from being removed before another profile had its chance to claim it.

        One that is kept already is kept `until` then, or for a minute by a clock that went back.

        Raises:
            WaitingError: one wants it there, and has not tried; its claim publishes this work
                again.
        """
        now = self._catalogs.records.clock.now()
        until = min(until or now + _LONGEST, now + _LONGEST)
        if until <= now:
            return
        for heir in chain(self._own(work, key), self._generated(work, key)):
            if heir in owner.waiting:
                return
            trigger, _, name = heir
            who = f"trigger '{trigger}'" if trigger else f"{profile_kind(name)} '{name}'"
            raise WaitingError(
                f"cannot remove the release '{key.namespace}/{key.name}' yet: it is kept for {who},"
                f" which wants it in '{work.cluster.key}', too",
                until=until,
            )

    def _own(self, work: ReconcileContext, key: Identity) -> Iterator[Place]:
        """Yield the profiles of users' own that want a release."""
        catalog, root = self._catalogs.current(), cluster_object(work.cluster)
        for name, each in catalog.profiles.items():
            passive = name == work.profile.name or each.paused or each.sync == "DryRun"
            charts = () if passive else each.charts
            wants = any(release_of(chart.chart, root, self._limits) == key for chart in charts)
            if wants and catalog.selects(each, work.cluster.key):
                yield Place("", "", name)

    def _generated(self, work: ReconcileContext, key: Identity) -> Iterator[Place]:
        """Yield the profiles of triggers that want a release.

        A trigger may not have been processed since the cluster moved, so it counts where it may
        deploy to, as well as where it does.
        """
        catalog, cluster = self._catalogs.current(), work.cluster
        profiles, root = self._catalogs.records.profiles, cluster_object(cluster)
        for name, trigger in catalog.triggers.items():
            for head in profiles.heads(name) if trigger.charts else ():
                heir = place(head)
                goes = cluster.key in head.destinations
                if not goes and not catalog.may_reach(trigger, head.cluster, cluster.key):
                    continue
                if heir == place(work.profile) or head.paused or head.sync == "DryRun":
                    continue
                kept = None
                with suppress(MissingError):
                    kept = profiles.get(*heir)
                charts = [each.chart for each in kept.value.contents] if kept else []
                if any(each and release_of(each, root, self._limits) == key for each in charts):
                    yield heir
