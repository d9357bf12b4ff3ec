"""How work on a cluster ends: its outcome, the next try, and the end of what was withdrawn.

    outcome is read ─► all else is read ─► work ─► timer ─► outcome, if it is still the one read

Of two who overlap, the one that ends later has not seen how the other ended. It is refused, and
begins anew: what is noted last was begun after everything else was noted. The timer comes first,
so that no outcome tells of a try that nobody makes. One that a loser or a dead worker leaves
behind has the records looked at once more, and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from copy import copy
from datetime import datetime, timedelta
from itertools import accumulate

from msgspec.structs import replace

from bellhop.clusters.management_cluster import mark, wrong
from bellhop.core.sveltos_annotations import DRIFT_IGNORED
from bellhop.deploy.context import Contest, ReconcileContext
from bellhop.deploy.gates.dependencies import needs
from bellhop.errors import (
    AwayError,
    BellhopError,
    ConflictError,
    LostWriteError,
    PausedError,
    QueuedError,
    StaleError,
    TemporaryError,
    UnmetError,
    UnreachableError,
    WaitingError,
)
from bellhop.ports.store import ABSENT
from bellhop.profiles.records.pending_removals import Place
from bellhop.profiles.records.profiles import place
from bellhop.rendering.allow_limits import NotAllowedError
from bellhop.rendering.event_contents import MissingInputError
from bellhop.settings import Settings
from bellhop.state.concurrency import until_written
from bellhop.state.delays import drift_timer, retry_timer, spread
from bellhop.state.record import (
    NO_OBJECT,
    Action,
    Change,
    DeploymentStatus,
    Ended,
    Phase,
    Preview,
    Profile,
)
from bellhop.state.records import Records
from bellhop.state.table import Stored

_DOUBLINGS = 16
DRIFT = "Drift"
"""The reason of an outcome where two fight over an object."""

_SOON = timedelta(seconds=5)
"""Pauses up to this are left to a cloud's queue: a kind may be about to be served, and the schedule
ticks each minute. In one process it ticks all the time, and a message that rested in its queue
would have a correction of what failed wait behind it."""

_MOST_NEEDED = 256
_TOLD = 1900
"""Characters of what failed for several objects; an error has some more."""

_INPUTS = frozenset({"Template", "Script", "Conflict"})
"""Failures that only a change of what users declared can cure."""

_SLOW = (ConflictError, NotAllowedError, MissingInputError)
"""Of these the change has the profile applied; each is tried again beside that, at long intervals.
"""


class StatusWriter:
    """Notes how work ended; whoever was overtaken gets a StaleError, and is to begin anew."""

    def __init__(self, records: Records, settings: Settings, *, alone: bool) -> None:
        """Note for workers of a cloud, or of one process that works `alone`."""
        self._records = records
        self._settings = settings
        self._soon = timedelta(0) if alone else _SOON

    def settle(self, work: ReconcileContext) -> None:
        """Note that all is as it should be; only the inputs of the profile may be wrong still."""
        error, _ = wrong(work.profile)
        phase: Phase = "FailedNonRetriable" if error else "Provisioned"
        self._settle(work, phase, error or _remark(work), anew=bool(work.changed))

    def _settle(self, work: ReconcileContext, phase: Phase, message: str, *, anew: bool) -> None:
        old, profile = work.outcome.value if work.outcome else None, work.profile
        # Where health is checked it says of what it was found well.
        made_of = work.made_of if "validateHealths" in profile.checked else ""
        guests = mark(profile, work.cluster.key)
        now = (phase, message, work.reads, made_of, _revision(work), guests, _needs(work))
        same = old and _told(old) == now
        if same and not anew:
            return
        if old and old.retry_at:
            # Before we write: who fails and sets it anew after that has seen what we wrote.
            self._records.timers.cancel(retry_timer(work.cluster.key, profile.name))
        outcome = self._outcome(work, phase, reason=wrong(profile)[1], message=message)
        self._put(work, replace(outcome, made_of=made_of))

    def go_on(self, work: ReconcileContext) -> None:
        """Note how far it has come, and that the rest follows: its message may be lost."""
        phase: Phase = "Provisioning" if work.wanted else "Removing"
        count = sum(bool(each.digest) for each in work.held.values())
        done = "deployed" if work.wanted else "left"
        message = f"{count} objects and Helm releases are {done}; the rest follows"
        self._put(work, _since(work, self._outcome(work, phase, reason="", message=message)))

    def slow(self, work: ReconcileContext) -> None:
        """Note what is changed as often as it is put back, and have it put back when it is due.

        The timer comes first, and one that is set stays: those who fight ring all the time.
        """
        for each in work.contests:
            name = drift_timer(work.cluster.key, work.profile.name, str(each.key))
            timer = self._records.timers.get(name)
            if timer is None or timer.value.at <= self._records.clock.now():
                again = replace(work.message, touched=str(each.key), trace="", rang="")
                self._records.timers.set(name, each.at, again.message().body)
        message = "; ".join(contended(each) for each in work.contests)
        old = work.outcome.value if work.outcome else None
        if old and (old.phase, old.reason, old.message) == ("Failed", DRIFT, message):
            return
        outcome = self._outcome(work, "Failed", reason=DRIFT, message=message)
        due = min(each.at for each in work.contests)
        self._put(work, replace(outcome, failures=1, retry_at=due))

    def preview(self, work: ReconcileContext, changes: Sequence[Change]) -> None:
        """Note what would be done, and that nothing was.

        Whoever is overtaken takes back what it noted; what one who dies leaves behind is shown to
        nobody unless the outcome says that it is tried dry, and then its message comes again.
        """
        cluster, name = work.cluster.key, work.profile.name
        kept = self._records.previews.get(cluster, name)
        token = kept.token if kept else ABSENT
        anew = kept is None or kept.value.changes != tuple(changes)
        if anew:
            preview = Preview(cluster, name, self._records.clock.now(), tuple(changes))
            token = self._records.previews.put(preview, expect=token)
        error, _ = wrong(work.profile)
        phase: Phase = "FailedNonRetriable" if error else "DryRun"
        try:
            self._settle(work, phase, error or _counted(changes), anew=anew)
        except StaleError:
            with suppress(StaleError):
                self._records.previews.delete(cluster, name, expect=token)
            raise

    def fail(self, work: ReconcileContext, error: BellhopError) -> None:
        """Note what failed, and have it tried again where its cause may pass.

        Raises:
            TemporaryError: the next try is so soon that the queue had better keep the message.
        """
        old = work.outcome.value if work.outcome else None
        # What was just brought is soon healthy, however long its ground took to be ready.
        anew = isinstance(error, UnmetError) and bool(work.changed)
        failures = 1 if anew or old is None or _is_changed(work, old) else old.failures + 1
        counted = self._counted(work, error)
        given_up = 0 < work.profile.rollout.most_failures <= counted
        pause = None if given_up else self._pause(work, error, failures)
        at = self._records.clock.now() + pause if pause else None
        if given_up and old and old.retry_at:
            self._records.timers.cancel(retry_timer(work.cluster.key, work.profile.name))
        if at and pause and pause > self._soon:
            self._set_retry(work, at)
        inputs = error.code in _INPUTS or isinstance(error, (NotAllowedError, MissingInputError))
        phase: Phase = "FailedNonRetriable" if inputs or given_up else "Failed"
        if isinstance(error, UnmetError):
            phase = "Provisioning" if work.wanted else "Removing"
        message = _given_up(work, error, counted) if given_up else str(error)
        outcome = self._outcome(work, phase, reason=error.code, message=message)
        outcome = replace(outcome, failures=failures, retry_at=at)
        self._put(work, replace(outcome, counted=counted, made_of=work.made_of, read=work.read))
        if pause and pause <= self._soon:
            raise TemporaryError(str(error), delay=pause)

    def leaves(self, work: ReconcileContext) -> bool:
        """Say whether the last try failed, and nothing but the next one at its time can help.

        Where the queue keeps the message of a try no timer is set for it.
        """
        old = work.outcome.value if work.outcome else None
        if old is None or _is_changed(work, old):
            return False
        if old.retry_at is None:
            return old.phase == "FailedNonRetriable"
        waits = self._records.clock.now() < old.retry_at
        return old.phase == "Failed" and waits and old.retry_at - old.at > self._soon

    def _counted(self, work: ReconcileContext, error: BellhopError) -> int:
        """Count the failures in a row that count against the profile's most.

        A cluster that does not answer says nothing about a profile, and a check that does not pass
        yet is waited for. Nor does a try count before the time that was set for it, which a message
        brings that comes twice. What is withdrawn, or tried
        dry, is tried without an end.
        """
        old = work.outcome.value if work.outcome else None
        if not work.profile.rollout.most_failures or not work.wanted or work.dry:
            return 0
        before, early = 0, False
        if old and not _is_changed(work, old):
            before = old.counted
            early = old.retry_at is not None and self._records.clock.now() < old.retry_at
        return before + (not early and not isinstance(error, (UnreachableError, UnmetError)))

    def wait(self, work: ReconcileContext, error: AwayError | PausedError | WaitingError) -> bool:
        """Note that it goes on once somebody finds out that it may, who then has it tried again.

        Or at a time that is known. Return whether that is new.
        """
        old = work.outcome.value if work.outcome else None
        phase = _waiting(work, error)
        until = error.until
        if until:
            self._set_retry(work, until)
        known = old is not None and (old.reason, old.retry_at) == (error.code, until)
        # Who waits for others may wait for another one than before.
        if known and old and (phase == "Failed" or old.message == str(error)):
            return False
        if old and old.retry_at and not until:
            self._records.timers.cancel(retry_timer(work.cluster.key, work.profile.name))
        outcome = self._outcome(work, phase, reason=error.code, message=str(error))
        outcome = replace(outcome, retry_at=until)
        self._put(work, _since(work, outcome))
        return True

    def _set_retry(self, work: ReconcileContext, at: datetime) -> None:
        body = replace(work.message, trace="", rang="").message().body
        self._records.timers.set(retry_timer(work.cluster.key, work.profile.name), at, body)

    def leave(
        self, profile: Profile, cluster: str, outcome: Stored[DeploymentStatus] | None
    ) -> None:
        """Note that a cluster holds nothing of a profile; the last one closes a withdrawn one.

        Raises:
            StaleError: another wrote the outcome, or the cluster is to be left once more.
        """
        departures, which = self._records.departures, place(profile)
        # Before its departure, which is noted ahead of a head that is not written yet.
        found = self._records.profiles.head(*which)
        # Before the outcome: who has the cluster left anew after that has written another one.
        departure = departures.token(which, cluster)
        if outcome:
            self._records.timers.cancel(retry_timer(cluster, profile.name))
        self._records.outcomes.delete(cluster, profile.name, expect=_token(outcome))
        self._forget_preview(outcome)
        if found and cluster in found.value.destinations:
            return
        if departure:
            departures.end(which, cluster, expect=departure)
        self._close(which, found)

    def _close(self, which: Place, found: Stored[Profile] | None) -> None:
        """Close a profile that has left all clusters; one that stays leaves none any more.

        Of those who leave at once the last one to strike its departure out finds no other.
        """
        try:
            self._close_read(which, found)
        except LostWriteError:
            self._close_stored(which)

    @until_written("close profile '{which.name}'")
    def _close_stored(self, which: Place) -> None:
        self._close_read(which, self._records.profiles.head(*which))

    def _close_read(self, which: Place, found: Stored[Profile] | None) -> None:
        # The head was read first: its writer had noted before what is to be left.
        if found is None or not found.value.leaves:
            return
        stays = found.value
        others = self._records.departures.of(which)
        if any(each not in stays.destinations for each in others):
            return
        if stays.destinations or stays.digest or stays.error:
            stays = replace(stays, leaves=False)
            self._records.profiles.put_head(stays, expect=found.token)
        else:
            self._records.profiles.delete(*which, expect=found.token)

    def _pause(
        self, work: ReconcileContext, error: BellhopError, failures: int
    ) -> timedelta | None:
        """Say how long to wait; each pause is twice as long, and there is no end to patience.

        None where only a change of what users declared can help: it asks for a try itself.
        """
        if isinstance(error, _SLOW):
            # Those who wait are told, but an owner remembers only so many of them; and nobody
            # tells of a kind that is served by now, and so known to have no namespace. What a
            # template reads in `mgmt/mgmt` may come while that rings for nothing.
            return spread(work.message.group, self._settings.retry_ceiling)
        if error.code in _INPUTS:
            return None
        pause = self._settings.retry_first * 2 ** min(failures - 1, _DOUBLINGS)
        asked = error.delay if isinstance(error, TemporaryError) else None
        pause = max(min(pause, self._settings.retry_ceiling), asked or timedelta(0))
        pause = spread(f"{work.message.group}/{failures}", pause)
        if isinstance(error, TemporaryError) and error.until:
            left = error.until - self._records.clock.now()
            pause = min(pause, max(left, self._settings.retry_first))
        return pause

    def _put(self, work: ReconcileContext, outcome: DeploymentStatus) -> None:
        ended = by_feature(work.features, work.at, outcome, work.unmet | work.unplanned.keys())
        old = work.outcome.value if work.outcome else None
        since = old.begun_at if old and _sort(old) == _sort(outcome) else outcome.at
        outcome = replace(outcome, features=ended, since=since)
        self._records.outcomes.put(outcome, expect=_token(work.outcome))
        if outcome.phase != "DryRun":
            self._forget_preview(work.outcome)

    def _forget_preview(self, outcome: Stored[DeploymentStatus] | None) -> None:
        """Forget what was to be done once it is, or is not to be done any more."""
        if outcome and outcome.value.phase == "DryRun":
            self._records.previews.delete(outcome.value.cluster, outcome.value.profile)

    def _outcome(
        self, work: ReconcileContext, phase: Phase, *, reason: str, message: str
    ) -> DeploymentStatus:
        return DeploymentStatus(
            cluster=work.cluster.key,
            profile=work.profile.name,
            trigger=work.profile.trigger,
            source=work.profile.cluster,
            phase=phase,
            at=self._records.clock.now(),
            reason=reason,
            message=message,
            reads=work.reads,
            revision=_revision(work),
            guests=mark(work.profile, work.cluster.key),
            needs=_needs(work),
        )


def _is_changed(work: ReconcileContext, old: DeploymentStatus) -> bool:
    """Say whether a profile, or what its templates read, is another than at the last try."""
    # Who failed before it read anything says nothing about that.
    return old.made_of != work.made_of or bool(work.read and old.read != work.read)


def together(errors: Sequence[BellhopError]) -> BellhopError:
    """Return what failed for several objects as one error, which tells of each as far as it can.

    The one that may pass soonest says when it is tried again.
    """
    first = min(errors, key=_hopeless)
    told = list(dict.fromkeys(map(str, (first, *errors))))
    if len(told) == 1:
        return first
    ends = accumulate(len(each) + len("; ") for each in told)
    shown = told[: max(sum(end <= _TOLD for end in ends), 1)]
    more = [f"and {len(told) - len(shown)} more"] if len(shown) < len(told) else []
    whole = copy(first)
    whole.args = ("; ".join([*shown, *more]),)
    return whole


def _hopeless(error: BellhopError) -> tuple[int, bool]:
    """Say how little there is to hope for of another try; a failure counts before what waits."""
    waits = isinstance(error, (UnmetError, QueuedError))
    if isinstance(error, _SLOW):
        return 1, waits
    return (2 if error.code in _INPUTS else 0), waits


def contended(contest: Contest) -> str:
    """Say who changes an object as often as it is put back, and what to do about it."""
    key, seconds = contest.key, round(contest.pause.total_seconds())
    place = "/".join(filter(None, (key.namespace, key.name)))
    who = f"field manager '{contest.by}'" if contest.by else "somebody unknown"
    return (
        f"cannot keep {key.kind} '{place}': {who} changes it as often as it is put back,"
        f" {contest.times} times in a row; it waits {seconds} s now; end one of the two, leave the"
        f" fields out of the manifest, or annotate it with {DRIFT_IGNORED}"
    )


def _waiting(work: ReconcileContext, error: AwayError | PausedError | WaitingError) -> Phase:
    """Return the phase of what waits: that a cluster does not answer is a failure."""
    if isinstance(error, AwayError):
        return "Failed"
    return "Provisioning" if work.wanted or isinstance(error, WaitingError) else "Removing"


def by_feature(
    features: Sequence[str], at: str, outcome: DeploymentStatus, unmet: Collection[str] = ()
) -> tuple[Ended, ...]:
    """Say how each feature ended: those before the one it failed at are done, no other is begun.

    What concerns none of them alone concerns all, unless only those that are `unmet` have failed.
    """
    number = features.index(at) if at else 0
    said = outcome.phase, outcome.reason, outcome.message, outcome.retry_at
    if unmet and not at:
        return tuple(
            Ended(each, *(said if each in unmet else ("Provisioned",))) for each in features
        )
    whose = features[number : number + 1] if at else features
    return (
        *(Ended(each, "Provisioned") for each in features[:number]),
        *(Ended(each, *said) for each in whose),
        *(Ended(each, "Provisioning") for each in features[number + len(whose) :]),
    )


def _sort(outcome: DeploymentStatus) -> tuple[str, bool]:
    """Return what an outcome is while it stays alike: another attempt that fails begins nothing.

    That its cluster does not answer is no failure of a profile.
    """
    away = outcome.reason == AwayError.code
    return "Failed" if outcome.phase.startswith("Failed") else outcome.phase, away


def _told(old: DeploymentStatus) -> tuple[object, ...]:
    """Return what a profile that was brought is noted with."""
    told = old.phase, old.message, old.reads, old.made_of
    return *told, old.revision, old.guests, old.needs


def _since(work: ReconcileContext, outcome: DeploymentStatus) -> DeploymentStatus:
    """Return an outcome that neither adds to the failures before it nor ends them."""
    old = work.outcome.value if work.outcome else None
    if old is None:
        return outcome
    return replace(
        outcome,
        failures=old.failures,
        counted=old.counted,
        made_of=old.made_of,
        read=old.read,
    )


def _given_up(work: ReconcileContext, error: BellhopError, counted: int) -> str:
    return (
        f"{error}; it has failed {counted} times in a row, as often as maxConsecutiveFailures lets"
        f" it: change the profile, or what it reads, or `bellhop redeploy {work.profile.shown}`"
    )


def _counted(changes: Sequence[Change]) -> str:
    """Sum up what would be done, in a sentence."""
    found = Counter(each.action for each in changes)
    words: dict[Action, str] = {
        "Create": "to create",
        "Adopt": "to adopt",
        "Update": "to update",
        "Delete": "to delete",
        "Conflict": "in conflict",
        "Error": "refused",
    }
    told = [f"{found[action]} {word}" for action, word in words.items() if found[action]]
    return ", ".join(told) or "nothing to change"


def _remark(work: ReconcileContext) -> str:
    """Say what is missed where all is as it should be: objects, or restarts that are asked for."""
    contents = work.profile.contents
    own = any(not each.how.local and each.is_for(work.cluster) for each in contents)
    if own and not work.held and not work.only_hosts:
        return NO_OBJECT
    if not work.unread:
        return ""
    first, *others = sorted(work.unread)
    more = f" and {len(others)} more" if others else ""
    return (
        f"no workload restarts when {first.kind} '{first.namespace}/{first.name}'{more} changes:"
        " Bellhop's credentials there may not get it, as reloader has to; grant them that"
    )


def _revision(work: ReconcileContext) -> str:
    """Return what of a profile an outcome is about, where others are to know that."""
    rollout = work.profile.rollout
    return work.profile.revision if rollout.ordered or rollout.paced else ""


def _needs(work: ReconcileContext) -> tuple[str, ...]:
    """Return whom a profile needs, of very many the first ones: an outcome is one item."""
    return needs(work.profile)[:_MOST_NEEDED]


def _token(outcome: Stored[DeploymentStatus] | None) -> str:
    return outcome.token if outcome else ABSENT
