"""Senders from outside a cluster: whether a request is theirs, and comes for the first time.

    by a token     head ─► its digest is kept? ─► body ─► CloudEvents
    signed         head ─► in time? ─► body ─► signature of a key? ─► first time? ─► CloudEvents

Each is asked by its record, at each request: who is removed, or whose former secret has ended, is
refused from then on. All that is refused has one sentence, and takes the time of what is not: who
guesses learns neither names nor how a sender proves itself. An attempt that was signed is noted
before it is worked on, so that of two at once one is taken, and let go where nothing was taken.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from bellhop.errors import DeniedError, InvalidError
from bellhop.ingest import signatures
from bellhop.ingest.http import Caller, Request, share_of
from bellhop.ingest.refusals import Refused
from bellhop.ingest.signatures import Signed
from bellhop.rendering.cloud_events import BATCH, STRUCTURED, is_told
from bellhop.state.record import IngestPolicy, Sender
from bellhop.state.records import Records

_NOBODY = hashlib.sha256(b"nobody").hexdigest()
_GRACE = timedelta(minutes=1)
"""For which a request is remembered once it counts no more: clocks of processes differ."""

_STRANGERS = "senders"
"""The share of all that comes in names that nobody has."""


class StrangerError(DeniedError):
    """A request is not from who it says that it is, or not for the first time."""


class Visitor(Struct, frozen=True):
    """Somebody whose body is to be read: a `sender`, who proved it, or a claim to be one.

    A claim has `keys` to be judged by; those of nobody, where no such sender signs.
    """

    gate: IngestPolicy | None
    sender: Sender | None
    keys: tuple[str, ...] = ()

    @property
    def share(self) -> str:
        """Name for whom its work is done: what comes in names that nobody has shares one."""
        return share_of(self.sender.cluster, self.sender.name) if self.sender else _STRANGERS


@dataclass
class Taking:
    """A request that is a sender's, and whether anything of it was taken."""

    gate: IngestPolicy
    done: bool = False


class OutsideSenders:
    """Judges senders from outside for one process of ingest; shared between threads."""

    def __init__(self, records: Records, refused: Refused) -> None:
        self._records = records
        self._refused = refused
        self._nobody = signatures.new_key()

    def admit(self, caller: Caller) -> Visitor:
        """Let a sender in by the head of its request, or somebody who claims to have signed it.

        Raises:
            StrangerError: it is none, or not now.
        """
        now = self._records.clock.now()
        kept = self._records.senders.get(caller.cluster, caller.sender)
        gate = self._records.gates.get(caller.cluster)
        sender = kept.value if kept and gate else None
        found = Visitor(gate.value if gate else None, sender)
        if _has_token(sender, caller.token, now):
            return found
        if caller.signed and caller.signed.in_time(now):
            # Also for nobody, whose body is read and compared like anybody's.
            signs = sender is not None and sender.signs
            keys = sender.proofs(now) if sender and signs else (self._nobody, self._nobody)
            return replace(found, keys=keys)
        raise self._denied(caller.cluster, caller.sender, found)

    @contextmanager
    def once(self, request: Request, visitor: Visitor) -> Iterator[Taking]:
        """See that a request is its sender's, and have a signed one taken at most once.

        Raises:
            StrangerError: it is not, or was taken before.
        """
        signed, gate = request.signed, visitor.gate
        if gate and not visitor.keys:
            yield Taking(gate)
            return
        fits = signed is not None and signatures.fits(visitor.keys, signed, request.body)
        signs = visitor.sender is not None and visitor.sender.signs
        if not (fits and signs and signed and gate and self._claim(request, signed)):
            raise self._denied(request.cluster, request.sender, visitor)
        taking = Taking(gate)
        try:
            yield taking
        finally:
            if not taking.done:
                self._records.receipts.release(request.cluster, request.sender, signed.digest)

    def _claim(self, request: Request, signed: Signed) -> bool:
        until = datetime.fromtimestamp(signed.at, UTC) + signatures.WINDOW + _GRACE
        return self._records.receipts.claim(request.cluster, request.sender, signed.digest, until)

    def _denied(self, cluster: str, sender: str, visitor: Visitor) -> StrangerError:
        if visitor.sender:
            self._refused.note(visitor.share)
        return StrangerError(
            f"the request is not one of sender '{sender}' of cluster '{cluster}', not from now, or"
            " was taken before; give it its present secret, set its clock, and have it sign each"
            " attempt again"
        )


def refuse_unsigned(request: Request) -> None:
    """Refuse what a signature does not cover, from a sender that signs.

    Raises:
        InvalidError: the attributes of the event are in headers.
    """
    if request.signed and request.attributes and not is_told(request.media, {}):
        raise InvalidError(
            "cannot take a CloudEvent of a sender that signs by its headers: its signature only"
            f" covers the body; send the event as {STRUCTURED}, or several as {BATCH}"
        )


def _has_token(sender: Sender | None, token: str, now: datetime) -> bool:
    """Say whether a token is a sender's, in the time that it takes for nobody's."""
    by_token = sender is not None and not sender.signs
    expected = sender.proofs(now) if sender and by_token else (_NOBODY, _NOBODY)
    given = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
    # A list: both are compared, however the first ends.
    same = any([hmac.compare_digest(each, given) for each in expected])  # noqa: C419
    return same and by_token
