"""Health of a cluster by its checks, and the notifications that are due."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from bellhop.core.identity import profile_shown
from bellhop.extras.health.records import Condition, Liveness, Notice
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.match import Selected, Selection

if TYPE_CHECKING:
    from bellhop.api.health_check import NotificationPolicy

PAUSE = timedelta(minutes=1)
"""Between two notices to one place about one cluster, and before the first new try."""

_SKEW = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(hours=1)
_NAMED = 3
_LONGEST = 300
"""Characters of one profile's failure that are sent."""

_LONGEST_ERROR = 1000
"""Characters of a notification's error that are stored; its end says what is missing."""

STATE, MESSAGE = "healthStatus", "message"
"""Fields of an unhealthy resource in a selection."""

_FAILED = {"Failed", "FailedNonRetriable"}


class State(NamedTuple):
    """Health of a cluster with its reason, valid until a time although nothing changes."""

    healthy: bool
    message: str
    until: datetime | None = None


def addons(outcomes: Iterable[DeploymentStatus]) -> State | None:
    """Evaluate a cluster by its profiles; None while some are pending and none has failed."""
    found = [each for each in outcomes if each.phase not in {"Removed", "DryRun"}]
    failed = [each for each in found if each.phase in _FAILED]
    if failed:
        said = [f"{profile_shown(each.profile)}: {each.message[:_LONGEST]}" for each in failed]
        return State(healthy=False, message=_listed(said))
    if any(each.phase == "Provisioning" for each in found):
        return None
    return State(healthy=True, message=f"all {len(found)} profiles are deployed")


def resources(
    health_check: str, found: Selection | None, patience: timedelta, now: datetime
) -> State | None:
    """Evaluate a cluster by a HealthCheck's resources; None if they are unknown yet.

    A resource counts once it is unhealthy for as long as the HealthCheck's failingFor. A failing
    script counts as unhealthy, so that people learn of it.
    """
    if found is None or not (found.made or found.error):
        return None
    if found.error:
        said = f"HealthCheck '{health_check}' cannot be evaluated: {found.error[:_LONGEST]}"
        return State(healthy=False, message=said)
    waiting = [each for each in found.selected if _waits(each, patience, now)]
    until = min((each.since + patience for each in waiting), default=None)
    if counted := counting(found, patience, now):
        said = _listed([_resource(each) for each in counted])
        return State(healthy=False, message=said, until=until)
    waits = ", and none for long enough yet" if found.selected else ""
    return State(healthy=True, message=f"{health_check}: {found.message}{waits}", until=until)


def counting(found: Selection, patience: timedelta, now: datetime) -> list[Selected]:
    """Return the resources that are unhealthy for so long that they count."""
    return [each for each in found.selected if not _waits(each, patience, now)]


def _waits(found: Selected, patience: timedelta, now: datetime) -> bool:
    # A time in the future is of a clock that was ahead: it says nothing, and the resource counts.
    return now < found.since + patience and found.since <= now + _SKEW


def together(checks: Mapping[str, State | None]) -> State | None:
    """Evaluate a cluster by all checks: one failure is enough; otherwise an unknown one waits."""
    known = [each for each in checks.values() if each]
    if failed := [each.message for each in known if not each.healthy]:
        return State(healthy=False, message="; ".join(failed))
    if len(known) < len(checks):
        return None
    return State(healthy=True, message="; ".join(each.message for each in known))


def _listed(said: Sequence[str]) -> str:
    """Say the first few things, and how many more there are."""
    more = f"; and {len(said) - _NAMED} more" if said[_NAMED:] else ""
    return "; ".join(said[:_NAMED]) + more


def _resource(found: Selected) -> str:
    key = found.key
    name = "/".join(filter(None, (key.namespace, key.name)))
    said = found.manifest.get(MESSAGE)
    return f"{key.gvk.kind} '{name}' is {found.manifest.get(STATE)}" + (f": {said}" if said else "")


def condition(
    old: Condition | None,
    state: State,
    names: Sequence[str],
    now: datetime,
    checks: Mapping[str, State | None],
) -> Condition:
    """Return the condition of a cluster whose state is known, with a notice for each name."""
    same = old is not None and old.healthy == state.healthy
    known = {each.name: each for each in old.notices} if old else {}
    notices = tuple(known.get(name, Notice(name)) for name in names)
    since = old.since if old and same else now
    found = tuple(
        Liveness(name, each.healthy, each.message) if each else Liveness(name, healthy=None)
        for name, each in checks.items()
    )
    return Condition(state.healthy, since, state.message, notices, found)


def owed(
    found: Condition,
    policies: Mapping[str, NotificationPolicy],
    repeated: Collection[str] = (),
) -> list[tuple[datetime, Notice]]:
    """Return the notifications whose last text is not true any more, and the time of each.

    With failingFor a notification is due once the cluster is unhealthy for so long; a failure that
    ended before was never sent, and nor is its end. While a cluster is unhealthy, `repeated` ones
    are due again after two pauses: Alertmanager ends an alert five minutes after it was last sent.
    """
    again = () if found.healthy else repeated
    waiting = [x for x in found.notices if x.told != found.healthy or x.name in again]
    return [(_due_at(found, each, policies.get(each.name)), each) for each in waiting]


def _due_at(found: Condition, notice: Notice, policy: NotificationPolicy | None) -> datetime:
    notify_at = found.since + policy.patience if policy and not found.healthy else found.since
    if notice.until and notice.told == found.healthy:
        return notice.until + PAUSE
    return max(notify_at, notice.until) if notice.until else notify_at


def claimed(notice: Notice, now: datetime) -> Notice:
    """Return a notification that is claimed: no other worker sends it for a while."""
    pause = min(PAUSE * 2 ** min(notice.failures, 10), _LONGEST_PAUSE)
    return replace(notice, until=now + pause)


def sent(notice: Notice, *, healthy: bool, until: datetime) -> Notice:
    """Return a notice that was sent; the next one waits until then, or for the end of the claim."""
    later = max(until, notice.until) if notice.until else until
    return replace(notice, told=healthy, until=later, failures=0, error="")


def failed(notice: Notice, error: str, *, repeats: bool = False) -> Notice:
    """Return a notification that could not be sent, with the reason.

    An alert that `repeats` ends by itself.
    """
    notified = notice.told or repeats
    return replace(
        notice, told=notified, failures=notice.failures + 1, error=error[:_LONGEST_ERROR]
    )


def with_notice(found: Condition, notice: Notice) -> Condition:
    """Return a condition with one of its notices as it is now."""
    kept = (notice if each.name == notice.name else each for each in found.notices)
    return replace(found, notices=tuple(kept))
