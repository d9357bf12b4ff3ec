"""Sealing of records, so that a copy of the store reveals nothing of clusters and users.

Ingest faces the Internet. It may have a key of its own, with which the ingest policies and senders
that it reads are sealed, and the observations that it writes. All other records open with the
installation's key only: an attacker who takes over ingest can neither read nor forge them.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from typing import TYPE_CHECKING, Any

from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

READ_BY_INGEST = frozenset({"gate", "sender"})
WRITTEN_BY_INGEST = frozenset({"observation"})
"""First words of the partitions of the records that ingest opens, or seals."""

_NONCE = 12
_LEVEL = 1  # Objects are small and latency counts: the fastest level gives most of the saving.


class Sealer:
    """Compresses and encrypts JSON with AES-256-GCM; the record's own key is bound in.

    A sealed value moved to another record does not open there. Where ingest has a key of its own,
    its sealer has that one as `key`, and all others have it as `of_ingest`.
    """

    def __init__(self, key: bytes, of_ingest: bytes | None = None) -> None:
        self._own = _cipher(key)
        self._ingest = self._own if of_ingest is None else _cipher(of_ingest)

    def seal(self, value: Any, bound_to: str) -> bytes:
        """Seal a JSON value for the record `bound_to`."""
        plain = zlib.compress(json.dumps(value, separators=(",", ":")).encode(), _LEVEL)
        nonce = os.urandom(_NONCE)
        return nonce + self._ciphers(bound_to)[0].encrypt(nonce, plain, bound_to.encode())

    def open(self, sealed: bytes, bound_to: str) -> Any:
        """Open what `seal` made for the same record.

        Raises:
            InvalidError: the key is another one, or the value was changed or moved.
        """
        for cipher in self._ciphers(bound_to):
            plain = _decrypted(cipher, sealed, bound_to)
            if plain is not None:
                return json.loads(zlib.decompress(plain))
        raise InvalidError(
            f"cannot open the stored record '{bound_to}': it was sealed with another key;"
            " give back the key this state was made with"
        )

    def _ciphers(self, bound_to: str) -> tuple[AESGCM, ...]:
        """Return what may open a record; the first seals it."""
        word = bound_to.partition(" ")[0].partition("/")[0]
        if word in READ_BY_INGEST:
            return self._ingest, self._own
        return (self._own, self._ingest) if word in WRITTEN_BY_INGEST else (self._own,)


def _decrypted(cipher: AESGCM, sealed: bytes, bound_to: str) -> bytes | None:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - import budget

    try:
        return cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], bound_to.encode())
    except (InvalidTag, ValueError):
        return None


def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - import budget

    return AESGCM(key)


def as_text(sealed: bytes) -> str:
    """Write sealed bytes as JSON can hold them."""
    return base64.b64encode(sealed).decode()


def as_bytes(text: str) -> bytes:
    """Read back what `as_text` wrote."""
    return base64.b64decode(text)
