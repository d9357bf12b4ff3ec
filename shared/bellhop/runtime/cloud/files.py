"""Downloads files, with what is loaded for the first one: most profiles have none."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from bellhop.core.address_policy import AddressPolicy
from bellhop.ports.clock import Clock
from bellhop.ports.files import Downloaded, Files
from bellhop.ports.kube import Kube
from bellhop.state.remote_url import Remote

if TYPE_CHECKING:
    from bellhop.documents.tarball import Folder


class LateDownloads:
    """The port `Files`, which a function that starts cold does not wait for."""

    def __init__(self, reach: AddressPolicy, clock: Clock) -> None:
        self._reach = reach
        self._clock = clock
        self._lock = threading.Lock()
        self._made: Files | None = None

    def remote(self, place: Remote) -> Downloaded:
        """Return the files at a URL, downloaded at most `place.seconds` ago."""
        return self._files().remote(place)

    def artifact(self, kube: Kube, url: str, digest: str) -> Folder:
        """Return the files of an artifact of Flux, whose digest is checked."""
        return self._files().artifact(kube, url, digest)

    def _files(self) -> Files:
        with self._lock:
            if self._made is None:
                from bellhop.adapters.sources.files import FileDownloads  # noqa: PLC0415 - 45 ms

                self._made = FileDownloads(self._reach, self._clock)
            return self._made
