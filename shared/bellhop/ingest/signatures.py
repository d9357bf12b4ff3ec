"""Signatures of requests by Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`.

A sender names each message by an id and each attempt by its time, and signs both with the body: a
captured request cannot be changed, and a repeated one is recognized by id and time. The
specification defines the headers: https://www.standardwebhooks.com/.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from bellhop.errors import InvalidError

WINDOW = timedelta(minutes=5)
"""By how much a sender's clock and ours may differ, either way: a request ends with it."""

PREFIX = "whsec_"
"""Prefix of a key as people see it."""

_KEY_BYTES = 32
_ID, _AT, _SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_VERSION = "v1,"
_LONGEST_ID = 256
_MOST_SIGNATURES = 8
"""Of a sender that is changing keys itself there are two."""

_SECONDS = re.compile(r"[0-9]{1,12}\Z", re.ASCII)


class Signed(Struct, frozen=True):
    """Head of a signed request: message, attempt, and signatures."""

    id: str
    at: int
    signatures: tuple[str, ...]

    def in_time(self, now: datetime) -> bool:
        """Return whether it was signed about now."""
        return abs(now.timestamp() - self.at) <= WINDOW.total_seconds()

    @property
    def digest(self) -> str:
        """Return a name of this attempt, which an exact repeat shares."""
        return hashlib.sha256(f"{self.at}.{self.id}".encode("utf-8", "replace")).hexdigest()[:32]


def is_signed(headers: Mapping[str, str]) -> bool:
    """Return whether a request claims to be signed; names of headers are in small letters."""
    return _SIGNATURE in headers


def read(headers: Mapping[str, str]) -> Signed | None:
    """Read what a request's head says of its signatures; None if that is not as it should be."""
    name, at = headers.get(_ID, ""), headers.get(_AT, "")
    given = headers.get(_SIGNATURE, "").split()
    if not name or len(name) > _LONGEST_ID or not _SECONDS.match(at):
        return None
    signatures = [each.removeprefix(_VERSION) for each in given if each.startswith(_VERSION)]
    if not signatures or len(given) > _MOST_SIGNATURES:
        return None
    return Signed(name, int(at), tuple(signatures))


def new_key() -> str:
    """Draw a key, as its sender is given it."""
    return PREFIX + base64.b64encode(os.urandom(_KEY_BYTES)).decode()


def sign(key: str, name: str, at: int, body: bytes) -> str:
    """Return the signature of a message, as it stands in the header.

    Raises:
        InvalidError: the key is none.
    """
    return _VERSION + _hmac(key, name, at, body)


def fits(keys: Sequence[str], signed: Signed, body: bytes) -> bool:
    """Return whether a signature is by one of the keys, in a time that does not depend on them."""
    own = [_hmac(key, signed.id, signed.at, body).encode() for key in keys]
    given = [each.encode("utf-8", "replace") for each in signed.signatures]
    # A list: all are compared, however the first ends.
    return any([hmac.compare_digest(mine, each) for mine in own for each in given])  # noqa: C419


def _hmac(key: str, name: str, at: int, body: bytes) -> str:
    try:
        secret = base64.b64decode(key.removeprefix(PREFIX), validate=True)
    except (ValueError, binascii.Error) as error:
        raise InvalidError("cannot sign: the key is not base64") from error
    # Headers come as Latin-1, whatever was sent in them.
    head = f"{name}.{at}.".encode("latin-1", "replace")
    return base64.b64encode(hmac.digest(secret, head + body, "sha256")).decode()
