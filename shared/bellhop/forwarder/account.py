"""The token of the forwarder's own account, as its pod has it mounted: renewed by the kubelet."""

from __future__ import annotations

from pathlib import Path

from bellhop.ingest.account_tokens import audience_of

_LARGEST = 8192


class Account:
    """What a file says whenever it is asked; a pod without one has no such proof."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def token(self, audience: str) -> str:
        """Return the token, if it is for just this ingest: another would do for us what it does.

        Empty if there is none.
        """
        if self._path is None:
            return ""
        try:
            with self._path.open("rb") as file:
                token = file.read(_LARGEST).decode("ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return token if token.isprintable() and audience in audience_of(token) else ""
