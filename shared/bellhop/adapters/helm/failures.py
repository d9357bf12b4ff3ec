"""Errors for the failures of Helm: who may fix one, and whether to try again.

Helm quotes what a chart and its values have in them, so its words decide nothing about a cluster:
whether the cluster answers and accepts our credentials, its API server says to a call of our own.
"""

from __future__ import annotations

import re
import signal

from bellhop.adapters.egress.tunnel import REFUSED
from bellhop.adapters.programs.box import Ended, Limits
from bellhop.errors import (
    BellhopError,
    ConflictError,
    DeniedError,
    InvalidError,
    TemporaryError,
)

_LONGEST = 600
_MISSING = re.compile(r"release: not found")

_STUCK = re.compile(r"another operation \(.*\) is in progress|has no deployed releases")
"""Helm's error for an upgrade of a release whose last operation was interrupted."""

_UNAPPLIED = re.compile(
    r"associative list with keys has an element that omits key field"
    r"|failed to create (typed patch object|manager for existing fields)"
)
"""Errors of API servers before 1.21 for a server-side apply of objects that they take otherwise."""

_MEMORY = re.compile(r"runtime: (out of memory|cannot allocate)|failed to reserve memory")
"""The words with which Go's runtime ends a program that gets no more memory."""

_PATH = re.compile(r"/proc/self/fd/\d+")
"""The path at which only Helm reads the values."""

_KINDS: tuple[tuple[re.Pattern[str], type[BellhopError]], ...] = (
    # What a chart or a webhook says first: its words may be those of an API server, and are not.
    (re.compile(r"failed calling webhook"), TemporaryError),
    (
        re.compile(
            r"template: |executing \"|parse error|execution error at \(|meet the specif"
            r"|is invalid: |no matches for kind"
        ),
        InvalidError,
    ),
    (re.compile(r"is forbidden"), DeniedError),
    (
        re.compile(r"cannot be imported into the current release|cannot re-use a name"),
        ConflictError,
    ),
    (
        re.compile(
            r"another operation \(.*\) is in progress"
            rf"|cluster unreachable|{REFUSED}|connection refused|no such host|i/o timeout"
            r"|TLS handshake|EOF\b|server is currently unable|x509:|client to provide credentials"
            r"|: Unauthorized$|timed out|deadline exceeded|context canceled|not ready"
            r"|storage is \(re\)init"
        ),
        TemporaryError,
    ),
)


def is_missing(errors: str) -> bool:
    """Say whether Helm failed since there is no such release."""
    return _MISSING.search(errors) is not None


def is_stuck(said: str) -> bool:
    """Say whether a release has to be recovered before it can be upgraded."""
    return _STUCK.search(said) is not None


def is_unapplied(said: str) -> bool:
    """Say whether a server-side apply failed that a patch by the client may do."""
    return _UNAPPLIED.search(said) is not None


def refuse_killed(ended: Ended, limits: Limits, doing: str) -> None:
    """See that Helm was not killed, of which it says nothing itself.

    Raises:
        InvalidError: it needed more memory than it may have.
        TemporaryError: somebody, or the kernel, killed it.
    """
    if ended.code and _MEMORY.search(ended.errors):
        most = limits.memory >> 20
        raise InvalidError(
            f"cannot {doing}: Helm needs more memory than the {most} MiB that it may have; the"
            " chart or its values are too large, or a template grows without end"
        )
    if ended.code < 0:
        name = signal.Signals(-ended.code).name
        raise TemporaryError(
            f"cannot {doing}: Helm was killed from outside ({name}), as happens where the machine"
            " has no memory left or a deployment is stopped; it is tried again"
        )


def failure(errors: str, doing: str) -> BellhopError:
    """Return Helm's words as an error; `doing` says what could not be done."""
    said = _sentence(errors)
    kind = next((kind for pattern, kind in _KINDS if pattern.search(said)), InvalidError)
    return kind(f"cannot {doing}: {said}")


def _sentence(errors: str) -> str:
    """Return what follows the last `Error:`, on one line and not without end."""
    _, _, message = _PATH.sub("the values", errors).rpartition("Error: ")
    said = "; ".join(line.strip() for line in message.splitlines() if line.strip())
    return (said[:_LONGEST] + "…" if len(said) > _LONGEST else said) or "Helm says nothing"
