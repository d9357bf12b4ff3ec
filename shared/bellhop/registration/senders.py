"""Outside senders: a CI, an object store, a registry, each with an address of its own.

A secret is drawn here and handed to the caller. The record has only what ingest needs: the digest
of a token, or the sealed key of a sender that signs. The secret is handed over before the record is
written: a secret without a record is harmless, and a record without its secret is useless.

As for a cluster's own sender, the former secret ends by time and not at the first use of the new
one: a sender may be several processes, of which one has read the new secret and the other has not.
"""

from __future__ import annotations

import secrets as entropy
from collections.abc import Callable, Iterator
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.names import LONGEST_LABEL, name_problem
from bellhop.errors import BusyError, ConflictError, InvalidError, MissingError, StaleError
from bellhop.ingest import signatures
from bellhop.ingest.http import path_of, share_of
from bellhop.installation import Installation
from bellhop.ports.store import ABSENT
from bellhop.registration.instructions import digest_token
from bellhop.state.ingest_policy import Refusals, Sender
from bellhop.state.table import Stored

OVERLAP = timedelta(days=1)
"""A former secret is accepted for this time: a person has to give the sender the new one."""

_TOKEN_BYTES = 32

Deliver = Callable[[str], None]
"""Takes a secret that was drawn, before it counts."""


class SenderStatus(Struct, frozen=True):
    """A sender as people see it: its address, and what was refused in its name lately."""

    sender: Sender
    address: str
    refused: Refusals | None


def add(here: Installation, key: str, name: str, *, signs: bool, hand: Deliver) -> SenderStatus:
    """Add a sender of CloudEvents for a cluster, with a token, or with signatures if it `signs`.

    Raises:
        InvalidError: the name is not valid.
        MissingError: there is no such cluster, or the address of ingest is unknown.
        ConflictError: the cluster has a sender of that name.
    """
    problem = name_problem(name)
    if not problem and len(name) > LONGEST_LABEL:
        problem = f"a sender's name has at most {LONGEST_LABEL} characters"
    if problem:
        raise InvalidError(f"cannot add sender '{name}': {problem}")
    if here.records.clusters.get(key) is None:
        raise _no_cluster_error(key, name)
    if not here.inbound.url:
        raise MissingError(
            f"cannot add sender '{name}' of cluster '{key}': no ingest URL is known yet;"
            f" {here.worker.start} first"
        )
    if here.records.senders.get(key, name):
        raise _taken_error(key, name)
    secret, proof = _draw_secret(signs=signs)
    sender = Sender(key, name, here.records.clock.now(), signs=signs, proof=proof)
    hand(secret)
    try:
        here.records.senders.put(sender, expect=ABSENT)
    except StaleError as error:
        raise _taken_error(key, name) from error
    if here.records.clusters.get(key) is None:
        # A deregistration deletes the cluster's record first: one of the two sees the other.
        here.records.senders.delete(key, name)
        raise _no_cluster_error(key, name)
    return _read_status(here, sender)


def rotate(
    here: Installation, key: str, name: str, *, overlap: timedelta = OVERLAP, hand: Deliver
) -> SenderStatus:
    """Give a sender a new secret; the former one is accepted for a while, or not at all.

    Raises:
        MissingError: there is no such sender.
        BusyError: the former one is still accepted, or another process rotates it now.
    """
    kept = _read_sender(here, key, name)
    old, now = kept.value, here.records.clock.now()
    if overlap and old.former and (old.former_until or now) > now:
        raise BusyError(
            f"cannot rotate the secret of sender '{name}' of cluster '{key}' again: it may have the"
            f" former one, which counts until {old.former_until:%Y-%m-%d %H:%M} UTC; wait until"
            " then, or give --at-once to end both"
        )
    secret, proof = _draw_secret(signs=old.signs)
    new = replace(old, proof=proof, former="", changed_at=now, former_until=None)
    if overlap:
        new = replace(new, former=old.proof, former_until=now + overlap)
    hand(secret)
    try:
        here.records.senders.put(new, expect=kept.token)
    except StaleError as error:
        raise BusyError(
            f"cannot rotate the secret of sender '{name}' of cluster '{key}': somebody else changes"
            " it now; look at it, and try again"
        ) from error
    here.records.refusals.delete(share_of(key, name))
    return _read_status(here, new)


def remove(here: Installation, key: str, name: str) -> None:
    """Have a sender count no more, from its next request on.

    Raises:
        MissingError: there is no such sender.
    """
    if not here.records.senders.delete(key, name):
        raise _missing_error(key, name)
    here.records.refusals.delete(share_of(key, name))


def list_senders(here: Installation, key: str = "") -> Iterator[SenderStatus]:
    """Yield the senders of a cluster, or of all, by cluster and name; none with its secret."""
    for cluster in [key] if key else sorted(here.catalogs.known().clusters):
        for sender in here.records.senders.of(cluster):
            yield _read_status(here, sender)


def list_refused(here: Installation) -> Iterator[tuple[Sender, Refusals]]:
    """Yield the senders that were refused lately, and how often."""
    for share, refusals in here.records.refusals.all():
        cluster, name = _split_share(share)
        kept = here.records.senders.get(cluster, name) if name else None
        if kept:
            yield kept.value, refusals


def _split_share(share: str) -> tuple[str, str]:
    """Read cluster and name out of a share; the name is empty where it is a cluster's own."""
    cluster, _, name = share.rpartition("/")
    own = share_of(cluster.rpartition("/")[0], name) != share
    return (share, "") if own else (cluster.rpartition("/")[0], name)


def _read_status(here: Installation, sender: Sender) -> SenderStatus:
    kept = here.records.refusals.get(share_of(sender.cluster, sender.name))
    address = here.inbound.url.rstrip("/") + path_of(sender.cluster, sender.name)
    return SenderStatus(replace(sender, proof="", former=""), address, kept.value if kept else None)


def _draw_secret(*, signs: bool) -> tuple[str, str]:
    """Draw a secret; return it, and what is kept of it."""
    if signs:
        key = signatures.new_key()
        return key, key
    token = entropy.token_urlsafe(_TOKEN_BYTES)
    return token, digest_token(token)


def _read_sender(here: Installation, key: str, name: str) -> Stored[Sender]:
    kept = here.records.senders.get(key, name)
    if kept is None:
        raise _missing_error(key, name)
    return kept


def _missing_error(key: str, name: str) -> MissingError:
    return MissingError(
        f"cannot find sender '{name}' of cluster '{key}': there is none;"
        " `bellhop sender list` lists those that are"
    )


def _no_cluster_error(key: str, name: str) -> MissingError:
    return MissingError(
        f"cannot add sender '{name}' of cluster '{key}': the cluster is not registered;"
        " `bellhop get clusters` lists those that are"
    )


def _taken_error(key: str, name: str) -> ConflictError:
    return ConflictError(
        f"cannot add sender '{name}' of cluster '{key}': there is one already;"
        f" `bellhop sender rotate {key} {name}` gives it a new secret"
    )
