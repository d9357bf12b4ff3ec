"""Whether a cluster is well by its checks, and when who is to be told of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from bellhop.core.generated_names import profile_shown
from bellhop.state.condition import Condition, Liveness, Notice
from bellhop.state.record import DeploymentStatus, Selected, Selection

if TYPE_CHECKING:
    from bellhop.api.health_check import NotificationPolicy

PAUSE = timedelta(minutes=1)
"""Between two notices to one place about one cluster, and before the first new try."""

_SKEW = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(hours=1)
_NAMED = 3
_LONGEST = 300
"""Characters that are told of one profile's failure."""

_LONGEST_ERROR = 1000
"""Characters that are kept of a notice's: what is missing stands at the end, after long names."""

STATE, MESSAGE = "healthStatus", "message"
"""What a selection keeps of a resource that is not well, by these names."""

_FAILED = {"Failed", "FailedNonRetriable"}


class State(NamedTuple):
    """Whether a cluster is well, and why not, and until when that is so though nothing changes."""

    healthy: bool
    message: str
    until: datetime | None = None


def addons(outcomes: Iterable[DeploymentStatus]) -> State | None:
    """Judge a cluster by its profiles; None while some are on their way and none has failed."""
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
    """Judge a cluster by what a HealthCheck says of its resources; None where nobody knows yet.

    A resource counts once it is not well for as long as the HealthCheck has patience. One whose
    script fails says nothing good: who relies on it is to know.
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
    """Return the resources that are not well for so long that it counts."""
    return [each for each in found.selected if not _waits(each, patience, now)]


def _waits(found: Selected, patience: timedelta, now: datetime) -> bool:
    # A time in the future is of a clock that was ahead: it says nothing, and the resource counts.
    return now < found.since + patience and found.since <= now + _SKEW


def together(checks: Mapping[str, State | None]) -> State | None:
    """Judge a cluster by all checks: one that fails is enough, and one that is open else waits."""
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
    """Return the notices of which what was told last is not so any more, and when each is due.

    One whose policy has patience is due once the cluster is not well for so long: what ends before
    was never told, and nor is its end. While a cluster is unhealthy, those that are `repeated` are
    due again after two pauses: Alertmanager ends an alert five minutes after it was sent last.
    """
    again = () if found.healthy else repeated
    waiting = [x for x in found.notices if x.told != found.healthy or x.name in again]
    return [(_due_at(found, each, policies.get(each.name)), each) for each in waiting]


def _due_at(found: Condition, notice: Notice, policy: NotificationPolicy | None) -> datetime:
    told_at = found.since + policy.patience if policy and not found.healthy else found.since
    if notice.until and notice.told == found.healthy:
        return notice.until + PAUSE
    return max(told_at, notice.until) if notice.until else told_at


def claimed(notice: Notice, now: datetime) -> Notice:
    """Return a notice that is about to be sent: nobody else sends it for a while."""
    pause = min(PAUSE * 2 ** min(notice.failures, 10), _LONGEST_PAUSE)
    return replace(notice, until=now + pause)


def sent(notice: Notice, *, healthy: bool, until: datetime) -> Notice:
    """Return a notice that was sent; the next one waits until then, or for the end of the claim."""
    later = max(until, notice.until) if notice.until else until
    return replace(notice, told=healthy, until=later, failures=0, error="")


def failed(notice: Notice, error: str, *, repeats: bool = False) -> Notice:
    """Return a notice that could not be sent, for this reason.

    What one that `repeats` has told ends by itself.
    """
    told = notice.told or repeats
    return replace(notice, told=told, failures=notice.failures + 1, error=error[:_LONGEST_ERROR])


def with_notice(found: Condition, notice: Notice) -> Condition:
    """Return a condition with one of its notices as it is now."""
    kept = (notice if each.name == notice.name else each for each in found.notices)
    return replace(found, notices=tuple(kept))
