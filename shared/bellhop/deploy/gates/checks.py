"""Checks of a profile in a cluster, before and after it is deployed and removed.

    preDeployChecks ─► apply ─► validateHealths ─► deployed
    preDeleteChecks ─► remove ─► postDeleteChecks ─► left
    preDeleteChecks ─► remove a chart that the profile has no longer

A profile without checks loads neither Lua nor CEL, and reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.gates.check_jobs import CheckJobs
from bellhop.deploy.gates.check_metrics import MetricReader
from bellhop.errors import BellhopError, MissingError, UnmetError
from bellhop.ports.kube import Access, Kube, Manifest
from bellhop.ports.store import ABSENT
from bellhop.profiles.records import place
from bellhop.settings import Settings
from bellhop.state.check import Check, When
from bellhop.state.profile import Profile
from bellhop.state.records import Records


class Checks:
    """Runs checks, with the permissions of the profile's account."""

    def __init__(
        self, records: Records, access: Access, metrics: MetricReader, settings: Settings
    ) -> None:
        self._records = records
        self._access = access
        self._metrics = metrics
        self._jobs = CheckJobs(settings)
        self._clock = records.clock
        self._settings = settings

    def before(self, context: ReconcileContext) -> None:
        """Check that the cluster is ready for an attempt.

        Raises:
            UnmetError: a check does not pass yet.
            MissingError: the checks of the profile are lost.
        """
        self._run(context, "preDeployChecks" if context.is_destination else "preDeleteChecks")

    def before_removal(self, context: ReconcileContext) -> None:
        """Check that a chart may be removed from a cluster that keeps the profile, as in Sveltos.

        Raises:
            UnmetError: a check does not pass yet.
            MissingError: the checks of the profile are lost.
        """
        self._run(context, "preDeleteChecks")

    def after(self, context: ReconcileContext) -> None:
        """Check that the profile is healthy, or that its removal is complete.

        Raises:
            UnmetError: a check does not pass yet.
            MissingError: the checks of the profile are lost.
        """
        self._run(context, _after(context))

    def have_passed(self, context: ReconcileContext) -> bool:
        """Say whether the later checks have passed already, if nothing had to be done.

        Those after a removal have, if the removal is no longer pending.
        """
        if context.only_hosts or _after(context) not in context.profile.checked:
            return True
        if not context.is_destination:
            which = place(context.profile)
            return self._records.departures.token(which, context.cluster.key) == ABSENT
        if context.status is None:
            return False
        old = context.status.value
        return (old.phase, old.made_of) == ("Provisioned", context.made_of)

    def _run(self, context: ReconcileContext, when: When) -> None:
        """Run the checks of a moment, of the feature in progress, until one does not pass."""
        if context.only_hosts or when not in context.profile.checked:
            return
        checks = [each for each in context.profile.checks if each.when == when]
        if not checks:
            raise _lost(context.profile)
        # Not at the top: a profile without checks must not load these.
        from bellhop.deploy.gates import check_results  # noqa: PLC0415
        from bellhop.luabox import Limits  # noqa: PLC0415

        settings = self._settings
        limits = Limits(seconds=settings.script_seconds, memory=settings.script_memory)
        kube = self._open(context)
        until = self._clock.now() + settings.turn
        for check in (each for each in checks if each.feature == context.progress.feature):
            if check.job:
                said = self._jobs.objection(kube, check, context)
            else:
                left = (until - self._clock.now()).total_seconds()
                metrics = self._metrics.read(check, context.cluster, left)
                try:
                    objects = self._objects(kube, check, until)
                    said = check_results.objection(check, objects, limits, metrics)
                except MissingError:
                    said = check_results.unserved(check)
            if said:
                raise UnmetError(f"waits for check '{check.name}': {said}")

    def tidy(self, context: ReconcileContext) -> None:
        """Delete the Jobs of checks that have all passed, or leave them to their TTL."""
        if any(each.job for each in context.profile.checks) and not context.only_hosts:
            with suppress(BellhopError):
                self._jobs.tidy(self._open(context), context)

    def _open(self, context: ReconcileContext) -> Kube:
        cluster = context.cluster
        return self._access.open(
            cluster.key, version=cluster.credentials, account=context.profile.account
        )

    def _objects(self, kube: Kube, check: Check, until: datetime) -> Iterator[Manifest]:
        """Yield the objects of a check, page by page.

        Raises:
            MissingError: the cluster does not serve the kind.
            UnmetError: there are more objects than one turn can read.
        """
        found = kube.list(check.kind, namespace=check.namespace, labels=check.labels)
        for number, each in enumerate(found):
            if self._clock.now() > until:
                raise UnmetError(
                    f"waits for check '{check.name}': it takes longer than the setting `turn` for"
                    f" more than {number} objects of {check.kind.kind}; name a namespace, or"
                    " labelFilters"
                )
            yield each


def _after(context: ReconcileContext) -> When:
    return "validateHealths" if context.is_destination else "postDeleteChecks"


def _lost(profile: Profile) -> MissingError:
    return MissingError(
        f"cannot go on with '{profile.shown}': its checks are lost; apply it again, or"
        f" `bellhop redeploy {profile.shown} --unchecked`"
    )
