"""The deployment status of a profile in a cluster, its next attempt, and the end of a removal.

    status is read ─► all else is read ─► attempt ─► timer ─► status, if it is still the one read

Of two attempts that overlap, the one that ends later has not read the status of the other. Its
write is refused, and it begins again: so the attempt whose status is stored last began after all
other writes. The timer comes first, so that no status promises an attempt that never comes. A timer
that a refused or dead worker leaves behind has the records read once more, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec.structs import replace

from bellhop.clusters.management_cluster import digest_targets, find_error
from bellhop.deploy.context import ReconcileContext, requirements
from bellhop.deploy.profile_removal import ProfileRemoval
from bellhop.deploy.status_messages import (
    INPUT_ERRORS,
    SLOW_ERRORS,
    feature_statuses,
    format_contest,
    format_permanent_failure,
    format_remark,
    summarize,
)
from bellhop.errors import (
    AwayError,
    BellhopError,
    PausedError,
    StaleError,
    TemporaryError,
    UnmetError,
    UnreachableError,
    WaitingError,
)
from bellhop.ports.store import ABSENT
from bellhop.profiles.records import place
from bellhop.rendering.allow_limits import NotAllowedError
from bellhop.rendering.inputs import MissingInputError
from bellhop.settings import Settings
from bellhop.state.delays import drift_timer, retry_timer, spread
from bellhop.state.deployment import Change, DeploymentStatus, Phase, Preview
from bellhop.state.profile import Profile
from bellhop.state.records import Records
from bellhop.state.table import Stored

_DOUBLINGS = 16
DRIFT = "Drift"
"""Reason of a status where another manager changes an object as often as it is corrected."""

_SOON = timedelta(seconds=5)
"""A cloud's queue keeps messages for delays up to this: a kind may be about to be served, and the
schedule runs each minute. In one process the schedule runs all the time, and a message that stays
in its queue would keep a correction waiting behind it."""

_MOST_NEEDED = 256
"""Requirements that a status names: it is one item of the store."""


class StatusWriter:
    """Writes statuses; a worker that lost the race gets a StaleError, and begins again."""

    def __init__(self, records: Records, settings: Settings, *, single: bool) -> None:
        """Write for workers of a cloud, or of a `single` process."""
        self._records = records
        self._settings = settings
        self._removal = ProfileRemoval(records)
        self._soon = timedelta(0) if single else _SOON

    def record_success(self, context: ReconcileContext) -> None:
        """Record that the profile is deployed or left; its newest inputs may still be wrong."""
        error, _ = find_error(context.profile)
        phase: Phase = "FailedNonRetriable" if error else "Provisioned"
        self._record_success(
            context, phase, error or format_remark(context), changed=bool(context.progress.changed)
        )

    def _record_success(
        self, context: ReconcileContext, phase: Phase, message: str, *, changed: bool
    ) -> None:
        old, profile = context.status.value if context.status else None, context.profile
        # Where health is checked, these inputs have passed.
        made_of = context.made_of if "validateHealths" in profile.checked else ""
        targets = digest_targets(profile, context.cluster.key)
        now = (phase, message, context.reads, made_of, _revision(context), targets, _needs(context))
        same = old and _recorded(old) == now
        if same and not changed:
            return
        if old and old.retry_at:
            # Before the write: a worker that fails, and sets it again after that, has read it.
            self._records.timers.cancel(retry_timer(context.cluster.key, profile.name))
        status = self._status(context, phase, reason=find_error(profile)[1], message=message)
        self._put(context, replace(status, made_of=made_of))

    def record_progress(self, context: ReconcileContext) -> None:
        """Record how many objects are done, and that the rest follows: its message may be lost."""
        phase: Phase = "Provisioning" if context.is_destination else "Removing"
        count = sum(bool(each.digest) for each in context.progress.held.values())
        done = "deployed" if context.is_destination else "left"
        message = f"{count} objects and Helm releases are {done}; the rest follows"
        self._put(
            context,
            _keep_failures(context, self._status(context, phase, reason="", message=message)),
        )

    def record_contests(self, context: ReconcileContext) -> None:
        """Record objects that others change as often as they are corrected, and set their timers.

        The timer comes first, and one that is set stays: the changes send events all the time.
        """
        for each in context.verdict.contests:
            name = drift_timer(context.cluster.key, context.profile.name, str(each.key))
            timer = self._records.timers.get(name)
            if timer is None or timer.value.at <= self._records.clock.now():
                again = replace(context.message, touched=str(each.key), trace="", event_at="")
                self._records.timers.set(name, each.at, again.message().body)
        message = "; ".join(format_contest(each) for each in context.verdict.contests)
        old = context.status.value if context.status else None
        if old and (old.phase, old.reason, old.message) == ("Failed", DRIFT, message):
            return
        status = self._status(context, "Failed", reason=DRIFT, message=message)
        due = min(each.at for each in context.verdict.contests)
        self._put(context, replace(status, failures=1, retry_at=due))

    def record_preview(self, context: ReconcileContext, changes: Sequence[Change]) -> None:
        """Record the changes of a dry run.

        A worker that lost the race deletes its preview. The preview of a worker that died is shown
        only if the status says that it is a dry run, and then its message is delivered again.
        """
        cluster, name = context.cluster.key, context.profile.name
        kept = self._records.previews.get(cluster, name)
        token = kept.token if kept else ABSENT
        changed = kept is None or kept.value.changes != tuple(changes)
        if changed:
            preview = Preview(cluster, name, self._records.clock.now(), tuple(changes))
            token = self._records.previews.put(preview, expect=token)
        error, _ = find_error(context.profile)
        phase: Phase = "FailedNonRetriable" if error else "DryRun"
        try:
            self._record_success(context, phase, error or summarize(changes), changed=changed)
        except StaleError:
            with suppress(StaleError):
                self._records.previews.delete(cluster, name, expect=token)
            raise

    def record_failure(self, context: ReconcileContext, error: BellhopError) -> None:
        """Record an error, and set the timer of the next attempt if its cause may pass.

        Raises:
            TemporaryError: the next attempt is so soon that the queue keeps the message.
        """
        old = context.status.value if context.status else None
        # Objects that were just applied are soon healthy, however long the attempts before took.
        restarts = isinstance(error, UnmetError) and bool(context.progress.changed)
        failures = 1 if restarts or old is None or _is_changed(context, old) else old.failures + 1
        counted = self._count_failures(context, error)
        given_up = 0 < context.profile.rollout.most_failures <= counted
        pause = None if given_up else self._pause(context, error, failures)
        at = self._records.clock.now() + pause if pause else None
        if given_up and old and old.retry_at:
            self._records.timers.cancel(retry_timer(context.cluster.key, context.profile.name))
        if at and pause and pause > self._soon:
            self._set_retry(context, at)
        inputs = error.code in INPUT_ERRORS or isinstance(
            error, (NotAllowedError, MissingInputError)
        )
        phase: Phase = "FailedNonRetriable" if inputs or given_up else "Failed"
        if isinstance(error, UnmetError):
            phase = "Provisioning" if context.is_destination else "Removing"
        message = format_permanent_failure(context, error, counted) if given_up else str(error)
        status = self._status(context, phase, reason=error.code, message=message)
        status = replace(status, failures=failures, retry_at=at)
        self._put(
            context,
            replace(status, counted=counted, made_of=context.made_of, read=context.progress.read),
        )
        if pause and pause <= self._soon:
            raise TemporaryError(str(error), delay=pause)

    def is_left_to_retry(self, context: ReconcileContext) -> bool:
        """Say whether the last attempt failed, and only the next one at its time can help.

        No timer is set for an attempt whose message the queue keeps.
        """
        old = context.status.value if context.status else None
        if old is None or _is_changed(context, old):
            return False
        if old.retry_at is None:
            return old.phase == "FailedNonRetriable"
        waits = self._records.clock.now() < old.retry_at
        return old.phase == "Failed" and waits and old.retry_at - old.at > self._soon

    def _count_failures(self, context: ReconcileContext, error: BellhopError) -> int:
        """Count the failures in a row that count for maxConsecutiveFailures.

        A cluster that does not answer and a check that does not pass yet do not count. Nor does an
        attempt before its time, because of a message that was delivered twice. Removals and dry
        runs are tried without an end.
        """
        old = context.status.value if context.status else None
        if (
            not context.profile.rollout.most_failures
            or not context.is_destination
            or context.dry_run
        ):
            return 0
        before, early = 0, False
        if old and not _is_changed(context, old):
            before = old.counted
            early = old.retry_at is not None and self._records.clock.now() < old.retry_at
        return before + (not early and not isinstance(error, (UnreachableError, UnmetError)))

    def record_wait(
        self, context: ReconcileContext, error: AwayError | PausedError | WaitingError
    ) -> bool:
        """Record that the profile waits, for a message or a time; return whether that is new."""
        old = context.status.value if context.status else None
        phase = _phase_of(context, error)
        until = error.until
        if until:
            self._set_retry(context, until)
        known = old is not None and (old.reason, old.retry_at) == (error.code, until)
        # It may wait for another profile than before.
        if known and old and (phase == "Failed" or old.message == str(error)):
            return False
        if old and old.retry_at and not until:
            self._records.timers.cancel(retry_timer(context.cluster.key, context.profile.name))
        status = self._status(context, phase, reason=error.code, message=str(error))
        status = replace(status, retry_at=until)
        self._put(context, _keep_failures(context, status))
        return True

    def _set_retry(self, context: ReconcileContext, at: datetime) -> None:
        body = replace(context.message, trace="", event_at="").message().body
        self._records.timers.set(retry_timer(context.cluster.key, context.profile.name), at, body)

    def record_removal(
        self, profile: Profile, cluster: str, status: Stored[DeploymentStatus] | None
    ) -> None:
        """Record that a cluster has nothing of a profile; the last one closes a withdrawn profile.

        Raises:
            StaleError: another worker wrote the status, or the cluster is to be left once more.
        """
        removals, which = self._records.departures, place(profile)
        # Before its pending removal, which is stored ahead of a head that is not written yet.
        found = self._records.profiles.head(*which)
        # Before the status: a writer that has the cluster left again changes it after that.
        pending = removals.token(which, cluster)
        if status and status.value.retry_at:
            self._records.timers.cancel(retry_timer(cluster, profile.name))
        self._records.outcomes.delete(cluster, profile.name, expect=_token(status))
        self._forget_preview(status)
        if found and cluster in found.value.destinations:
            return
        if pending:
            removals.end(which, cluster, expect=pending)
        self._removal.close(which, found)

    def _pause(
        self, context: ReconcileContext, error: BellhopError, failures: int
    ) -> timedelta | None:
        """Return the delay of the next attempt: twice the last one, up to a ceiling.

        None where only a change of manifests can help: it publishes the profile itself.
        """
        if isinstance(error, SLOW_ERRORS):
            # An owner stores only so many waiters; no event says that a kind is served by now, and
            # so known to have no namespace; and `mgmt/mgmt` may send no event for an object that a
            # template reads.
            return spread(context.message.group, self._settings.retry_ceiling)
        if error.code in INPUT_ERRORS:
            return None
        pause = self._settings.retry_first * 2 ** min(failures - 1, _DOUBLINGS)
        asked = error.delay if isinstance(error, TemporaryError) else None
        pause = max(min(pause, self._settings.retry_ceiling), asked or timedelta(0))
        pause = spread(f"{context.message.group}/{failures}", pause)
        if isinstance(error, TemporaryError) and error.until:
            left = error.until - self._records.clock.now()
            pause = min(pause, max(left, self._settings.retry_first))
        return pause

    def _put(self, context: ReconcileContext, status: DeploymentStatus) -> None:
        ended = feature_statuses(
            context.features,
            context.progress.feature,
            status,
            context.verdict.failed_features | context.verdict.unplanned.keys(),
        )
        old = context.status.value if context.status else None
        since = old.begun_at if old and _kind_of(old) == _kind_of(status) else status.at
        status = replace(status, features=ended, since=since)
        self._records.outcomes.put(status, expect=_token(context.status))
        if status.phase != "DryRun":
            self._forget_preview(context.status)

    def _forget_preview(self, status: Stored[DeploymentStatus] | None) -> None:
        """Delete the preview of a dry run that is over."""
        if status and status.value.phase == "DryRun":
            self._records.previews.delete(status.value.cluster, status.value.profile)

    def _status(
        self, context: ReconcileContext, phase: Phase, *, reason: str, message: str
    ) -> DeploymentStatus:
        return DeploymentStatus(
            cluster=context.cluster.key,
            profile=context.profile.name,
            trigger=context.profile.trigger,
            source=context.profile.cluster,
            phase=phase,
            at=self._records.clock.now(),
            reason=reason,
            message=message,
            reads=context.reads,
            revision=_revision(context),
            guests=digest_targets(context.profile, context.cluster.key),
            needs=_needs(context),
        )


def _is_changed(context: ReconcileContext, old: DeploymentStatus) -> bool:
    """Say whether a profile, or what its templates read, has changed since the last attempt."""
    # An attempt that failed before it read anything says nothing about that.
    return old.made_of != context.made_of or bool(
        context.progress.read and old.read != context.progress.read
    )


def _phase_of(context: ReconcileContext, error: AwayError | PausedError | WaitingError) -> Phase:
    """Return the phase of a profile that waits: a cluster that does not answer is a failure."""
    if isinstance(error, AwayError):
        return "Failed"
    return (
        "Provisioning" if context.is_destination or isinstance(error, WaitingError) else "Removing"
    )


def _kind_of(status: DeploymentStatus) -> tuple[str, bool]:
    """Return what a status and the one before share while `since` stays as it is.

    A cluster that does not answer is no failure of a profile.
    """
    away = status.reason == AwayError.code
    return "Failed" if status.phase.startswith("Failed") else status.phase, away


def _recorded(old: DeploymentStatus) -> tuple[object, ...]:
    recorded = old.phase, old.message, old.reads, old.made_of
    return *recorded, old.revision, old.guests, old.needs


def _keep_failures(context: ReconcileContext, status: DeploymentStatus) -> DeploymentStatus:
    """Keep the failures of the status before: a wait neither adds to them nor ends them."""
    old = context.status.value if context.status else None
    if old is None:
        return status
    return replace(
        status,
        failures=old.failures,
        counted=old.counted,
        made_of=old.made_of,
        read=old.read,
    )


def _revision(context: ReconcileContext) -> str:
    """Return the revision that is deployed, if other profiles must know it."""
    profile = context.profile
    return profile.revision if profile.rollout.tracked else ""


def _needs(context: ReconcileContext) -> tuple[str, ...]:
    return requirements(context.profile)[:_MOST_NEEDED]


def _token(status: Stored[DeploymentStatus] | None) -> str:
    return status.token if status else ABSENT
