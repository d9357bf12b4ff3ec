"""Every error Bellhop raises on purpose, and the two temperaments that decide all retrying.

BellhopError                     .code is stable, .context is safe to log
├─ PermanentError                retrying is useless: record, report, acknowledge
│  ├─ InvalidError               input is wrong; .where says where in the document
│  │  └─ TooLargeError           input is larger than what is taken
│  ├─ TemplateError              a template failed; name, line, column, excerpt
│  ├─ ScriptError                a Lua script failed; name, line, excerpt
│  ├─ DeniedError                credentials or rights
│  │  └─ UnauthorizedError       the credentials themselves: expired, revoked, or another's
│  ├─ ConflictError              another owner; names owner and tier
│  └─ MissingError               something referred to does not exist
└─ TemporaryError                may pass: leave the message in the queue, for .delay at least
   ├─ UnreachableError           a cluster, a cloud or a repository does not answer
   │  └─ AwayError               a cluster is known not to; its waiters are notified
   ├─ SourceUnavailableError     a repository of charts or files does not answer
   ├─ WaitingError               another profile comes first; waiters are notified
   │  └─ QueuedError             other clusters change first; waiters are notified
   ├─ PausedError                a cluster is paused; waiters are notified
   ├─ ThrottledError             asked to slow down
   ├─ CloudDeniedError           a cloud refuses credentials, or a right; somebody may grant it
   ├─ UnmetError                 a check does not pass yet in a cluster, or a chart is not ready
   ├─ StaleError                 what was read is no longer current; read again
   │  └─ LostWriteError          a conditional write was lost to another writer
   └─ BusyError                  another worker holds the claim

An exception outside this tree counts as temporary: the environment is guilty until the
delivery limit. Foreign exceptions are mapped at the adapter's edge and chained.
"""

from __future__ import annotations

from datetime import datetime, timedelta

_LONGEST = 2048


class BellhopError(Exception):
    """An operation that failed; the message says in one sentence on what, and why."""

    code = "Bellhop"

    def __init__(self, message: str, **context: str | float | None) -> None:
        super().__init__(message if len(message) <= _LONGEST else message[:_LONGEST] + " …")
        self.context = context


class PermanentError(BellhopError):
    """Trying again cannot help until somebody changes an input."""

    code = "Permanent"


class InvalidError(PermanentError):
    """An input is wrong."""

    code = "Invalid"

    def __init__(self, message: str, *, where: str = "", **context: str | int | None) -> None:
        super().__init__(f"{where}: {message}" if where else message, **context)
        self.where = where


class TooLargeError(InvalidError):
    """An input is larger than what is taken."""

    code = "TooLarge"


class TemplateError(PermanentError):
    """A template could not be parsed or rendered; the wording is the template language's."""

    code = "Template"


class ScriptError(PermanentError):
    """A Lua script could not be parsed or run; the wording is Lua's."""

    code = "Script"


class DeniedError(PermanentError):
    """Credentials are refused or lack a right."""

    code = "Denied"


class UnauthorizedError(DeniedError):
    """Credentials are refused as such: no call that is made with them succeeds."""

    code = "Unauthorized"


class ConflictError(PermanentError):
    """Another owner has the object."""

    code = "Conflict"


class MissingError(PermanentError):
    """Something that is referred to does not exist."""

    code = "Missing"


class TemporaryError(BellhopError):
    """It may pass; `delay` is how long to wait at least, None leaves that to the queue.

    A waiter is notified when the wait ends, and tries again at `until` in any case, if that is set.
    """

    code = "Temporary"

    def __init__(
        self,
        message: str,
        *,
        delay: timedelta | None = None,
        until: datetime | None = None,
        **context: str | int | None,
    ) -> None:
        super().__init__(message, **context)
        self.delay = delay
        self.until = until


class UnreachableError(TemporaryError):
    """A cluster, a cloud or a repository does not answer."""

    code = "Unreachable"


class AwayError(UnreachableError):
    """A cluster did not answer the last call; its waiters are notified once it does."""

    code = "Away"


class SourceUnavailableError(TemporaryError):
    """A repository of charts or files does not answer, which says nothing about a cluster."""

    code = "SourceUnavailable"


class WaitingError(TemporaryError):
    """Another profile comes first in a cluster; its waiters are notified once it is done."""

    code = "Waiting"


class QueuedError(WaitingError):
    """Other clusters change first; a waiter is notified when the rollout gate opens."""

    code = "Queued"


class PausedError(TemporaryError):
    """A cluster is paused; waiters are notified once it is resumed, and try again at `until`."""

    code = "Paused"


class ThrottledError(TemporaryError):
    """The other side asks to slow down."""

    code = "Throttled"


class CloudDeniedError(TemporaryError):
    """AWS or Google Cloud refuses the credentials, or they lack a right.

    A function keeps its message until somebody grants the right; a command is refused.
    """

    code = "CloudDenied"


class UnmetError(TemporaryError):
    """A check that a profile asks for does not pass yet in a cluster, or a chart is not ready.

    It is asked again by `until`, where that is given.
    """

    code = "Unmet"


class StaleError(TemporaryError):
    """A record that was read is no longer current: read it again."""

    code = "Stale"


class LostWriteError(StaleError):
    """The store refused a conditional write: another writer was quicker."""


class BusyError(TemporaryError):
    """Another worker holds the claim."""

    code = "Busy"
