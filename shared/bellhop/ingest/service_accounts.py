"""Senders that prove themselves by a token of their cluster's service account.

    registration     asks the API server for its signing keys ─► record
    ingest           verifies tokens by the record, and calls no cluster
                     an unknown key ─► RefreshTokenKeys, at most once a minute a cluster
    resync           refreshes the keys, and also once a day, so that a revoked key ends

So a token of a revoked key is accepted for a day at most; usually it expires after an hour. Keys
that could not be refreshed for a week are not accepted any more.
"""

from __future__ import annotations

import hashlib
import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from bellhop.errors import DeniedError, PermanentError, StaleError
from bellhop.ingest import account_tokens
from bellhop.ports.store import ABSENT
from bellhop.state.cluster import Cluster
from bellhop.state.ingest_policy import Issuer
from bellhop.state.messages import Publisher, RefreshTokenKeys
from bellhop.state.records import Records

if TYPE_CHECKING:
    # Ingest, which loads this, talks to no cluster.
    from bellhop.ports.kube import Access, Kube

_PROVED = timedelta(minutes=1)
"""Time for which a valid token is not verified again, so that revocations act soon."""

_MANY = 1024
_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)


class Accounts:
    """Verifies tokens for one process of ingest; shared between threads."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher
        self._lock = threading.Lock()
        self._proved: dict[tuple[str, bytes], datetime] = {}

    def verify(self, cluster: str, token: str) -> None:
        """See that a token is one of a cluster's forwarder.

        Raises:
            DeniedError: it is not; the sentence says what it is.
        """
        now = self._records.clock.now()
        proof = cluster, hashlib.sha256(token.encode("utf-8", "replace")).digest()
        with self._lock:
            until = self._proved.get(proof)
        # A clock that was set back must not prolong this.
        if until is not None and timedelta(0) < until - now <= _PROVED:
            return
        kept = self._records.issuers.get(cluster)
        if kept is None or not kept.value.keys:
            raise DeniedError("tokens of its accounts do not count")
        if abs(now - kept.value.read_at) > _WEEK:
            raise DeniedError("nobody has read its keys for a week")
        try:
            account_tokens.verify(token, kept.value, now)
        except account_tokens.UnknownKeyError:
            if not self._records.inquiries.ask(cluster, now):
                self._publisher.publish([RefreshTokenKeys(cluster)])
            raise
        with self._lock:
            if len(self._proved) >= _MANY:
                self._proved.clear()
            self._proved[proof] = now + _PROVED


def ask(kube: Kube, audience: str, now: datetime) -> Issuer:
    """Read the issuer of an API server's tokens, and its keys.

    Raises:
        BellhopError: the API server does not answer, or denies it.
    """
    issuer, published = kube.issuer()
    return Issuer(issuer, audience, account_tokens.read_keys(published), now)


def refresh_keys(records: Records, access: Access, cluster: str) -> None:
    """Read a cluster's keys now.

    Raises:
        TemporaryError: the cluster does not answer.
    """
    stored = records.clusters.get(cluster)
    if stored:
        kube = access.open(cluster, version=stored.value.credentials)
        learn(records, kube, stored.value, known=timedelta(0))


def learn(records: Records, kube: Kube, cluster: Cluster, *, known: timedelta = _DAY) -> None:
    """Read a cluster's keys again, unless they were read a short while ago.

    If that is denied, the known keys are accepted for a while.

    Raises:
        TemporaryError: the cluster does not answer.
    """
    audience = cluster.forwarder.get("audience", "")
    kept = records.issuers.get(cluster.key)
    now = records.clock.now()
    if not audience or (kept and timedelta(0) <= now - kept.value.read_at < known):
        return
    try:
        fresh = ask(kube, audience, now)
    except PermanentError:
        if kept:
            return
        fresh = Issuer("", audience, (), now)
    try:
        records.issuers.put(cluster.key, fresh, expect=kept.token if kept else ABSENT)
    except StaleError:
        # A writer that was quicker has read later keys, or registered the cluster.
        return
    if records.clusters.get(cluster.key) is None:
        # Removing a cluster deletes its record first: either that or this deletes the keys.
        records.issuers.delete(cluster.key)
