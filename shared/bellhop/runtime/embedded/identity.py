"""Who the listener is: an authority that outlives restarts, and certificates that it issues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from bellhop.adapters.local.certificates import Authority, issue, life, make_authority
from bellhop.adapters.local.files import prepare, translated, write_whole
from bellhop.errors import InvalidError

_AUTHORITY = timedelta(days=3650)
_CERTIFICATE = timedelta(days=90)
"""A certificate is made at each start and, in a process that runs on, after a half of this."""


class ListenerIdentity:
    """The listener's authority, in a folder of the state, and the names it answers to.

    Raises:
        InvalidError: the authority's file is damaged.
        TemporaryError: the disk is full.
    """

    def __init__(self, folder: Path, names: Sequence[str], now: datetime) -> None:
        self._names = names
        self._authority = _authority(folder, now)
        self.renew_at = now

    @property
    def ca(self) -> str:
        """Return what clients are told to trust, as PEM."""
        return self._authority.certificate_pem.decode()

    def certificate(self, now: datetime) -> tuple[bytes, bytes]:
        """Issue a certificate; return it and its key as PEM.

        Raises:
            InvalidError: the authority has ended.
        """
        made = issue(self._authority, self._names, now=now, validity=_CERTIFICATE)
        # The nearer its authority's end, the shorter it lasts.
        self.renew_at = now + (life(made[0])[1] - now) / 2
        return made


def _authority(folder: Path, now: datetime) -> Authority:
    prepare(folder)
    path = folder / "authority.json"
    with translated(path):
        kept = path.read_text() if path.exists() else ""
    if kept:
        return _read(path, kept)
    made = make_authority("Bellhop", now=now, validity=_AUTHORITY)
    text = {"certificate": made.certificate_pem.decode(), "key": made.key_pem.decode()}
    write_whole(path, json.dumps(text).encode())
    return made


def _read(path: Path, text: str) -> Authority:
    try:
        kept = json.loads(text)
        return Authority(kept["certificate"].encode(), kept["key"].encode())
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    # Outside of the handler: a chained decoding error would hold the key.
    raise InvalidError(
        f"cannot use the authority in '{path}': the file is damaged; restore it, or move it away"
        " and register every cluster again"
    )
