"""Senders that prove themselves by the token of their cluster's service account.

    who registers    asks the API server with which keys it signs ─► record
    ingest           judges tokens by the record, and calls nobody
                     meets a key that is not there ─► ReadKeys, at most once a minute a cluster
    sweep            does that; and by itself once a day, so that a key that was taken back ends

So a token whose key was taken back counts for a day at most, and as a rule ends by itself after an
hour. Keys that could not be read for a week count no more.
"""

from __future__ import annotations

import hashlib
import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from bellhop.errors import DeniedError, PermanentError, StaleError
from bellhop.ingest import account_tokens
from bellhop.ports.store import ABSENT
from bellhop.state.messages import Publisher, RefreshTokenKeys
from bellhop.state.record import Cluster, Issuer
from bellhop.state.records import Records

if TYPE_CHECKING:
    # Ingest, which loads this, talks to no cluster.
    from bellhop.ports.kube import Kube

_PROVED = timedelta(minutes=1)
"""For how long a token that was good is not judged again: so soon all else follows as well."""

_MANY = 1024
_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)


class Accounts:
    """Judges tokens for one process of ingest; shared between threads."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher
        self._lock = threading.Lock()
        self._proved: dict[tuple[str, bytes], datetime] = {}

    def judge(self, cluster: str, token: str) -> None:
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
            account_tokens.judge(token, kept.value, now)
        except account_tokens.UnknownKeyError:
            if not self._records.inquiries.ask(cluster, now):
                self._publisher.publish([RefreshTokenKeys(cluster)])
            raise
        with self._lock:
            if len(self._proved) >= _MANY:
                self._proved.clear()
            self._proved[proof] = now + _PROVED


def ask(kube: Kube, audience: str, now: datetime) -> Issuer:
    """Ask an API server who makes the tokens of its accounts, and with which keys.

    Raises:
        BellhopError: it does not say, or may not.
    """
    issuer, published = kube.issuer()
    return Issuer(issuer, audience, account_tokens.read_keys(published), now)


def learn(records: Records, kube: Kube, cluster: Cluster, *, known: timedelta = _DAY) -> None:
    """Read a cluster's keys anew, unless they were read a short while ago.

    Where they may not be read, those that are known go on to count for a while.

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
        # Who wrote it meanwhile has asked later, or registered the cluster.
        return
    if records.clusters.get(cluster.key) is None:
        # Whoever forgets a cluster deletes its name first: one of us sees the other.
        records.issuers.delete(cluster.key)
