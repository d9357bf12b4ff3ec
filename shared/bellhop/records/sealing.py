"""Sealing of what clusters and users confide to us, so that a copy of the store tells nothing."""

from __future__ import annotations

import base64
import json
import os
import zlib
from typing import Any

from bellhop.errors import InvalidError

_NONCE = 12
_LEVEL = 1  # Objects are small and latency counts: the fastest level gives most of the saving.


class Sealer:
    """Compresses and encrypts JSON with AES-256-GCM; the record's own key is bound in.

    A sealed value moved to another record does not open there.
    """

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - import budget

        self._cipher = AESGCM(key)

    def seal(self, value: Any, bound_to: str) -> bytes:
        """Seal a JSON value for the record `bound_to`."""
        plain = zlib.compress(json.dumps(value, separators=(",", ":")).encode(), _LEVEL)
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, plain, bound_to.encode())

    def open(self, sealed: bytes, bound_to: str) -> Any:
        """Open what `seal` made for the same record.

        Raises:
            InvalidError: the key is another one, or the value was changed or moved.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - import budget

        try:
            plain = self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], bound_to.encode())
        except (InvalidTag, ValueError) as error:
            raise InvalidError(
                f"cannot open the stored record '{bound_to}': it was sealed with another key;"
                " give back the key this state was made with"
            ) from error
        return json.loads(zlib.decompress(plain))


def as_text(sealed: bytes) -> str:
    """Write sealed bytes as JSON can hold them."""
    return base64.b64encode(sealed).decode()


def as_bytes(text: str) -> bytes:
    """Read back what `as_text` wrote."""
    return base64.b64decode(text)
