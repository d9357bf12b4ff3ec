"""Files of add-ons as the port `Files` has them, which a test puts there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from bellhop.errors import InvalidError, MissingError
from bellhop.ports.kube import Kube
from bellhop.ports.tools import Downloaded
from bellhop.state.content import Remote


def digest_of(files: Mapping[str, str]) -> str:
    """Return the digest that an artifact of some files has here."""
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()


class FakeFiles:
    """The contents of URLs; `asked` records each download, and who signed in for it."""

    def __init__(self) -> None:
        self.served: dict[str, Mapping[str, str]] = {}
        self.failure: Exception | None = None
        self.asked: list[Remote | str] = []

    def remote(self, place: Remote) -> Downloaded:
        """Return what is at a URL now."""
        self.asked.append(place)
        files = self._found(place.url)
        return Downloaded(digest_of(files), {name: text.encode() for name, text in files.items()})

    def artifact(self, kube: Kube, url: str, digest: str) -> Mapping[str, bytes]:
        """Return the files of an artifact."""
        del kube
        self.asked.append(url)
        files = self._found(url)
        if digest != f"sha256:{digest_of(files)}":
            raise InvalidError(f"cannot download '{url}': its digest is another one")
        return {name: text.encode() for name, text in files.items()}

    def _found(self, url: str) -> Mapping[str, str]:
        if self.failure:
            raise self.failure
        if url not in self.served:
            raise MissingError(f"cannot download '{url}': there is nothing")
        return self.served[url]
