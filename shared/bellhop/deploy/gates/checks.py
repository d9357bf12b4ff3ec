"""Asks a cluster what a profile's checks ask for, before and after it is brought and taken back.

    preDeployChecks ─► apply ─► validateHealths ─► deployed
    preDeleteChecks ─► remove ─► postDeleteChecks ─► left
    preDeleteChecks ─► remove a chart that the profile has no longer

Who has no checks loads neither Lua nor CEL, and asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.gates.check_jobs import CheckJobs
from bellhop.deploy.gates.check_metrics import MetricReader
from bellhop.errors import BellhopError, MissingError, UnmetError
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube, Manifest
from bellhop.ports.store import ABSENT
from bellhop.profiles.records.profiles import place
from bellhop.settings import Settings
from bellhop.state.check import Check, When
from bellhop.state.record import Profile
from bellhop.state.records import Records


class Checks:
    """Runs checks, with the rights of whose profile it is."""

    def __init__(
        self, records: Records, access: Access, metrics: MetricReader, settings: Settings
    ) -> None:
        self._records = records
        self._access = access
        self._metrics = metrics
        self._jobs = CheckJobs(settings)
        self._clock = records.clock
        self._settings = settings

    def before(self, work: ReconcileContext) -> None:
        """Refuse to begin what a check says the cluster is not ready for.

        Raises:
            UnmetError: a check does not pass yet.
            MissingError: the checks of the profile are lost.
        """
        self._run(work, "preDeployChecks" if work.wanted else "preDeleteChecks")

    def before_removal(self, work: ReconcileContext) -> None:
        """Refuse to remove what the cluster keeps the profile without, as Sveltos does for charts.

        Raises:
            UnmetError: a check does not pass yet.
            MissingError: the checks of the profile are lost.
        """
        self._run(work, "preDeleteChecks")

    def after(self, work: ReconcileContext) -> None:
        """Refuse to call done what a check says is not.

        Raises:
            UnmetError: a check does not pass yet.
            MissingError: the checks of the profile are lost.
        """
        self._run(work, _after(work))

    def have_passed(self, work: ReconcileContext) -> bool:
        """Say whether the checks after have passed already, where nothing was to be done.

        Those after a removal have where the cluster is not to be left any more.
        """
        if work.only_hosts or _after(work) not in work.profile.checked:
            return True
        if not work.wanted:
            which = place(work.profile)
            return self._records.departures.token(which, work.cluster.key) == ABSENT
        if work.outcome is None:
            return False
        old = work.outcome.value
        return (old.phase, old.made_of) == ("Provisioned", work.made_of)

    def _run(self, work: ReconcileContext, when: When) -> None:
        """Run the checks of a time of the feature that the work is at, until one does not pass."""
        if work.only_hosts or when not in work.profile.checked:
            return
        checks = [each for each in work.profile.checks if each.when == when]
        if not checks:
            raise _lost(work.profile)
        # Not at the top: who has no checks must not pay for these.
        from bellhop.deploy.gates import check_results  # noqa: PLC0415
        from bellhop.luabox import Limits  # noqa: PLC0415

        settings = self._settings
        limits = Limits(seconds=settings.script_seconds, memory=settings.script_memory)
        kube = self._open(work)
        until = self._clock.now() + settings.turn
        for check in (each for each in checks if each.feature == work.at):
            if check.job:
                said = self._jobs.objection(kube, check, work)
            else:
                left = (until - self._clock.now()).total_seconds()
                metrics = self._metrics.read(check, work.cluster, left)
                try:
                    objects = self._objects(kube, check, until)
                    said = check_results.objection(check, objects, limits, metrics)
                except MissingError:
                    said = check_results.unserved(check)
            if said:
                raise UnmetError(f"waits for check '{check.name}': {said}")

    def tidy(self, work: ReconcileContext) -> None:
        """Delete the Jobs of checks that have all passed, or leave them to their TTL."""
        if any(each.job for each in work.profile.checks) and not work.only_hosts:
            with suppress(BellhopError):
                self._jobs.tidy(self._open(work), work)

    def _open(self, work: ReconcileContext) -> Kube:
        """Open the cluster with the rights of whose profile it is."""
        cluster = work.cluster
        return self._access.open(
            cluster.key, version=cluster.credentials, account=work.profile.account
        )

    def _objects(self, kube: Kube, check: Check, until: datetime) -> Iterator[Manifest]:
        """Yield what a check is about, page by page.

        Raises:
            MissingError: the cluster does not serve the kind.
            UnmetError: there is more than can be looked at before others have their turn.
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


def _after(work: ReconcileContext) -> When:
    return "validateHealths" if work.wanted else "postDeleteChecks"


def _lost(profile: Profile) -> MissingError:
    return MissingError(
        f"cannot go on with '{profile.shown}': its checks are lost; apply it again, or"
        f" `bellhop redeploy {profile.shown} --unchecked`"
    )
