"""Authentication of senders outside a cluster, and detection of repeated requests.

    by a token     head ─► its digest is stored? ─► body ─► CloudEvents
    signed         head ─► in time? ─► body ─► signature of a key? ─► first time? ─► CloudEvents

Each request reads the sender's record: a removed sender, or a former secret that has ended, is
refused from then on. All refusals have one text and take as long as acceptance: a guess shows
neither names nor proofs. A signed attempt is recorded before it is handled, so that one of two
concurrent ones is accepted, and the record is deleted if nothing was accepted.
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
from bellhop.rendering.cloud_events import BATCH, STRUCTURED, has_cloud_events
from bellhop.state.ingest_policy import IngestPolicy, Sender
from bellhop.state.records import Records

_NOBODY = hashlib.sha256(b"nobody").hexdigest()
_GRACE = timedelta(minutes=1)
"""For which a request is remembered once it counts no more: clocks of processes differ."""

_UNVERIFIED = "senders"
"""The fairness key of all requests in names that no sender has."""


class UnverifiedError(DeniedError):
    """A request does not come from the sender that it claims, or is repeated."""


class Visitor(Struct, frozen=True):
    """Sender whose body may be read: a `sender` that proved it, or a claim to be one.

    A claim has `keys` to verify its signature; dummy ones if no such sender signs.
    """

    gate: IngestPolicy | None
    sender: Sender | None
    keys: tuple[str, ...] = ()

    @property
    def share(self) -> str:
        """Return the fairness key of its work; all names that no sender has share one."""
        return share_of(self.sender.cluster, self.sender.name) if self.sender else _UNVERIFIED


@dataclass
class Taking:
    """A request that is a sender's, and whether anything of it was taken."""

    gate: IngestPolicy
    done: bool = False


class OutsideSenders:
    """Authenticates senders outside clusters for one process of ingest; shared between threads."""

    def __init__(self, records: Records, refused: Refused) -> None:
        self._records = records
        self._refused = refused
        self._nobody = signatures.new_key()

    def admit(self, caller: Caller) -> Visitor:
        """Authenticate a sender by the head of its request, or accept a claim to have signed it.

        Raises:
            UnverifiedError: it is no sender, or not now.
        """
        now = self._records.clock.now()
        kept = self._records.senders.get(caller.cluster, caller.sender)
        gate = self._records.gates.get(caller.cluster)
        sender = kept.value if kept and gate else None
        found = Visitor(gate.value if gate else None, sender)
        if _has_token(sender, caller.token, now):
            return found
        if caller.signed and caller.signed.in_time(now):
            # Also for a dummy sender, whose body is read and compared like any other.
            signs = sender is not None and sender.signs
            keys = sender.proofs(now) if sender and signs else (self._nobody, self._nobody)
            return replace(found, keys=keys)
        raise self._denied(caller.cluster, caller.sender, found)

    @contextmanager
    def once(self, request: Request, visitor: Visitor) -> Iterator[Taking]:
        """See that a request is its sender's, and have a signed one taken at most once.

        Raises:
            UnverifiedError: it is not, or was taken before.
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

    def _denied(self, cluster: str, sender: str, visitor: Visitor) -> UnverifiedError:
        if visitor.sender:
            self._refused.note(visitor.share)
        return UnverifiedError(
            f"the request is not one of sender '{sender}' of cluster '{cluster}', not from now, or"
            " was taken before; give it its present secret, set its clock, and have it sign each"
            " attempt again"
        )


def refuse_unsigned(request: Request) -> None:
    """Refuse what a signature does not cover, from a sender that signs.

    Raises:
        InvalidError: the attributes of the event are in headers.
    """
    if request.signed and request.attributes and not has_cloud_events(request.media, {}):
        raise InvalidError(
            "cannot take a CloudEvent of a sender that signs by its headers: its signature only"
            f" covers the body; send the event as {STRUCTURED}, or several as {BATCH}"
        )


def _has_token(sender: Sender | None, token: str, now: datetime) -> bool:
    """Return whether a token is a sender's, in the time that a dummy comparison takes."""
    by_token = sender is not None and not sender.signs
    expected = sender.proofs(now) if sender and by_token else (_NOBODY, _NOBODY)
    given = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
    # A list: both are compared, however the first ends.
    same = any([hmac.compare_digest(each, given) for each in expected])  # noqa: C419
    return same and by_token
