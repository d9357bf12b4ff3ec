"""Sentences and errors of a deployment status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from copy import copy
from itertools import accumulate

from bellhop.core.sveltos_annotations import DRIFT_IGNORED
from bellhop.deploy.context import Contest, ReconcileContext
from bellhop.errors import BellhopError, ConflictError, QueuedError, UnmetError
from bellhop.rendering.allow_limits import NotAllowedError
from bellhop.rendering.inputs import MissingInputError
from bellhop.state.content import NO_OBJECT
from bellhop.state.deployment import Action, Change, DeploymentStatus, Ended

_LENGTH = 1900
"""Characters of what failed for several objects; an error has some more."""

INPUT_ERRORS = frozenset({"Template", "Script", "Conflict"})
"""Codes of failures that only a change of what users declared can cure."""

SLOW_ERRORS = (ConflictError, NotAllowedError, MissingInputError)
"""Errors whose cure publishes the profile; it is tried again beside that, at long intervals."""


def join_errors(errors: Sequence[BellhopError]) -> BellhopError:
    """Join the errors of several objects into one that has the sentence of each, if they fit.

    It is of the type, and has the delay, of the one that may pass soonest.
    """
    first = min(errors, key=_permanence)
    sentences = list(dict.fromkeys(map(str, (first, *errors))))
    if len(sentences) == 1:
        return first
    ends = accumulate(len(each) + len("; ") for each in sentences)
    shown = sentences[: max(sum(end <= _LENGTH for end in ends), 1)]
    more = [f"and {len(sentences) - len(shown)} more"] if len(shown) < len(sentences) else []
    whole = copy(first)
    whole.args = ("; ".join([*shown, *more]),)
    return whole


def _permanence(error: BellhopError) -> tuple[int, bool]:
    """Rank an error by how unlikely another attempt passes; a failure comes before a wait."""
    waits = isinstance(error, (UnmetError, QueuedError))
    if isinstance(error, SLOW_ERRORS):
        return 1, waits
    return (2 if error.code in INPUT_ERRORS else 0), waits


def feature_statuses(
    features: Sequence[str], at: str, status: DeploymentStatus, unmet: Collection[str] = ()
) -> tuple[Ended, ...]:
    """Return the status of each feature: those before the one that failed are deployed.

    Those after it are not begun. A status that is `at` no feature is that of all, unless only
    those that are `unmet` have failed.
    """
    number = features.index(at) if at else 0
    said = status.phase, status.reason, status.message, status.retry_at
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


def format_contest(contest: Contest) -> str:
    """Say who changes an object as often as it is corrected, and what to do about it."""
    key, seconds = contest.key, round(contest.pause.total_seconds())
    place = "/".join(filter(None, (key.namespace, key.name)))
    who = f"field manager '{contest.by}'" if contest.by else "somebody unknown"
    return (
        f"cannot keep {key.kind} '{place}': {who} changes it as often as it is put back,"
        f" {contest.times} times in a row; it waits {seconds} s now; end one of the two, leave the"
        f" fields out of the manifest, or annotate it with {DRIFT_IGNORED}"
    )


def format_permanent_failure(context: ReconcileContext, error: BellhopError, counted: int) -> str:
    return (
        f"{error}; it has failed {counted} times in a row, as often as maxConsecutiveFailures lets"
        f" it: change the profile, or what it reads, or `bellhop redeploy {context.profile.shown}`"
    )


def summarize(changes: Sequence[Change]) -> str:
    """Count the changes of a dry run by their action, in a sentence."""
    found = Counter(each.action for each in changes)
    words: dict[Action, str] = {
        "Create": "to create",
        "Adopt": "to adopt",
        "Update": "to update",
        "Delete": "to delete",
        "Conflict": "in conflict",
        "Error": "refused",
    }
    counts = [f"{found[action]} {word}" for action, word in words.items() if found[action]]
    return ", ".join(counts) or "nothing to change"


def format_remark(context: ReconcileContext) -> str:
    """Say what a deployed profile lacks: any object, or the permission that a restart needs."""
    contents = context.profile.contents
    own = any(not each.how.local and each.is_for(context.cluster) for each in contents)
    if own and not context.progress.held and not context.only_hosts:
        return NO_OBJECT
    if not context.progress.unreadable:
        return ""
    first, *others = sorted(context.progress.unreadable)
    more = f" and {len(others)} more" if others else ""
    return (
        f"no workload restarts when {first.kind} '{first.namespace}/{first.name}'{more} changes:"
        " Bellhop's credentials there may not get it, as reloader has to; grant them that"
    )
